"""Every problem and the gallery, trained and solved where tensors do not lie on the CPU.

The device is made up; see `tests/made_up_device.py`. What comes out must be what comes out here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from diconet.cli import main
from diconet.core.answers import Sequences, Values
from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.core.weights import save
from diconet.learn import TrainConfig, train
from diconet.nets.default import network_for
from diconet.problems.algorithms import recipe as algorithms
from diconet.problems.catalog import find_problem
from diconet.problems.hull import recipe as hull
from diconet.problems.hull import train_rows
from diconet.problems.kmeans import recipe as kmeans
from diconet.problems.knapsack import recipe as knapsack
from diconet.problems.problem import Instances, Problem
from diconet.problems.tsp import recipe as tsp
from tests.made_up_device import DeviceError, Elsewhere, MadeUpDevice

SHORT = TrainConfig(
    steps=2, batch_size=2, tree_samples=2, min_size=6, max_size=9, log_every=1, evaluate_every=2
)
CLOSE = {"atol": 1e-4, "rtol": 1e-3}

_TRIPLES = hull.TripleSettings(
    resolutions=(1e-1,), split_width=4, split_layers=1, leaf_size=4, split_train=SHORT
)
_ROWS = hull.PointerSettings(
    width=8, split_width=4, split_layers=1, halve_to=4, alone_steps=2, hard_steps=2
)
_GRAPH = {"width": 4, "num_layers": 2, "points_each": 4, "train": SHORT}
_TSP = {"width": 4, "num_layers": 1, "num_labels": 4, "label_seconds": 0.001, "train": SHORT}
_MORE = {"min_size": 40, "max_size": 60}

CASES: dict[str, Any] = {
    "hull default": hull.Settings("triples", SHORT, triples=_TRIPLES),
    "hull rows": hull.Settings("diconet_reg", SHORT, pointer=_ROWS),
    "kmeans default": kmeans.Settings(
        width=4,
        points_each=10,
        train=replace(SHORT, **_MORE),
        second=replace(SHORT, **_MORE),
    ),
    "kmeans graph": kmeans.Settings("graph", clusters=(4,), **_GRAPH),
    "kmeans softmax": kmeans.Settings("softmax", clusters=(3,), **_GRAPH),
    "knapsack default": knapsack.Settings(width=4, train=SHORT),
    "knapsack paper": knapsack.Settings("fill", width=4, num_layers=2, train=SHORT),
    "tsp default": tsp.Settings(leaf_size=5, **_TSP),
    "tsp bs1": tsp.Settings("pairs", **_TSP),
    "tsp pairs": tsp.Settings("pairs", leaf_size=5, binarise=True, **_TSP),
    "sort default": algorithms.Recipe("sort").Settings(SHORT),
    "subarray default": algorithms.Recipe("subarray").Settings(SHORT),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is logged on the way is measured at one small size."""
    monkeypatch.setattr(train_rows, "WATCHED", (6,))
    monkeypatch.setattr(knapsack, "SIZES", (8,))
    # fast-tsp goes by the clock, so both trainings get the same labels
    monkeypatch.setattr(tsp, "labels", cache(tsp.labels))


def prepared(name: str, folder: Path) -> tuple[Problem, Any]:
    """A problem and its settings; the paper's network for tours is given its leaves."""
    problem, settings = find_problem(name.split()[0]), CASES[name]
    if name == "tsp pairs":
        leaf = folder / "leaf.safetensors"
        save(tsp.build(replace(settings, leaf=None)), leaf, half=False)
        settings = replace(settings, leaf=str(leaf))
    if name.startswith("tsp"):  # made before there is another device
        tsp.labels(settings)
    return problem, settings


def assert_same(here: DiCoNet, there: DiCoNet) -> None:
    for ours, theirs in zip(here.parameters(), there.parameters(), strict=True):
        assert isinstance(theirs, Elsewhere)
        torch.testing.assert_close(ours, theirs.inner, **CLOSE)


def answers(problem: Problem, instances: Instances, **how: Any) -> list[dict[str, Any]]:
    return [solution.record() for solution in problem.solve(instances, **how)]


@pytest.mark.parametrize("name", CASES)
def test_a_problem_learns_and_answers_there_as_it_does_here(name: str, tmp_path: Path) -> None:
    problem, settings = prepared(name, tmp_path)
    here = problem.recipe.train_model(settings, tmp_path / "here", quiet=True)
    with MadeUpDevice() as device:
        there = problem.recipe.train_model(settings, tmp_path / "there", quiet=True, device=device)
    assert_same(here, there)
    instances = problem.fresh(24, 2, seed=0)
    if name == "kmeans softmax":  # which labels, and divides nothing
        sets = settings.task().sample(2, 12, rng=torch.Generator().manual_seed(0))
        with MadeUpDevice() as device, torch.no_grad():
            labels = to_host(there.split(sets.to(device))[0])
        assert labels.tolist() == here.split(sets)[0].tolist()
        return
    found = [answers(problem, instances, model=here, seed=seed) for seed in (None, 3)]
    with MadeUpDevice() as device:
        for seed, expected in zip((None, 3), found, strict=True):
            assert answers(problem, instances, model=here, seed=seed, device=device) == expected


EXAMPLES = {
    "two_means": "TwoMeans",
    "max_cut": "MaxCut",
    "graph_colouring": "Colouring",
    "bisection": "Bisection",
    "sorting": "Sorting",
    "skyline": "Skyline",
    "makespan": "Makespan",
    "facility": "Facility",
    "decision_tree": "PureLeaves",
    "routes": "Routes",
}


class Middle:
    """A number per set or a label, from numbers; or a path through them: what no example has."""

    num_features = 2

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.randn(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def oracle(self, sets: SetBatch) -> Any:
        middle = sets.mean(sets.items[:, 0])
        if self.answer == "path":
            return Sequences(sets.position, sets.sizes)
        return Values((middle > 0).long() if self.answer == "label" else middle)

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        if self.answer == "path":
            rows = solution.rows(sets)
            return -sets.mean((sets.items[rows] - sets.items[rows.roll(1)]).norm(dim=1))
        return -(solution.values - self.oracle(sets).values).abs().float()


def task_of(name: str) -> Any:
    if name not in EXAMPLES:
        return Middle(name)
    if name == "routes" and not util.find_spec("pyvrp"):
        pytest.skip("needs pyvrp")
    return getattr(import_module(name), EXAMPLES[name])()


@pytest.mark.parametrize("name", [*EXAMPLES, "number", "label", "path"])
def test_a_task_learns_and_answers_there_as_it_does_here(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "examples"))
    task = task_of(name)

    def made() -> DiCoNet:
        torch.manual_seed(0)
        return network_for(task, width=8, num_layers=2)

    here, there = train(made(), task, SHORT, quiet=True), made()
    sets = task.sample(2, 9, rng=torch.Generator().manual_seed(0))
    with MadeUpDevice() as device:
        train(there, task, SHORT, device=device, quiet=True)
    assert_same(here, there)
    with torch.no_grad():
        ours = here(sets)
        with MadeUpDevice() as device:
            theirs = here.to(device)(sets.to(device))
            score = to_host(task.reward(sets.to(device), theirs.solution))
            leaves = to_host(theirs.tree.leaves)
    assert leaves.tolist() == ours.tree.leaves.tolist()
    assert score.tolist() == pytest.approx(task.reward(sets, ours.solution).tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda sizes: sizes.cpu(), "a copy to the CPU must go through"),
        (lambda sizes: sizes.numpy(), "an array must come from core/host.py"),
        (lambda sizes: torch.arange(len(sizes)), "torch.arange must say a device"),
    ],
)
@pytest.mark.parametrize("name", [name for name in CASES if name != "kmeans softmax"])
def test_a_planted_fault_is_found(
    name: str,
    fault: Callable[[Tensor], Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In what every tree goes through, so that training and solving both come by it."""
    cuts = Growth.cuts

    def planted(self: Growth, sizes: Tensor) -> Tensor:
        fault(sizes)
        return cuts(self, sizes)

    problem, settings = prepared(name, tmp_path)
    model = problem.recipe.train_model(settings, tmp_path / "here", quiet=True)
    instances = problem.fresh(24, 1, seed=0)
    monkeypatch.setattr(Growth, "cuts", planted)
    answers(problem, instances, model=model)  # which is fine on the CPU
    with MadeUpDevice() as device:
        with pytest.raises(DeviceError, match=message):
            answers(problem, instances, model=model, device=device)
        with pytest.raises(DeviceError, match=message):
            problem.recipe.train_model(settings, tmp_path / "there", quiet=True, device=device)


POINTS = "x,y\n0,0\n1,0\n1,1\n0.1,1\n"


@pytest.mark.parametrize(
    "command",
    [
        ["solve", "hull", "points.csv"],
        ["evaluate", "hull", "--sizes", "5", "--num-sets", "1"],
        ["train", "hull", "--quiet"],
    ],
)
def test_a_device_that_is_not_there_is_one_line(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text(POINTS)
    with pytest.raises(SystemExit):
        sys.exit(main([*command, "--device", "nowhere"]))
    error = capsys.readouterr().err
    assert error.strip().endswith("device must be available to torch here; got 'nowhere'.")
    assert len(error.strip().splitlines()) == 1
