"""What dividing and learning do, at equal time; and the splits that only this compares."""

from typing import Any

import numpy as np
import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.nets.axes import AcrossSplit
from diconet.problems.tsp.ablate import RandomLine, SureSplit, ablate, length_within
from diconet.problems.tsp.edges import EdgeMerge
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists


def test_every_way_is_measured_with_its_error() -> None:
    torch.manual_seed(0)
    model = DiCoNet(AcrossSplit(), EdgeMerge.fresh(8, 1), Growth(leaf_size=90))
    records = ablate(0.2, (150,), num_sets=2, model=model)
    ways = {(record["division"], record["scores"], record["tours"]) for record in records}
    assert ways == {
        ("none", "learned", "many"),
        ("none", "lengths", "many"),
        ("random", "learned", "many"),
        ("median", "learned", "many"),
        ("median", "learned", "1"),
        ("median", "lengths", "many"),
        ("learned", "learned", "many"),
    }
    assert all(record["ratio"] == pytest.approx(1, abs=0.02) for record in records)
    assert all(np.isfinite(record["error"]) for record in records)


def test_ways_are_compared_on_the_same_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets differ in length by more than ways do; that must not count as error."""
    scale = iter([1.0, 3.0, 2.0])

    def found(*_: object) -> dict[tuple[str, str, bool], float]:
        length = next(scale)
        return {("none", "learned", True): 1.02 * length, ("median", "learned", True): length}

    monkeypatch.setattr("diconet.problems.tsp.ablate._of_one", found)
    flat, usual = ablate(1.0, (10,), num_sets=3)
    assert (usual["ratio"], usual["error"]) == (1, 0)
    assert flat["ratio"] == pytest.approx(1.02)
    assert flat["error"] == pytest.approx(0, abs=1e-9)


def test_a_sure_split_cuts_where_few_likely_edges_cross() -> None:
    """Two rows of cities, tied along each row: the cut must fall between the rows."""
    x = torch.arange(10.0).repeat(2)
    y = torch.arange(2.0).repeat_interleave(10)
    sets = SetBatch.of([torch.stack([x, y], 1)])
    along = torch.tensor([[i, i + 1] for i in [*range(9), *range(10, 19)]])
    cut = SureSplit(along, torch.ones(len(along)))(sets, None)
    assert cut.side[:10].unique().numel() == cut.side[10:].unique().numel() == 1
    assert cut.side[0] != cut.side[-1]


def test_a_random_line_leaves_both_sides_something() -> None:
    sets = SetBatch.of([torch.rand(40, 2, generator=torch.Generator().manual_seed(0))])
    for seed in range(5):
        share = RandomLine()(sets, torch.tensor([seed])).side.float().mean()
        assert 0.1 < share < 0.9


def test_tours_are_crossed_only_where_asked_and_many_cities_only_through_a_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 150
    metric = Metric.of(np.random.default_rng(0).random((n, 2)))
    near = candidate_lists(metric.xy)
    edges = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()], 1).astype(np.int32)
    edges = edges[edges[:, 1] >= 0]
    how = (metric, edges, np.zeros(len(edges)), near)
    asked: list[int] = []

    def crossed(metric: Metric, near: np.ndarray, tour: np.ndarray, *_: object, **how: int) -> Any:
        asked.append(how["leaf"])
        return tour

    monkeypatch.setattr("diconet.problems.tsp.ablate.crossed", crossed)
    for split in (AcrossSplit(), None):
        assert length_within(0.1, *how, split, 0, many=False) < np.inf
    assert not asked
    for split in (AcrossSplit(), None):
        length_within(0.1, *how, split, 0)
    assert asked[0] < n < asked[1]
    monkeypatch.setattr("diconet.problems.tsp.ablate.MANY", n - 1)
    for split in (AcrossSplit(), None):
        length_within(0.1, *how, split, 0)
    assert len(asked) == 3
