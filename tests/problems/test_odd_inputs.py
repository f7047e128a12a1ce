"""A few hundred odd inputs to every function; `benchmarks/fuzz.py` runs a hundred thousand."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import diconet
from tests.odd_inputs import CHECKS, SOLVE, Case, cases, exact_corners, fault


@pytest.mark.parametrize("task", list(SOLVE))
def test_odd_inputs_get_a_right_answer_or_a_line_of_ours(task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(one.kind, fault(one)) for one in islice(cases(task, seed=1), 120)]
    assert [one for one in found if one[1] is not None] == []


def test_the_checks_notice_what_is_wrong() -> None:
    """Each check, on a right answer and on the same with a fault planted."""
    rng = np.random.default_rng(0)
    points = rng.random((7, 2))
    hull, tour = diconet.convex_hull(points), diconet.tsp(points)
    clusters = diconet.kmeans(points, 2)
    values, weights = [4, 5, 6], [2, 3, 5]
    packing = diconet.knapsack(values, weights, 5)
    planted: list[tuple[Case, Any, dict[str, Any]]] = [
        (Case("hull", "", (points,)), hull, {"indices": hull.indices[:-1]}),
        (Case("hull", "", (points,)), hull, {"value": -1.0}),
        (Case("kmeans", "", (points, 2)), clusters, {"labels": np.zeros(7, int)}),
        (Case("kmeans", "", (points, 2)), clusters, {"value": clusters.value * 1.01}),
        (Case("kmeans", "", (points, 2)), clusters, {"centers": clusters.centers * np.inf}),
        (Case("knapsack", "", (values, weights, 5)), packing, {"chosen": np.array([0, 2])}),
        (
            Case("knapsack", "", (values, weights, 5)),
            *(packing, {"chosen": np.array([2]), "value": 6.0, "bound": 6.0}),
        ),
        (
            Case("tsp", "", (points,), {"metric": "euclidean"}),
            tour,
            {"tour": tour.tour[[0, 1] * 3]},
        ),
        (Case("tsp", "", (points,), {"metric": "euclidean"}), tour, {"value": tour.value * 0.99}),
    ]
    for case, right, change in planted:
        assert CHECKS[case.task](case, right) is None
        assert CHECKS[case.task](case, replace(right, **change)) is not None, change


def test_exact_corners_of_hand_made_sets() -> None:
    assert exact_corners(np.array([[0, 0], [2, 0], [1, 0], [2, 2], [0, 2], [0, 2]])) == [0, 1, 3, 4]
    assert exact_corners(np.array([[1.0, 1.0]] * 3)) == [0]
    assert exact_corners(np.array([[3.0, 3], [1, 1], [2, 2]])) == [0, 1]
