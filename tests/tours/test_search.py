"""2-opt with Or-opt, and Lin-Kernighan."""

import time
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.tours.kicks import kicked
from diconet.tours.lin_kernighan import lin_kernighan
from diconet.tours.metric import Metric
from diconet.tours.moves import after, before, best_insertion, exchange, insert, positions, reverse
from diconet.tours.near import near_lists
from diconet.tours.two_opt import two_opt


def shortest(metric: Metric) -> float:
    n = len(metric)
    return min(metric.length(np.array([0, *rest])) for rest in permutations(range(1, n)))


def edges_of(tour: np.ndarray) -> set[frozenset[int]]:
    return {frozenset((int(a), int(b))) for a, b in zip(tour, np.roll(tour, -1), strict=True)}


def is_permutation(tour: np.ndarray, n: int) -> bool:
    return bool(np.array_equal(np.sort(tour), np.arange(n)))


@given(st.integers(2, 30), st.data())
@settings(max_examples=60, deadline=None)
def test_reversing_twice_changes_nothing(n: int, data: st.DataObject) -> None:
    tour = np.random.default_rng(n).permutation(n).astype(np.int32)
    pos = positions(tour)
    start, stop = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    kept = tour.copy()
    reverse(tour, pos, start, stop)
    assert np.array_equal(pos[tour], np.arange(n))
    reverse(tour, pos, start, stop)
    assert np.array_equal(tour, kept)


@given(st.integers(4, 20), st.booleans(), st.data())
@settings(max_examples=100, deadline=None)
def test_an_exchange_swaps_two_edges_and_no_other(
    n: int, backward: bool, data: st.DataObject
) -> None:
    tour = np.random.default_rng(n).permutation(n).astype(np.int32)
    pos = positions(tour)
    i = data.draw(st.integers(0, n - 1))
    j = (i + data.draw(st.integers(2, n - 2))) % n
    onward = before if backward else after
    a, c = tour[i], tour[j]
    b, d = onward(tour, pos, a), onward(tour, pos, c)
    old = edges_of(tour)
    exchange(tour, pos, a, b, c, d)
    new = edges_of(tour)
    assert old - new == {frozenset((a, b)), frozenset((c, d))} - new
    assert frozenset((a, c)) in new
    assert frozenset((b, d)) in new
    assert is_permutation(tour, n)


@given(st.integers(5, 40), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_an_insertion_gains_what_it_says(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cities = rng.random((n, 2))
    metric, near = Metric.of(cities), near_lists(cities, 5)
    args = (metric.x, metric.y, metric.code, metric.mate, near)
    tour = rng.permutation(n).astype(np.int32)
    pos = positions(tour)
    log = np.empty((4, 2), dtype=np.int32)
    for city in range(n):
        length = metric.length(tour)
        gain, found = best_insertion(*args, tour, pos, np.int32(city), 1e-9, n)
        if gain > 1e-9:
            insert(tour, pos, *found, log, 0)
            assert is_permutation(tour, n)
            assert metric.length(tour) == pytest.approx(length - gain)


@given(st.integers(1, 60), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_refinement_never_lengthens_a_tour(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cities = rng.integers(0, 12, (n, 2)).astype(float)  # with copies and many equal distances
    metric, near = Metric.of(cities), near_lists(cities, 6)
    tour = rng.permutation(n)
    polished = two_opt(metric, near, tour)
    chained = lin_kernighan(metric, near, tour)
    shaken = kicked(metric, near, tour, kicks=n, seed=seed)
    for found in (polished, chained, shaken):
        assert is_permutation(found, n)
        assert metric.length(found) <= metric.length(tour) + 1e-9


def test_two_opt_leaves_no_crossing_and_no_city_to_move() -> None:
    cities = np.random.default_rng(0).random((9, 2))
    metric, near = Metric.of(cities), near_lists(cities, 8)
    found = two_opt(metric, near, np.arange(9))
    length = metric.length(found)
    for i in range(9):
        for j in range(i + 2, 9):
            turned = np.concatenate([found[: i + 1], found[i + 1 : j + 1][::-1], found[j + 1 :]])
            assert metric.length(turned) >= length - 1e-12
        rest = np.delete(found, i)
        for j in range(9):
            assert metric.length(np.insert(rest, j, found[i])) >= length - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_kicks_find_the_shortest_of_all_small_tours(seed: int) -> None:
    cities = np.random.default_rng(seed).random((8, 2))
    metric = Metric.of(cities)
    found = kicked(metric, near_lists(cities, 7), np.arange(8), kicks=300)
    assert metric.length(found) == pytest.approx(shortest(metric))


def test_kicks_shorten_what_chains_alone_leave() -> None:
    cities = np.random.default_rng(1).random((300, 2))
    metric, near = Metric.of(cities), near_lists(cities, 8)
    plain = lin_kernighan(metric, near, np.arange(300))
    shaken = kicked(metric, near, plain, kicks=1_000)
    assert metric.length(shaken) < 0.98 * metric.length(plain)


def test_the_seed_decides() -> None:
    cities = np.random.default_rng(1).random((200, 2))
    metric, near = Metric.of(cities), near_lists(cities, 8)
    one, same, other = (
        kicked(metric, near, np.arange(200), kicks=50, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_time_bounds_the_kicks() -> None:
    cities = np.random.default_rng(1).random((200, 2))
    metric, near = Metric.of(cities), near_lists(cities, 8)
    start = time.monotonic()
    kicked(metric, near, np.arange(200), kicks=10**9, seconds=0.0)
    assert time.monotonic() - start < 30


def test_a_kick_that_does_not_pay_leaves_no_trace() -> None:
    cities = np.random.default_rng(1).random((12, 2))
    metric, near = Metric.of(cities), near_lists(cities, 11)
    best = kicked(metric, near, np.arange(12), kicks=2_000)
    again = kicked(metric, near, best, kicks=2_000, seed=1)
    assert edges_of(again) == edges_of(best)
