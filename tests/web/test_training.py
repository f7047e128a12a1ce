"""The page's own training: one at a time, bounded, stoppable, and nothing left behind."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web extra is not installed")
pytest.importorskip("httpx2", reason="the test client needs httpx2")

from fastapi.testclient import TestClient

from diconet.problems.catalog import find_problem
from diconet.web.app import create_app
from diconet.web.training import Training

TASK = """
import torch
from diconet import SetBatch

class Halves:
    '''Part points so that a third of them are on the first side.'''

    num_features = 2

    def sample(self, num_sets, set_size, *, rng):
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(torch.rand(num_sets * set_size, 2, generator=rng), sizes)

    def reward(self, sets, solution):
        return -(sets.mean((solution.leaves % 2).float()[:, None])[:, 0] - 1 / 3).abs()
"""


def wait(client: TestClient, *, until: str, seconds: float = 60) -> dict[str, Any]:
    """What the run says once a state is reached (or a score is there)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found: dict[str, Any] = client.get("/api/training").json()
        if found["state"] == until or (until == "score" and found["version"] and found["scores"]):
            return found
        time.sleep(0.1)
    raise AssertionError(f"never {until}: {found}")


def test_a_task_of_a_file_is_trained_watched_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "halves_of_page.py").write_text(TASK)
    problem = find_problem(f"{tmp_path / 'halves_of_page.py'}:Halves")
    training = Training()
    with TestClient(create_app([problem], training=training)) as client:
        points = client.get("/api/sample", params={"task": "halves", "n": 20}).json()["points"]
        body = {"task": "halves", "points": points, "network": "live"}
        early = client.post("/api/solve", json=body)
        assert "no network of halves has been trained here yet" in early.json()["detail"]
        assert client.get("/api/training").json() == {"state": "none"}

        assert client.post("/api/training", json={"task": "halves"}).json()["state"] == "running"
        second = client.post("/api/training", json={"task": "halves"})
        assert second.status_code == 422
        assert second.json()["detail"] == "one training at a time; halves is being trained."

        found = wait(client, until="score")
        assert found["task"] == "halves"
        answer = client.post("/api/solve", json=body)
        assert answer.status_code == 200
        assert len(answer.json()["stages"][-1]["parts"]) == 20

        stopped = client.delete("/api/training").json()
        assert (stopped["state"], stopped["said"]) == ("done", "stopped")
        assert client.post("/api/solve", json=body).status_code == 200  # its network stays
        folder = training.weights(problem).parents[1]
        assert folder.exists()
    assert not folder.exists()


def test_a_run_ends_when_its_time_is_up_and_says_what_went_wrong() -> None:
    problem = find_problem("hull")
    with TestClient(create_app([problem], training=Training(seconds=0.3))) as client:
        client.post("/api/training", json={"task": "hull"})
        assert wait(client, until="done", seconds=20)["said"] == "0.3 seconds are up"
        assert client.post("/api/training", json={"task": "sudoku"}).status_code == 422


def test_a_run_that_fails_shows_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = find_problem("hull")
    monkeypatch.setattr(type(problem), "page_training", lambda self: ["--preset", "nosuch"])
    with TestClient(create_app([problem])) as client:
        client.post("/api/training", json={"task": "hull"})
        found = wait(client, until="failed")
        assert found["said"].startswith("diconet: preset must be a file or one of default")
