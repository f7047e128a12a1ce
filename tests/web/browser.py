"""A real browser on a real server: what the tests of the page share."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from fastapi import FastAPI

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
"""A browser of Debian's packages, for a machine that may reach nothing."""


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of an application that runs meanwhile, on a port of its own."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen()  # whoever is faster than the server waits, and is not refused
        thread = Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
