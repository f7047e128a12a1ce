"""Anyone's task by its kind of answer: solved, measured and drawn by what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diconet import (
    Relations,
    Sequences,
    SetBatch,
    TrainConfig,
    Values,
    diagnose,
    network_for,
    train,
)
from diconet.core.model import DiCoNet
from diconet.core.segments import segment_sum
from diconet.core.tree import Growth
from diconet.nets.classic import MedianSplit
from diconet.problems.catalog import problems
from diconet.problems.general import TaskRecipe, TaskSettings
from diconet.problems.inputs import instances_of, sets_of
from diconet.problems.problem import Instances, Problem
from diconet.problems.task_solution import TaskSolution

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Points:
    """Sets of points, and an answer whose reward is how large it is."""

    answer: str = "partition"
    per_item: bool = False
    num_features: int = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.rand(num_sets * set_size, self.num_features, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: Any) -> torch.Tensor:
        if isinstance(solution, Sequences):
            return sets.sum(solution.mask(sets).float())
        if isinstance(solution, Values):
            values = solution.values.float()
            return values if solution.sizes is None else sets.mean(values)
        return sets.mean(solution.leaves.float())


class WithOracle(Points):
    """The right answer is to choose everything."""

    def oracle(self, sets: SetBatch) -> Sequences:
        return Sequences.where(sets, torch.ones(sets.num_items, dtype=torch.bool))


@dataclass(frozen=True)
class Ring(Points):
    """A ring of edges with one feature each; the reward is what is cut."""

    symmetric: bool = True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        sets = super().sample(num_sets, set_size, rng=rng)
        pairs = [torch.tensor([(i, (i + 1) % set_size) for i in range(set_size)])] * num_sets
        features = [torch.rand(set_size, 1, generator=rng) for _ in range(num_sets)]
        edges = Relations.of(pairs, features, symmetric=self.symmetric)
        return SetBatch.pack(sets.items, sets.sizes, relations=edges)

    def reward(self, sets: SetBatch, solution: Any) -> torch.Tensor:
        source, target = sets.edges()
        cut = (solution.leaves[source] != solution.leaves[target]).float()
        return segment_sum(cut * sets.graph.features[:, 0], sets.graph.owner, len(sets))


@dataclass(frozen=True)
class Budgeted(Points):
    """Sets with two numbers of their own."""

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        sets = super().sample(num_sets, set_size, rng=rng)
        return SetBatch.pack(sets.items, sets.sizes, torch.rand(num_sets, 2, generator=rng))


def solved(task: Any, data: list[np.ndarray], **given: list[Any]) -> list[TaskSolution]:
    torch.manual_seed(0)
    names = [f"set {number}" for number in range(len(data))]
    found = Problem("mine", task).solve(Instances(names, data, given), model=network_for(task))
    assert all(isinstance(one, TaskSolution) for one in found)
    return found  # type: ignore[return-value]


KINDS: list[tuple[Any, str, str | None]] = [
    (Points(), "labels", "label"),
    (Points("subset"), "chosen", "chosen"),
    (Points("order"), "order", "place"),
    (Points("path"), "order", "place"),
    (Points("number"), "value", None),
    (Points("label"), "value", None),
    (Points("number", per_item=True), "values", "value"),
    (Points("label", per_item=True), "values", "value"),
    (Points("order", num_features=1), "order", "place"),
]


@pytest.mark.parametrize(
    ("task", "name", "column"), KINDS, ids=[f"{t.answer} {n}" for t, n, _ in KINDS]
)
def test_each_kind_of_answer(task: Any, name: str, column: str | None, tmp_path: Path) -> None:
    data = [RNG.random((size, task.num_features)) for size in (5, 3)]
    first, second = solved(task, data)
    record = first.record()
    assert list(record)[-1] == name
    assert record["items"] == 5
    frame = first.frame()
    if column is None:
        assert frame.to_dict("list") == {"value": [record["value"]]}
    else:
        assert list(frame.columns) == [*(f"x{i + 1}" for i in range(task.num_features)), column]
        cells = frame[column].tolist()
        if name in ("labels", "values"):
            assert cells == record[name]
        elif name == "chosen":
            assert [i for i, is_in in enumerate(cells) if is_in] == sorted(record[name])
        else:
            assert sorted(record[name], key=cells.__getitem__) == record[name]
            assert sorted(cells) == list(range(5))
    with torch.no_grad():
        torch.manual_seed(0)
        sets = SetBatch.of([torch.from_numpy(one).float() for one in data])
        rewards = task.reward(sets, network_for(task).eval()(sets).solution)
    assert [first.value, second.value] == pytest.approx(rewards.tolist())
    assert f"reward {first.value:.6g}" in first.quality()
    assert first.save_levels(tmp_path / "levels.png").stat().st_size > 1_000
    first.plot()


def test_the_oracles_reward_is_known_where_sets_are_small() -> None:
    small, large = RNG.random((4, 2)), RNG.random((60, 2))
    (one,) = solved(WithOracle("subset"), [small])
    assert one.oracle == 4
    assert one.record()["oracle"] == 4
    assert one.quality().endswith(", oracle 4")
    (one,) = solved(WithOracle("subset"), [large])
    assert one.oracle is None


# Edges and context.


@pytest.mark.parametrize("symmetric", [True, False])
def test_graphs_come_back_as_they_were(symmetric: bool) -> None:
    task = Ring(symmetric=symmetric)
    sets = task.sample(3, 6, rng=torch.Generator().manual_seed(1))
    instances = instances_of(sets, ["a", "b", "c"])
    again = sets_of(Problem("ring", task), instances)
    assert again.graph.symmetric == symmetric
    for name in ("source", "target", "features", "sizes"):
        assert torch.equal(getattr(again.graph, name), getattr(sets.graph, name))


def test_an_edge_may_be_given_once_or_both_ways() -> None:
    points = RNG.random((4, 2))
    once = np.array([[0, 1, 0.5], [1, 2, 0.25], [3, 0, 2]])
    both = np.concatenate([once, once[:, [1, 0, 2]]])
    (one,), (two,) = (solved(Ring(), [points], edges=[edges]) for edges in (once, both))
    assert one.value == pytest.approx(two.value)
    assert one.answer.tolist() == two.answer.tolist()
    cut = one.answer[once[:, 0].astype(int)] != one.answer[once[:, 1].astype(int)]
    assert one.value == pytest.approx(2 * float(once[cut, 2].sum()))  # each way counts


@pytest.mark.parametrize(
    ("task", "given", "message"),
    [
        (Ring(), {}, "edges must be given: mine is a task on graphs; .* set 0 has none."),
        (Points(), {"edges": [[[0, 1]]]}, "edges must not be given; mine is not a task on graphs"),
        (Ring(), {"edges": [[[0, 1]]]}, r"3 columns, source, target and 1 feat.*shape \(1, 2\)."),
        (Ring(), {"edges": [[[0, 3, 1]]]}, "items by index, 0 to 2; set 0 has 3."),
        (Ring(), {"edges": [[[0, 0.5, 1]]]}, "items by index, 0 to 2; set 0 has 0.5."),
        (Ring(), {"edges": [[[0, -1, 1]]]}, "items by index, 0 to 2; set 0 has -1."),
        (
            Ring(),
            {"edges": [[[0, 1, 1], [1, 0, 1], [1, 2, 1]]]},
            "once each, or all of them in both directions; set 0 has some twice.",
        ),
        (Budgeted(), {}, "context must hold 2 numbers per set for mine, .*; got 0."),
        (Budgeted(), {"context": [[1.0]]}, "context must hold 2 numbers .*; got 1."),
        (Points(), {"context": [3]}, "context must hold 0 numbers .*; got 1."),
        (Points(num_features=3), {}, r"items must have shape \(n, 3\); got \(3, 2\)."),
    ],
)
def test_inputs_refused(task: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solved(task, [RNG.random((3, 2))], **given)


def test_inputs_taken() -> None:
    points = RNG.random((3, 2))
    assert solved(Budgeted(), [points], context=[[1.0, 2.0]])
    (one,) = solved(Ring(), [points], edges=[[]])
    assert one.value == 0


# Quality.


def test_the_reward_stands_beside_other_divisions() -> None:
    task = Points("partition")
    model = DiCoNet(MedianSplit(), depth=1)
    records = Problem("mine", task).evaluate(model=model, sizes=[6], num_sets=5)
    assert [list(record) for record in records] == [["size", "metric", "value"]] * len(records)
    found = {record["metric"]: record["value"] for record in records}
    assert next(iter(found)) == "reward"
    assert {"random division", "median division", "no division"} <= set(found)
    assert found["no division"] == 0
    assert found["reward"] == found["median division"] == 0.5
    report = {row.division: row.score for row in diagnose(model, task, set_size=6, num_sets=5).rows}
    assert (found["reward"], found["median division"]) == (report["learned"], report["median"])


@pytest.mark.parametrize("name", ["hull", "kmeans", "knapsack"])
def test_ablate_takes_a_number_of_sets(name: str) -> None:
    size, seconds = {"hull": (20, 1e-6), "kmeans": (40, 1e-3), "knapsack": (10, 1e-3)}[name]
    (chosen,) = [one for one in problems() if one.name == name]
    for num_sets in (1, 2):
        records = chosen.ablate(seconds=seconds, sizes=[size], num_sets=num_sets)
        assert all(np.isfinite(one["error"]) == (num_sets > 1) for one in records)


def test_ablate_without_a_search_takes_no_seconds() -> None:
    with pytest.raises(ValueError, match="seconds must be left out"):
        Problem("points", Points()).ablate(seconds=1.0)


def test_with_an_oracle_its_answers_are_measured() -> None:
    torch.manual_seed(0)
    task = WithOracle("subset")
    problem = Problem("mine", task)
    records = problem.evaluate(model=network_for(task), sizes=[60], num_sets=2)
    assert records[-1] == {"size": 60, "metric": "oracle", "value": 60}


# Learning.


def weights_of(model: DiCoNet) -> list[torch.Tensor]:
    return list(model.state_dict().values())


@pytest.mark.parametrize("task", [Points(), Ring(), WithOracle("subset")])
def test_the_recipe_learns_as_the_library_call_does(task: Any, tmp_path: Path) -> None:
    config = TrainConfig(steps=3, batch_size=4, tree_samples=2, max_size=8, seed=5)
    made = TaskRecipe(Problem("mine", task)).train_model(
        TaskSettings(train=config), tmp_path / "run", quiet=True
    )
    torch.manual_seed(5)
    mine = train(network_for(task), task, config, quiet=True)
    assert all(map(torch.equal, weights_of(made), weights_of(mine)))
    torch.manual_seed(6)
    other = network_for(task)
    assert not all(map(torch.equal, weights_of(made), weights_of(other)))


def test_settings_that_are_given_go_to_the_network() -> None:
    assert TaskSettings().network() == {}
    given = TaskSettings(depth=2, split="cut", width=8, num_layers=1)
    assert given.network() == {"depth": 2, "split": "cut", "width": 8, "num_layers": 1}
    assert network_for(Points(), **given.network()).growth == Growth(depth=2)


# The page.


@pytest.mark.parametrize(
    ("task", "is_shown"),
    [(Points(), True), (Ring(), False), (Points(num_features=3), False), (Budgeted(), False)],
)
def test_the_page_shows_points_of_a_plane_only(task: Any, is_shown: bool) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    from diconet.web.app import create_app

    client = testing.TestClient(create_app([Problem("mine", task)]))
    listed = client.get("/api/problems").json()
    assert [one["name"] for one in listed] == ["mine"] * is_shown
