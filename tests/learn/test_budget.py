"""A run by the clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.learn import Batch, TrainConfig, paper_loss, train
from diconet.learn.config import Budget
from diconet.learn.processes import Group
from diconet.nets.set_split import SetSplit
from tests.learn.test_train import Lengths

SMALL: dict[str, Any] = {"batch_size": 2, "tree_samples": 2, "max_size": 8}


class Clock:
    """A clock that only goes on when a step is made, two seconds each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.shares: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def loss(self, model: Any, task: Any, batch: Batch, config: TrainConfig) -> Any:
        self.now += 2
        self.shares.append(batch.share)
        return paper_loss(model, task, batch, config)


def run(clock: Clock, seconds: float | None, folder: Path | None = None) -> None:
    config = TrainConfig(seconds=seconds, steps=3, **SMALL)
    model = DiCoNet(SetSplit(2, 4, 1), depth=1)
    train(model, Lengths(), config, loss=clock.loss, run=folder, quiet=True)


def test_a_run_ends_when_its_seconds_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    run(clock, seconds=10.0)
    assert clock.shares == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])


def test_seconds_count_over_all_parts_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run(clock, 6.0, tmp_path)
    clock.now += 1_000  # between the two nobody trains
    run(clock, 12.0, tmp_path)
    assert clock.shares == pytest.approx([0, 1 / 3, 2 / 3, 6 / 12, 8 / 12, 10 / 12])
    run(clock, 12.0, tmp_path)
    assert len(clock.shares) == 6
    kept = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert (kept["step"], kept["seconds"]) == (6, 12)


def test_by_steps_the_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    run(clock, seconds=None)
    assert clock.shares == pytest.approx([0, 1 / 3, 2 / 3])


def test_rates_follow_the_share_of_the_time() -> None:
    config = TrainConfig(seconds=60.0, warmup=0)
    assert [config.rate(7, share) for share in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])


def test_what_there_is_to_use_up_is_said_in_its_unit() -> None:
    assert str(Budget(TrainConfig(seconds=90.0), 0.0)) == "90 seconds"
    assert str(Budget(TrainConfig(steps=7), 0.0)) == "7 steps"


def test_several_processes_have_no_clock_in_common() -> None:
    Group(0, 2).check(TrainConfig(batch_size=4))
    with pytest.raises(ValueError, match=r"seconds must not be set with several processes.* 9\.0"):
        Group(0, 2).check(TrainConfig(batch_size=4, seconds=9.0))
    with pytest.raises(ValueError, match="batch_size must be a multiple of the 2 processes; got 5"):
        Group(0, 2).check(TrainConfig(batch_size=5))


def test_no_seconds_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match=r"seconds must be above 0; got 0\.0\."):
        TrainConfig(seconds=0.0)
