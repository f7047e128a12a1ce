from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Cut, Growth
from diconet.learn import TrainConfig, branch_loss, paper_loss, train
from diconet.learn.run_folder import RunFolder
from diconet.nets.graph_split import GraphSplit
from diconet.nets.pointer import PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask
from diconet.problems.kmeans.task import Gaussian, KMeansTask, OneOf


def other_loss(*arguments: Any) -> Any:
    return paper_loss(*arguments)


def network(split: nn.Module | None = None, width: int = 4, depth: int = 1) -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(split or SetSplit(2, 4, 1), PointerMerge(2, width), Growth(depth=depth))


def run(folder: Path, model: DiCoNet, *, steps: int = 1, task: Any = None, **options: Any) -> None:
    """A few steps on hulls, or by the reward alone on a task without an oracle."""
    config = TrainConfig(steps=steps, batch_size=2, tree_samples=2, max_size=8)
    oracle = HullTask().oracle if task is None else None
    train(model, task or HullTask(), config, oracle=oracle, run=folder, quiet=True, **options)


def gaussians(*features: int) -> OneOf:
    return OneOf(tasks=tuple(KMeansTask(Gaussian(number), (2,)) for number in features))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (network(RandomSplit()), "split must stay 'SetSplit' .*; got 'RandomSplit'"),
        (network(SetSplit(2, 5, 1)), r"split\.width must stay 4 .*; got 5\."),
        (network(width=8), r"merge\.width must stay 4 .*; got 8\."),
        (network(depth=2), r"growth\.depth must stay 1 .*; got 2\."),
        (DiCoNet(SetSplit(2, 4, 1), depth=1), "merge must stay 'PointerMerge' .*; got None"),
    ],
)
def test_a_run_goes_on_only_with_its_own_network(
    model: DiCoNet, message: str, tmp_path: Path
) -> None:
    run(tmp_path, network())
    with pytest.raises(ValueError, match=message) as caught:
        run(tmp_path, model, steps=2)
    assert "\n" not in str(caught.value)
    run(tmp_path, network(), steps=2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"task": gaussians(3)}, r"task\.tasks\[0\]\.points\.num_features must stay 2 .*; got 3\."),
        ({"task": gaussians(2, 2)}, r"the number of task\.tasks must stay 1 .*; got 2\."),
        ({"task": KMeansTask(clusters=(2,))}, "task must stay 'OneOf' .*; got 'KMeansTask'"),
        ({"loss": other_loss}, "loss must stay 'paper_loss' .*; got 'other_loss'"),
    ],
)
def test_a_run_goes_on_only_with_its_own_task_and_loss(
    other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    def cuts() -> DiCoNet:
        return DiCoNet(SetSplit(2, 4, 1), depth=1)

    run(tmp_path, cuts(), task=gaussians(2))
    with pytest.raises(ValueError, match=message):
        run(tmp_path, cuts(), steps=2, **({"task": gaussians(2)} | other))
    run(tmp_path, cuts(), steps=2, task=gaussians(2))


def test_what_is_trained_is_named_before_how(tmp_path: Path) -> None:
    run(tmp_path, network())
    config = TrainConfig(batch_size=2, tree_samples=1, max_size=8)
    with pytest.raises(ValueError, match=r"growth\.depth must stay 1"):
        train(
            network(depth=0), HullTask(), config, oracle=HullTask().oracle, run=tmp_path, quiet=True
        )


def test_a_loss_is_told_with_its_arguments(tmp_path: Path) -> None:
    def cuts() -> DiCoNet:
        return DiCoNet(GraphSplit(2, 4, 1), depth=1)

    task = gaussians(2)
    run(tmp_path, cuts(), task=task, loss=partial(branch_loss, last=3))
    message = r"loss must stay 'branch_loss\(last=3\)' .*; got 'branch_loss(\(last=2\))?'\."
    for other in (branch_loss, partial(branch_loss, last=2)):
        with pytest.raises(ValueError, match=message):
            run(tmp_path, cuts(), steps=2, task=task, loss=other)
    run(tmp_path, cuts(), steps=2, task=task, loss=partial(branch_loss, last=3))


@pytest.mark.parametrize("junk", [b"", b"junk", b"PK\x03\x04 junk"])
def test_a_checkpoint_that_is_none_is_one_line(junk: bytes, tmp_path: Path) -> None:
    run(tmp_path, network())
    (tmp_path / "checkpoint.pt").write_bytes(junk)
    with pytest.raises(ValueError, match=r"checkpoint\.pt must be the checkpoint of a run"):
        run(tmp_path, network(), steps=2)


def without_what_it_trains(folder: Path) -> None:
    """As run folders were written when they only kept how they train."""
    settings = json.loads((folder / "config.json").read_text())
    del settings["trains"]
    (folder / "config.json").write_text(json.dumps(settings))


def test_an_older_run_folder_goes_on(tmp_path: Path) -> None:
    run(tmp_path, network())
    without_what_it_trains(tmp_path)
    run(tmp_path, network(), steps=2)
    assert json.loads((tmp_path / "config.json").read_text())["trains"]["growth"]["depth"] == 1


def test_weights_that_do_not_fit_are_one_line(tmp_path: Path) -> None:
    run(tmp_path, network())
    without_what_it_trains(tmp_path)
    message = r"the weights in .*checkpoint\.pt do not fit the network: .*merge"
    with pytest.raises(ValueError, match=message) as caught:
        run(tmp_path, network(width=8), steps=2)
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Grid:
    """A task with settings of every kind."""

    table: torch.Tensor
    names: dict[str, float]
    num_features: int = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> Any:
        return HullTask().sample(num_sets, set_size, rng=rng)

    def reward(self, sets: Any, solution: Any) -> torch.Tensor:
        return torch.zeros(len(sets))


def test_a_task_of_one_s_own_is_told_as_far_as_json_can(tmp_path: Path) -> None:
    cuts = DiCoNet(SetSplit(2, 4, 1), depth=1)
    run(tmp_path, cuts, task=Grid(torch.zeros(2, 3), {"a": 1.0}))
    told = json.loads((tmp_path / "config.json").read_text())["trains"]["task"]
    table = {"class": "Tensor", "shape": [2, 3]}
    assert told == {"class": "Grid", "table": table, "names": {"a": 1.0}, "num_features": 2}
    with pytest.raises(ValueError, match=r"task\.names\.a must stay 1\.0 .*; got 2\.0"):
        run(tmp_path, cuts, steps=2, task=Grid(torch.zeros(2, 3), {"a": 2.0}))


class Nameless(nn.Module):
    """A split of a user's own that does not say what makes it again."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = SetSplit(2, 4, 1)

    def forward(self, sets: Any, seeds: Any) -> Cut:
        return self.inner(sets, seeds)


def test_a_module_without_a_config_is_found_before_it_trains(tmp_path: Path) -> None:
    def step(*_: Any) -> Any:
        pytest.fail("trained")

    message = "Nameless must have a config, a dict of its constructor's arguments"
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "run", network(Nameless()), loss=step)
    assert not (tmp_path / "run").exists()


def test_a_module_with_a_config_trains_and_is_kept(tmp_path: Path) -> None:
    split = Nameless()
    split.config = {}  # type: ignore[assignment]
    run(tmp_path / "run", network(split))
    assert (tmp_path / "run" / "weights.safetensors").exists()


def test_metrics_hold_no_number_that_json_has_not(tmp_path: Path) -> None:
    config = TrainConfig(steps=1)
    folder = RunFolder(tmp_path, config, network(), HullTask(), paper_loss)
    folder._open(0)
    folder.log({"step": 1, "loss": float("nan")})
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1, "loss": null}\n'


def test_tensorboard_gets_the_metrics_from_where_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Writer:
        def __init__(self, path: Path, purge_step: int) -> None:
            self.path, self.purge_step, self.seen = path, purge_step, {}
            made.append(self)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.seen[name, step] = value

    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer)
    )
    folder = RunFolder(tmp_path, TrainConfig(steps=9), network(), HullTask(), paper_loss)
    folder._open(5)
    folder.log({"step": 6, "loss": 0.5})
    (writer,) = made
    assert (writer.path, writer.purge_step) == (tmp_path / "tensorboard", 6)
    assert writer.seen == {("loss", 6): 0.5}


HOLDER = """
import sys, time
from pathlib import Path
from diconet.learn.run_folder import FolderLock
FolderLock(Path(sys.argv[1])).take()
print("taken", flush=True)
time.sleep(60)
"""


def test_two_runs_in_one_folder_are_refused_and_a_killed_one_holds_nobody_up(
    tmp_path: Path,
) -> None:
    source = Path(__file__).parents[2] / "src"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    with holder:
        holder.stdout.readline()
        message = rf"run must be a folder that no other run uses; process {holder.pid} trains in"
        with pytest.raises(ValueError, match=message):
            run(tmp_path, network())
        holder.kill()
    assert (tmp_path / "lock").exists()
    run(tmp_path, network())
    assert not (tmp_path / "lock").exists()


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, network())
    before = (tmp_path / "checkpoint.pt").read_bytes()
    fsync = os.fsync

    def full(file: int) -> None:
        if "checkpoint" in os.readlink(f"/proc/self/fd/{file}"):
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run(tmp_path, network(), steps=2)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    assert not list(tmp_path.glob(".checkpoint*"))
    monkeypatch.undo()
    run(tmp_path, network(), steps=2)


def test_what_a_kill_left_of_a_write_is_cleared_away_and_weights_catch_up(tmp_path: Path) -> None:
    run(tmp_path, network())
    (tmp_path / ".checkpoint.pt.x1").write_bytes(b"half")
    kept = {k: v.clone() for k, v in load_file(tmp_path / "weights.safetensors").items()}
    (tmp_path / "weights.safetensors").write_bytes(b"older")
    before = (tmp_path / "checkpoint.pt").stat().st_mtime - 10
    os.utime(tmp_path / "weights.safetensors", (before, before))
    run(tmp_path, network())
    again = load_file(tmp_path / "weights.safetensors")
    assert all(torch.equal(value, again[name]) for name, value in kept.items())
    assert not list(tmp_path.glob(".*"))


def test_weights_say_the_seed_and_the_steps(tmp_path: Path) -> None:
    run(tmp_path, network(), steps=2)
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        notes = file.metadata()
    assert (notes["seed"], notes["steps"]) == ("0", "2")
