from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, PartitionTree
from diconet.learn import Loss, TrainConfig, paper_loss, train
from diconet.learn.batches import batch_at
from diconet.learn.processes import Group
from diconet.nets.pointer import PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask

SCRIPT = """
import sys, torch
torch.set_num_threads(1)
from tests.learn.test_train import small_run
small_run(sys.argv[1], int(sys.argv[2]), merge_optimiser=sys.argv[3])
"""
ELSEWHERE = """
import os, sys, torch
torch.set_num_threads(1)
from tests.learn.test_train import small_run
rank = os.environ["RANK"]
model = small_run(f"{sys.argv[1]}/disk{rank}", int(sys.argv[2]), schedule="epoch")
torch.save(model.state_dict(), f"{sys.argv[1]}/{rank}.pt")
"""
ROOT = Path(__file__).parents[2]
HERE = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "OMP_NUM_THREADS": "1"}


def small_model() -> DiCoNet:
    torch.manual_seed(int(os.environ.get("RANK", "0")))  # only the first one's weights count
    return DiCoNet(SetSplit(2), PointerMerge(2, 16), Growth(halve_to=5.0))


def small_run(folder: str | Path, steps: int = 12, **changes: Any) -> DiCoNet:
    small = {"batch_size": 8, "tree_samples": 2, "min_size": 5, "max_size": 14}
    options: dict[str, Any] = small | {"schedule": "cosine"} | changes
    config = TrainConfig(steps=steps, regulariser=0.5, log_every=1, checkpoint_every=3, **options)
    task = HullTask()
    return train(small_model(), task, config, oracle=task.oracle, run=folder, quiet=True)


def in_two_processes(script: Path, *arguments: object) -> None:
    """Runs a script under torchrun, which starts both processes again if one dies.

    Very rarely a thread of gloo aborts a process that has finished, because it still frees a tensor
    while Python shuts down (github.com/pytorch/pytorch/issues/190489). A run started again goes on.
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    subprocess.run(
        [*torchrun, "--standalone", "--max_restarts=2", script, *map(str, arguments)],
        check=True,
        cwd=ROOT,
        env=os.environ | HERE,
        timeout=300,
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint.pt", weights_only=True)["model"]


@pytest.mark.parametrize("optimiser", ["adam", "adamax"])
def test_a_killed_run_goes_on_to_the_very_same_weights(optimiser: str, tmp_path: Path) -> None:
    """SIGKILL somewhere in the middle, then resume: bit for bit the uninterrupted run."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    small_run(whole, steps=24, merge_optimiser=optimiser)
    command = [sys.executable, "-c", SCRIPT, cut, "24", optimiser]
    process = subprocess.Popen(command, env=os.environ | HERE, cwd=ROOT)
    deadline = time.monotonic() + 120
    while not (cut / "checkpoint.pt").exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = torch.load(cut / "checkpoint.pt", weights_only=True)["step"]
    assert 3 <= before < 24
    small_run(cut, steps=24, merge_optimiser=optimiser)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(cut)[name]), name
    lines = (cut / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["step"] for one in records if "loss" in one] == list(range(1, 25))


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    small_run(tmp_path, steps=6)
    before = weights(tmp_path)
    small_run(tmp_path, steps=6)
    assert all(torch.equal(v, weights(tmp_path)[k]) for k, v in before.items())


def test_a_run_goes_on_only_with_its_own_settings(tmp_path: Path) -> None:
    small_run(tmp_path, steps=3)
    with pytest.raises(ValueError, match=r"merge_lr must stay 0\.003 to resume .*; got 0\.1\."):
        small_run(tmp_path, steps=6, merge_lr=0.1)
    small_run(tmp_path, steps=6)


def test_ctrl_c_keeps_the_step_under_way(tmp_path: Path) -> None:
    task = HullTask()
    config = TrainConfig(steps=50, batch_size=4, checkpoint_every=1_000, evaluate_every=2)

    def press(model: DiCoNet) -> dict[str, float]:
        signal.raise_signal(signal.SIGINT)
        return {}

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"after step 2, of 50 steps; the run is in"):
        train(
            small_model(),
            task,
            config,
            oracle=task.oracle,
            run=tmp_path,
            evaluate=press,
            quiet=True,
        )
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_others_may_read_a_run_as_they_may_any_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    small_run(tmp_path / "run", steps=3)
    files = [path for path in (tmp_path / "run").iterdir() if path.name != "tensorboard"]
    modes = {path.name: path.stat().st_mode for path in files}
    assert modes == dict.fromkeys(modes, (tmp_path / "plain").stat().st_mode)
    assert set(modes) == {"checkpoint.pt", "config.json", "metrics.jsonl", "weights.safetensors"}


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    small_run(tmp_path / "a", steps=3)
    small_run(tmp_path / "b", steps=3, seed=1)
    a, b = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert not torch.equal(a["split.head.weight"], b["split.head.weight"])


@pytest.mark.parametrize("optimiser", ["adam", "adamax"])
def test_two_processes_learn_what_one_does(optimiser: str, tmp_path: Path) -> None:
    """The same examples and draws, spread over two processes: the same weights within rounding.

    The second begins with other weights, and some steps have sets too small to cut.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    small_run(one, steps=24, merge_optimiser=optimiser)
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    in_two_processes(script, two, 24, optimiser)
    for name, value in weights(one).items():
        assert torch.allclose(value, weights(two)[name], atol=2e-5), name


def test_a_run_of_two_processes_goes_on_as_it_was(tmp_path: Path) -> None:
    """The second process has no run folder to read: it begins as the first one tells it."""
    script = tmp_path / "run.py"
    script.write_text(ELSEWHERE)
    for steps in (6, 12):
        in_two_processes(script, tmp_path, steps)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in "01")
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    whole = small_run(tmp_path / "whole", steps=12, schedule="epoch").state_dict()
    for name, value in whole.items():
        assert torch.allclose(value, first[name], atol=2e-5), name


def test_shards_of_a_batch_are_the_batch(rng: torch.Generator) -> None:
    task, config = HullTask(), TrainConfig(batch_size=6, tree_samples=2)
    whole = batch_at(7, task, None, config)
    parts = [batch_at(7, task, None, config, Group(rank, 3)) for rank in range(3)]
    assert torch.equal(whole.sets.items, torch.cat([p.sets.items for p in parts]))
    assert torch.equal(whole.seeds, torch.cat([p.seeds for p in parts]))


def test_a_few_examples_can_be_learned_by_heart(tmp_path: Path) -> None:
    class Few(HullTask):
        def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator):
            return super().sample(num_sets, 6, rng=torch.Generator().manual_seed(0))

    torch.manual_seed(0)
    model = DiCoNet(RandomSplit(), PointerMerge(2, 32), depth=0)
    config = TrainConfig(
        steps=120, batch_size=4, tree_samples=1, merge_lr=0.02, schedule="cosine", warmup=5
    )
    task = Few()
    train(model, task, config, oracle=task.oracle, quiet=True)
    sets = task.sample(4, 6, rng=torch.Generator())
    log_prob = model(sets, target=task.oracle(sets)).log_prob
    assert log_prob.mean() > -0.1


def test_the_regulariser_alone_balances_a_split() -> None:
    from diconet.core.tree import grow
    from diconet.learn.estimators import split_variance

    class Silent(HullTask):
        def reward(self, sets, solution):
            return torch.zeros(len(sets))

    torch.manual_seed(0)
    model = DiCoNet(SetSplit(2), depth=1)
    config = TrainConfig(
        steps=150, batch_size=16, regulariser=1.0, tree_samples=2, max_size=20, split_lr=0.01
    )
    train(model, Silent(), config, quiet=True)
    sets = HullTask().sample(50, 20, rng=torch.Generator().manual_seed(3))
    tree = grow(model.split, sets, Growth(depth=1))
    assert split_variance(tree) > 0.2
    share = sets.mean(tree.leaves.float())
    assert 0.25 < share.mean() < 0.75


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, r"steps must be at least 1; got 0\."),
        ({"min_size": 9, "max_size": 8}, r"max_size must be at least min_size, 9; got 8\."),
        ({"split_lr": 0.0}, r"split_lr must be above 0; got 0\.0\."),
    ],
)
def test_settings_that_make_no_sense(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


def test_on_a_log_scale_all_doublings_of_the_size_are_equally_likely() -> None:
    """Sizes 6 to 47 are three doublings; on the linear scale the last one has 24 of 42 sizes."""
    how: dict[str, Any] = {"min_size": 6, "max_size": 47, "batch_size": 1, "tree_samples": 1}
    for scale, expected in (("log", (1 / 3, 1 / 3)), ("linear", (6 / 42, 12 / 42))):
        config = TrainConfig(size_scale=scale, **how)
        drawn = [int(batch_at(step, HullTask(), None, config).sets.sizes) for step in range(600)]
        assert (min(drawn), max(drawn)) == (6, 47)
        small = sum(size < 12 for size in drawn), sum(12 <= size < 24 for size in drawn)
        assert [many / 600 for many in small] == pytest.approx(expected, abs=0.06)


def test_rates_fall_by_epoch_along_a_cosine_or_geometrically() -> None:
    by_epoch = TrainConfig(schedule="epoch", epoch_steps=10)
    assert [by_epoch.rate(s) for s in (0, 9, 10, 25)] == pytest.approx([1, 1, 1 / 2, 1 / 3])
    cosine = TrainConfig(schedule="cosine", steps=100, warmup=10)
    assert cosine.rate(0) == pytest.approx(0.1)
    assert cosine.rate(50) == pytest.approx(0.5)
    assert cosine.rate(99) < 0.001
    geometric = TrainConfig(schedule="geometric", steps=100, warmup=0, final_rate=1e-4)
    assert [geometric.rate(s) for s in (0, 50, 100)] == pytest.approx([1, 1e-2, 1e-4])


class Lengths(HullTask):
    """A reward alone: how many items lie on the second side."""

    def __init__(self, worth: float = 1.0) -> None:
        self.worth = worth

    def reward(self, sets: SetBatch, solution: PartitionTree) -> torch.Tensor:
        return self.worth * sets.sum(solution.leaves.float())


@pytest.mark.parametrize(
    ("changes", "loss"),
    [({"policy_from": 0.5}, paper_loss), ({"min_size": 1}, paper_loss)],
)
def test_steps_without_anything_to_learn_from_are_passed_over(
    changes: dict[str, Any], loss: Loss
) -> None:
    """Before the policy gradient sets in, or where sets of one item are never cut."""
    options: dict[str, Any] = {"min_size": 4, "batch_size": 4, "tree_samples": 2} | changes
    config = TrainConfig(steps=6, max_size=options["min_size"], **options)
    model = DiCoNet(SetSplit(2), depth=1)
    before = [p.clone() for p in model.parameters()]
    train(model, Lengths(), config, loss=loss, quiet=True)
    moved = any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert moved == ("policy_from" in changes)


def test_a_reward_that_is_never_finite_stops_the_run() -> None:
    config = TrainConfig(steps=30, batch_size=4, tree_samples=2)
    with pytest.raises(ValueError, match=r"no step from 1 to 20 had a finite gradient.*nan"):
        train(DiCoNet(SetSplit(2), depth=1), Lengths(float("nan")), config, quiet=True)


@pytest.mark.parametrize("name", ["log_every", "evaluate_every", "checkpoint_every"])
def test_nothing_happens_every_zero_steps(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be at least 1; got 0\."):
        TrainConfig(**{name: 0})


def test_a_merge_that_nothing_teaches_is_refused() -> None:
    model = DiCoNet(RandomSplit(), PointerMerge(2, 8), depth=1)
    with pytest.raises(ValueError, match="a trainable merge needs an oracle"):
        train(model, HullTask(), TrainConfig(steps=1), quiet=True)


def test_numbers_need_a_folder_to_go_to() -> None:
    with pytest.raises(ValueError, match="evaluate needs a run folder"):
        train(small_model(), HullTask(), TrainConfig(), oracle=HullTask().oracle, evaluate=dict)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("schedule", "cosin", "must be one of epoch, cosine, geometric; got 'cosin'"),
        ("split_optimiser", "sgd", "must be one of rmsprop, .*; got 'sgd'"),
        ("policy_from", 7.0, "must be a share of the run, from 0 to 1; got 7"),
        ("regulariser", float("nan"), "must be a finite number; got nan"),
        ("warmup", -1, "must be at least 0; got -1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(name: str, value: Any, message: str) -> None:
    config = TrainConfig()
    object.__setattr__(config, name, value)  # the types that tests check would refuse it before
    with pytest.raises(ValueError, match=f"{name} {message}"):
        config.__post_init__()
