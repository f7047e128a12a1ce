"""Straight cuts found on a sample, made on any points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diconet.problems.kmeans.problem import PROBLEM
from diconet.problems.kmeans.solve import budgeted_split
from diconet.problems.networks import as_network
from diconet.scale.division import Division, MedianSplit, Sample
from diconet.scale.work import gathered

HEAPS = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]], 500, axis=0)
POINTS = HEAPS + np.random.default_rng(2).standard_normal(HEAPS.shape)


def learned() -> Any:
    return budgeted_split(as_network(PROBLEM, None))


@pytest.mark.parametrize("split", [MedianSplit(), MedianSplit(0.6), learned()], ids=str)
def test_cells_hold_at_most_what_they_may_and_not_much_less(split: Any) -> None:
    division = Division.by_size(split, POINTS, 300)
    sizes = np.bincount(division.cells(POINTS), minlength=len(division))
    assert sizes.max() <= 300
    assert sizes.min() >= 300 // 4
    assert sizes.sum() == len(POINTS)


def test_medians_cut_the_longer_side_in_half() -> None:
    points = np.random.default_rng(0).random((1_000, 2)) * [3, 1]
    cells = Division.by_size(MedianSplit(), points, 500).cells(points)
    assert np.bincount(cells).tolist() == [500, 500]
    assert ((points[:, 0] > np.median(points[:, 0])) == cells).mean() > 0.98


def test_the_learned_cut_goes_between_heaps() -> None:
    cells = Division.by_budget(learned(), POINTS, 4, 1).cells(POINTS)
    for heap in range(4):
        assert len(np.unique(cells[heap * 500 : (heap + 1) * 500])) <= 2
        assert np.bincount(cells[heap * 500 : (heap + 1) * 500]).max() > 480


@pytest.mark.parametrize("most", [1, 5, 64])
def test_a_budget_is_shared_out(most: int) -> None:
    division = Division.by_budget(learned(), POINTS, 37, most)
    assert division.budgets.sum() == 37
    assert division.budgets.max() <= most
    assert len(division.budgets) == len(division)


def test_far_from_the_origin_cells_are_the_same() -> None:
    near = Division.by_size(learned(), POINTS, 100)
    far = Division.by_size(learned(), POINTS + 2.0**30, 100)
    different = near.cells(POINTS) != far.cells(POINTS + 2.0**30)
    assert different.mean() < 0.01


def test_equal_points_are_one_cell() -> None:
    points = np.ones((100, 2))
    assert len(np.unique(Division.by_size(learned(), points, 10).cells(points))) == 1


def test_a_sample_stands_for_all_rows() -> None:
    many, few = np.zeros((9_000, 1)), np.ones((1_000, 1))
    sample = gathered([Sample.of(rows, 200, [0]) for rows in (many, few)])
    assert sample.weights.sum() == 10_000
    assert sample.evened().mean() == pytest.approx(0.1, abs=0.01)
