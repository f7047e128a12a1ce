"""The page under load: quick requests are answered while a slow one is under way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the web extra is not installed")
pytest.importorskip("httpx2", reason="the client needs httpx2")

import httpx2

from diconet.problems.catalog import find_problem
from diconet.web.app import create_app
from tests.web.browser import served

SLOW = 4.0


def test_quick_requests_do_not_wait_for_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One question computes for seconds; forty others, five at a time, take a fraction of that."""
    slow, quick = find_problem("hull"), find_problem("kmeans")
    solve = type(slow).page_solve

    def busy(self: Any, points: Any, **how: Any) -> Any:
        end = time.monotonic() + SLOW
        while time.monotonic() < end:
            np.linalg.norm(np.ones((300, 300)) @ np.ones((300, 300)))
        return solve(self, points, **how)

    monkeypatch.setattr(type(slow), "page_solve", busy)
    with served(create_app([slow, quick])) as address, ThreadPoolExecutor(6) as pool:
        points = np.random.default_rng(0).random((30, 2)).tolist()

        def ask(task: str) -> tuple[int, float]:
            start = time.monotonic()
            body = {"task": task, "points": points}
            reply = httpx2.post(f"{address}/api/solve", json=body, timeout=60)
            return reply.status_code, time.monotonic() - start

        ask("kmeans")  # loads and compiles
        waiting = pool.submit(ask, "hull")
        time.sleep(0.3)
        answers = list(pool.map(ask, ["kmeans"] * 40))
        assert not waiting.done()
        assert {status for status, _ in answers} == {200}
        assert max(seconds for _, seconds in answers) < SLOW / 2
        assert httpx2.get(f"{address}/", timeout=5).status_code == 200
        status, seconds = waiting.result()
        assert (status, seconds >= SLOW) == (200, True)
