from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.one_tree import held_karp_bound


def shortest(metric: Metric) -> float:
    others = range(1, len(metric))
    return min(metric.length(np.array([0, *rest])) for rest in permutations(others))


@given(
    st.integers(1, 7),
    st.integers(0, 99),
    st.sampled_from(["euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_no_tour_is_below_the_bound(n: int, seed: int, kind: str, equal: bool) -> None:
    cities = np.random.default_rng(seed).random((n, 2)) * 60
    if equal:
        cities[n // 2 :] = cities[0]
    metric = Metric.of(cities, kind)
    bound, best = held_karp_bound(metric), shortest(metric)
    assert bound <= best
    assert bound >= 0.9 * best


def test_it_is_exact_where_a_one_tree_is_a_tour() -> None:
    angles = np.sort(np.random.default_rng(0).random(40)) * 2 * np.pi
    metric = Metric.of(np.column_stack([np.cos(angles), np.sin(angles)]))
    assert held_karp_bound(metric) == pytest.approx(metric.length(np.arange(40)), rel=1e-9)


def test_prices_close_most_of_the_gap() -> None:
    # Two clusters far apart: without prices a 1-tree has one long edge, every tour two.
    rng = np.random.default_rng(0)
    cities = np.concatenate([rng.random((10, 2)), rng.random((10, 2)) + np.array([100, 0])])
    assert held_karp_bound(Metric.of(cities)) > 195
