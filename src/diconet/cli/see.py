"""`diconet plot` and `diconet web`: what there is to see."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from diconet.cli.options import add_command, add_tasks
from diconet.cli.show import patience
from diconet.io.parse import count
from diconet.problems.problem import Problem


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the two commands."""
    plot = add_command(commands, "plot", _plot, "training curves from the metrics of runs")
    plot.add_argument(
        "runs", nargs="+", metavar="RUN", help="folder of a run; several side by side"
    )
    plot.add_argument("--out", type=Path, default=Path("curves.png"), help=".png, .svg or .pdf")

    web = add_command(commands, "web", _web, "a page to click points on and watch them solved")
    add_tasks(web)
    web.add_argument("--port", type=count, default=8000)
    web.add_argument("--host", default="127.0.0.1", help="0.0.0.0 to let other machines in")


def _plot(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.core.files import check_output

    check_output(options.out, "--out", (".png", ".svg", ".pdf"))
    with patience("drawing ..."):
        from diconet.plot.curves import save_curves

        save_curves(options.runs, options.out)
    print(f"picture: {options.out}")


def _web(options: argparse.Namespace, _: list[str]) -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"the page needs {' and '.join(missing)}; install them with pip install 'diconet[web]'."
        )
    if options.port > 65_535:
        raise ValueError(f"--port must be at most 65535; got {options.port}.")
    if options.tasks and all(one.page is None for one in options.tasks):
        names = ", ".join(one.name for one in options.tasks)
        raise ValueError(
            "TASK must be one that the page can draw, of points in a plane and nothing else;"
            f" got {names}."
        )
    import uvicorn

    from diconet.web.app import create_app

    print(f"http://{options.host}:{options.port} (Ctrl-C stops it)", flush=True)
    uvicorn.run(
        create_app(options.tasks or None), host=options.host, port=options.port, log_level="warning"
    )
