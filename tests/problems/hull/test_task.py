from __future__ import annotations

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch
from diconet.problems.hull.task import HullTask, exact, hull_of, metrics, signed_area, vertex_f1


@pytest.fixture
def square() -> SetBatch:
    """The corners of the unit square, counter-clockwise, and its middle."""
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
    return SetBatch.of([points])


def cycle(*places: int) -> Sequences:
    return Sequences.of([torch.tensor(places)])


def test_oracle_runs_counter_clockwise_from_the_lowest_index(square: SetBatch) -> None:
    assert HullTask().oracle(square).places.tolist() == [0, 1, 2, 3]
    assert signed_area(square, cycle(0, 1, 2, 3)).item() == 1.0
    assert signed_area(square, cycle(3, 2, 1, 0)).item() == -1.0


def test_exactness_is_of_the_whole_cycle_wherever_it_starts() -> None:
    right = cycle(0, 1, 2, 3)
    assert exact(cycle(2, 3, 0, 1), right).item()
    assert not exact(cycle(0, 2, 1, 3), right).item()  # wrong order
    assert not exact(cycle(3, 2, 1, 0), right).item()  # wrong way round
    assert not exact(cycle(0, 1, 2), right).item()  # one short
    assert not exact(cycle(0, 1, 2, 4), right).item()


def test_exactness_set_by_set() -> None:
    found = Sequences.of([torch.tensor([1, 2, 0]), torch.tensor([0, 1]), torch.tensor([2, 1, 0])])
    expected = Sequences.of(
        [torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])]
    )
    assert exact(found, expected).tolist() == [True, False, False]


def test_f1_and_area_by_hand(square: SetBatch) -> None:
    """Three of four corners and the middle: precision 3/4, recall 3/4, area 1/2 + nothing."""
    found, right = cycle(0, 1, 2, 4), cycle(0, 1, 2, 3)
    assert vertex_f1(square, found, right).item() == pytest.approx(0.75)
    report = {name: each.item() for name, each in metrics(square, found, right).items()}
    assert report == pytest.approx({"accuracy": 0.0, "area": 50.0, "f1": 75.0})


def test_no_answer_covers_more_than_all() -> None:
    """Twice around nearly the same triangle."""
    outer = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    twice = SetBatch.of([torch.cat([outer, 0.98 * outer + 0.005])])
    assert signed_area(twice, cycle(0, 1, 2, 3, 4, 5)) > 0.9
    measured = metrics(twice, cycle(0, 1, 2, 3, 4, 5), cycle(0, 1, 2))
    assert measured["area"].item() == pytest.approx(100)


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([[0.3, 0.2]], [0]),
        ([[0.3, 0.2], [0.3, 0.2]], [0]),
        ([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]], [0, 1]),
        ([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0]], [0, 2, 3]),
    ],
    ids=["one point", "twice the same", "a line", "a point on an edge"],
)
def test_hulls_without_area_or_with_idle_points(
    points: list[list[float]], corners: list[int]
) -> None:
    assert hull_of(np.array(points)).tolist() == corners


def test_sampling_is_by_the_generator() -> None:
    def draw(seed: int) -> torch.Tensor:
        return HullTask().sample(3, 5, rng=torch.Generator().manual_seed(seed)).items

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    assert draw(1).shape == (15, 2)
