"""The page under load: quick requests are answered while a slow one is under way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the web extra is not installed")
pytest.importorskip("httpx2", reason="the client needs httpx2")

import httpx2

from diconet.problems.catalog import find_problem
from diconet.web.app import create_app
from tests.web.browser import served

PATIENCE = 60


def test_quick_requests_do_not_wait_for_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One question computes until all the others, five at a time, have their answers."""
    problem = find_problem("hull")
    solve, begun, enough = type(problem).page_solve, Event(), Event()

    def perhaps_slow(self: Any, points: Any, *how: Any, **fields: Any) -> Any:
        end = time.monotonic() + PATIENCE
        while len(points) == 31 and not enough.is_set() and time.monotonic() < end:
            begun.set()
            np.linalg.norm(np.ones((300, 300)) @ np.ones((300, 300)))
        return solve(self, points, *how, **fields)

    monkeypatch.setattr(type(problem), "page_solve", perhaps_slow)
    with served(create_app([problem])) as address, ThreadPoolExecutor(6) as pool:
        points = np.random.default_rng(0).random((31, 2)).tolist()

        def ask(size: int) -> int:
            body = {"task": "hull", "points": points[:size]}
            reply = httpx2.post(f"{address}/api/solve", json=body, timeout=2 * PATIENCE)
            return int(reply.status_code)

        waiting = pool.submit(ask, 31)
        assert begun.wait(PATIENCE)
        assert set(pool.map(ask, [30] * 20)) == {200}
        assert httpx2.get(address, timeout=PATIENCE).status_code == 200
        assert not waiting.done()
        enough.set()
        assert waiting.result() == 200
