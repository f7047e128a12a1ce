"""From edges to tours: fragments, joins, noisy tries and beams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.problems.tsp.references import fast_tsp_tour
from diconet.problems.tsp.search.beam import beam_tour
from diconet.problems.tsp.search.decode import greedy_tour, join_nearest, take_edges
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import near_lists
from tests.problems.tsp.search.test_search import edges_of, is_permutation


def by_length(cities: np.ndarray, slots: int = 6) -> tuple[np.ndarray, np.ndarray]:
    near = near_lists(cities, slots)
    ends = np.repeat(np.arange(len(cities)), near.shape[1])
    edges = np.unique(np.sort(np.stack([ends, near.ravel()], 1), 1), axis=0).astype(np.int32)
    return edges, -np.linalg.norm(cities[edges[:, 0]] - cities[edges[:, 1]], axis=1)


def test_near_lists_leave_the_city_itself_out_even_among_copies() -> None:
    cities = np.zeros((5, 2))
    near = near_lists(cities, 3)
    assert near.shape == (5, 3)
    assert not (near == np.arange(5)[:, None]).any()
    assert near_lists(cities[:1], 3).shape == (1, 0)


def test_fragments_take_the_best_edges_that_fit() -> None:
    # 2-3 would give city 2 a third edge, 0-2 would close the cycle 0 1 2
    edges = np.array([[0, 1], [1, 2], [0, 2], [1, 3], [3, 4]], dtype=np.int32)
    link, other = _lone(5)
    take_edges(edges, np.arange(5), link, other)
    assert link.tolist() == [[1, -1], [0, 2], [1, -1], [4, -1], [3, -1]]


def _lone(num: int) -> tuple[np.ndarray, np.ndarray]:
    """Cities that are joined to none."""
    return np.full((num, 2), -1, dtype=np.int32), np.arange(num, dtype=np.int32)


@given(st.integers(1, 50), st.integers(0, 10_000), st.booleans())
@settings(max_examples=80, deadline=None)
def test_every_decoder_gives_a_permutation(n: int, seed: int, line: bool) -> None:
    rng = np.random.default_rng(seed)
    cities = rng.integers(0, 9, (n, 2)).astype(float) * [1, 0 if line else 1]
    metric = Metric.of(cities)
    edges, _ = by_length(cities)
    scores = rng.normal(size=len(edges))
    near = near_lists(cities, 3)
    chances = rng.normal(size=near.shape)
    for tour in (
        greedy_tour(metric, edges, scores),
        beam_tour(metric, near, chances, 5),
    ):
        assert is_permutation(tour, n)


def test_many_ends_are_joined_in_rounds() -> None:
    cities = np.random.default_rng(0).random((2_000, 2))
    metric = Metric.of(cities)
    tour = join_nearest(metric, *_lone(2_000))
    assert is_permutation(tour, 2_000)
    # joining nearest ends from scratch is the greedy-edge tour, some 14-20% above the best
    assert metric.length(tour) < 1.3 * (0.7124 * 2_000**0.5 + 0.6)


@pytest.mark.parametrize("width", [1, 40])
def test_beam_search_with_an_exact_signal_returns_the_optimal_tour(width: int) -> None:
    cities = np.random.default_rng(2).random((12, 2))
    metric = Metric.of(cities)
    best = fast_tsp_tour(cities, 0.01)
    near = np.array([[j for j in range(12) if j != i] for i in range(12)])
    used = edges_of(best)
    scores = np.array(
        [[0.0 if frozenset((i, j)) in used else -9.0 for j in near[i]] for i in range(12)]
    )
    found = beam_tour(metric, near, scores, width)
    assert edges_of(found) == used


def test_a_wider_beam_mends_a_misleading_first_step() -> None:
    # 0-1 looks best at first, but from 1 everything is unlikely; 0-2-1-3 is the likeliest tour.
    near = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    scores = np.log([[0.6, 0.4, 1e-9], [0.4, 0.001, 0.599], [0.4, 0.6, 1e-9], [0.5, 0.5, 1e-9]])
    metric = Metric.of(np.array([[0, 0], [2, 0], [1, 0], [3, 0.0]]))
    assert beam_tour(metric, near, scores, 1).tolist()[:2] == [0, 1]
    assert beam_tour(metric, near, scores, 10).tolist() == [0, 2, 1, 3]


def test_beam_width_is_checked() -> None:
    with pytest.raises(ValueError, match="width must be at least 1; got 0"):
        beam_tour(Metric.of(np.zeros((4, 2))), np.zeros((4, 1)), np.zeros((4, 1)), 0)
