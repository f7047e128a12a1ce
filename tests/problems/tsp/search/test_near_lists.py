"""Candidate neighbours where cities lie so regularly that a triangulation is not unique."""

from __future__ import annotations

import numpy as np
import pytest

from diconet.problems.tsp.search.near_lists import _triangulated, candidate_lists


def test_on_a_circle_no_city_has_most_others_as_neighbours() -> None:
    """Any triangulation of cities on one circle is Delaunay's, a fan of n - 1 among them."""
    angle = 2 * np.pi * np.random.default_rng(0).random(2_000)
    starts, _ = _triangulated(np.stack([np.cos(angle), np.sin(angle)], 1))
    assert np.diff(starts).max() < 100


@pytest.mark.parametrize("size", [2, 3, 4, 20])
def test_cities_on_a_line_have_lists(size: int) -> None:
    lists = candidate_lists(np.stack([np.arange(size), 2.0 * np.arange(size)], 1))
    assert (lists[:, 0] >= 0).all()
    assert (lists != np.arange(size)[:, None]).all()
