"""Moves, chains, kicks, and searching parts of a tour."""

import time
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.problems.tsp.divide import WHOLE, Budget, _Step, _steps, searched, usual_threads
from diconet.problems.tsp.search import exchange, parts
from diconet.problems.tsp.search.decode import greedy_tour
from diconet.problems.tsp.search.exchange import positions
from diconet.problems.tsp.search.local import search
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists, near_lists
from diconet.problems.tsp.search.parts import search_part
from tests.compiled import from_python

measured, new_room = from_python(exchange.measured), from_python(exchange.new_room)
improve, rewrite = from_python(exchange.improve), from_python(exchange.rewrite)
core_of = from_python(parts.core_of)
keep, take_back = from_python(exchange.keep), from_python(exchange.take_back)


def shortest(metric: Metric) -> float:
    n = len(metric)
    return min(metric.length(np.array([0, *rest])) for rest in permutations(range(1, n)))


def edges_of(tour: np.ndarray) -> set[frozenset[int]]:
    return {frozenset((int(a), int(b))) for a, b in zip(tour, np.roll(tour, -1), strict=True)}


def is_permutation(tour: np.ndarray, n: int) -> bool:
    return bool(np.array_equal(np.sort(tour), np.arange(n)))


@given(
    st.integers(5, 40), st.integers(0, 10_000), st.lists(st.integers(1, 5), min_size=1, max_size=9)
)
@settings(max_examples=150, deadline=None)
def test_an_exchange_does_what_it_says_and_can_be_taken_back(
    n: int, seed: int, breadth: list[int]
) -> None:
    """The gain is real, only edges between its ends change, and what was kept restores the tour."""
    rng = np.random.default_rng(seed)
    metric = Metric.of(rng.random((n, 2)))
    near = near_lists(metric.xy, 5)
    tour = rng.permutation(n).astype(np.int32)
    pos, kept, before = positions(tour), tour.copy(), edges_of(tour)
    t, gains, room = new_room()
    start = int(rng.integers(n))
    args = (0, near, measured(metric.xy, 0, near), free(n), tour, pos, start, 1e-9)
    gain, k = improve(*args, np.array(breadth), t, gains, room)
    assert np.array_equal(tour, kept)
    if k == 0:
        assert gain == 0
        return
    windows = np.empty((4, 2), dtype=np.int32)
    many = rewrite(tour, pos, k, room, np.empty(n, dtype=np.int32), windows, 0, n)
    assert many == 1
    assert is_permutation(tour, n)
    assert np.array_equal(pos[tour], np.arange(n))
    assert metric.length(tour) == pytest.approx(metric.length(kept) - gain)
    assert gain > 0
    ends = t[: 2 * k].tolist()
    out = {frozenset(pair) for pair in zip(ends[::2], ends[1::2], strict=True)}
    put_in = {frozenset(pair) for pair in zip(ends[1::2], [*ends[2::2], ends[0]], strict=True)}
    assert edges_of(tour) == (before - out) | put_in
    new, other = tour.copy(), kept.copy()
    keep(tour, other, windows, many)
    assert np.array_equal(other, new)
    take_back(tour, pos, kept, windows, many)
    assert np.array_equal(tour, kept)
    assert np.array_equal(pos[tour], np.arange(n))


def test_an_exchange_that_would_leave_two_tours_is_not_made() -> None:
    """Two far pairs of near cities: the gain of joining each pair to a ring is no tour."""
    cities = np.array([[0, 0], [0, 1], [50, 0], [50, 1], [25.0, 40]])
    metric, near = Metric.of(cities), near_lists(cities, 4)
    for seed in range(20):
        tour = np.random.default_rng(seed).permutation(5).astype(np.int32)
        search(metric.xy, 0, near, free(5), tour, every(5), True, 20, 10, 1e-9, SEED, 0.0, 0.0)
        assert is_permutation(tour, 5)
        assert metric.length(tour) == pytest.approx(shortest(metric))


def test_where_too_many_would_move_nothing_changes() -> None:
    metric = Metric.of(np.random.default_rng(0).random((30, 2)))
    near = near_lists(metric.xy, 5)
    tour = np.arange(30, dtype=np.int32)
    pos = positions(tour)
    t, gains, room = new_room()
    args = (0, near, measured(metric.xy, 0, near), free(30), tour, pos, 3, 1e-9)
    _, k = improve(*args, np.array([5, 3]), t, gains, room)
    assert k > 0
    spare, windows = np.empty(30, dtype=np.int32), np.empty((4, 2), dtype=np.int32)
    assert rewrite(tour, pos, k, room, spare, windows, 0, 0) == 0
    assert rewrite(tour, pos, k, room, spare, windows, 4, 30) == 4
    assert np.array_equal(tour, np.arange(30))


SEED = np.uint64(7)


def every(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


def free(n: int) -> np.ndarray:
    return np.full((n, 2), -1, dtype=np.int32)


@given(st.integers(1, 60), st.integers(0, 10_000), st.integers(0, 60), st.sampled_from([0.0, 2.0]))
@settings(max_examples=80, deadline=None)
def test_a_search_gains_what_it_says_and_never_lengthens_but_when_warm(
    n: int, seed: int, kicks: int, warm: float
) -> None:
    rng = np.random.default_rng(seed)
    cities = rng.integers(0, 12, (n, 2)).astype(float)  # with copies and many equal distances
    metric, near = Metric.of(cities), near_lists(cities, 6)
    tour = rng.permutation(n).astype(np.int32)
    length = metric.length(tour)
    args = (metric.xy, 0, near, free(n), tour, every(n), True, kicks, 10)
    gain = search(*args, 1e-9, SEED, warm, warm)
    assert is_permutation(tour, n)
    assert gain >= 0 or warm
    assert metric.length(tour) == pytest.approx(length - gain)


@given(st.integers(9, 60), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_linked_edges_stay(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cities = rng.random((n, 2))
    metric = Metric.of(cities)
    tour = rng.permutation(n).astype(np.int32)
    link = free(n)
    for i in range(0, n - 1, 3):
        link[tour[i], 1], link[tour[i + 1], 0] = tour[i + 1], tour[i]
    kept = {frozenset((int(tour[i]), int(tour[i + 1]))) for i in range(0, n - 1, 3)}
    args = (metric.xy, 0, near_lists(cities, 6), link, tour, every(n), True, 50, 10)
    search(*args, 1e-9, SEED, 0.0, 0.0)
    assert kept <= edges_of(tour)


@given(st.integers(10, 80), st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 2.0]))
@settings(max_examples=80, deadline=None)
def test_searching_a_part_leaves_the_rest_as_it_was(
    n: int, seed: int, closed: bool, warm: float
) -> None:
    """Edges between cities outside stay, ends of an open path too, and the gain is as it says."""
    rng = np.random.default_rng(seed)
    cities = rng.random((n, 2))
    metric, near = Metric.of(cities), near_lists(cities, 6)
    path = rng.permutation(n).astype(np.int32)
    members = np.flatnonzero(rng.random(n) < 0.6).astype(np.int32)
    before_, ends = path.copy(), path[[0, -1]].tolist()
    outside = {e for e in edges_of(path) if not e & set(members.tolist())}
    gain = search_part(
        metric.xy, 0, near, path, positions(path), np.zeros(n, np.int32), -np.ones(n, np.int32),
        members, closed, True, 2.0, 10, 1e-9, SEED, warm, warm,
    )  # fmt: skip
    assert gain >= 0 or warm
    assert is_permutation(path, n)
    assert outside <= edges_of(path)
    assert metric.length(path) == pytest.approx(metric.length(before_) - gain)
    if not closed:
        assert path[[0, -1]].tolist() == ends


def test_kicks_begin_away_from_the_border_of_a_part() -> None:
    """A grid without its right half: the core ends some columns before the cut."""
    x, y = np.meshgrid(np.arange(40.0), np.arange(20.0))
    cities = np.stack([x.ravel(), y.ravel()], 1)
    inside = np.flatnonzero(cities[:, 0] < 20).astype(np.int32)
    near = near_lists(cities + np.random.default_rng(0).normal(0, 0.01, cities.shape), 8)
    place = np.full(len(cities), -1, dtype=np.int32)
    place[inside] = np.arange(len(inside))
    own = np.where(place[near[inside]] >= 0, place[near[inside]], -1).astype(np.int32)
    core = cities[inside[core_of(own, (own[:, :5] < 0).any(1))]]
    assert 15 <= core[:, 0].max() < 19
    assert core[:, 0].min() == core[:, 1].min() == 0


@pytest.mark.parametrize("n", [1, 4, 5, 39, 40, 41, 79, 80, 81, 200, 333])
def test_division_around_the_leaf_size(n: int) -> None:
    cities = np.random.default_rng(n).random((n, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)
    tour = np.random.default_rng(1).permutation(n)
    found = searched(metric, near, tour, Budget(10.0), leaf=40)
    assert is_permutation(found, n)
    assert metric.length(found) <= metric.length(tour) + 1e-9


def test_one_thread_and_two_give_the_same_tour_and_another_seed_another() -> None:
    cities = np.random.default_rng(0).random((900, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)
    tours = [
        searched(metric, near, np.arange(900), Budget(6.0), leaf=100, threads=threads, seed=seed)
        for threads, seed in ((1, 0), (2, 0), (None, 0), (2, 1))
    ]
    assert np.array_equal(tours[0], tours[1])
    assert np.array_equal(tours[0], tours[2])
    assert not np.array_equal(tours[0], tours[3])


def test_torch_says_how_many_threads_there_are(two_threads: None) -> None:
    assert usual_threads() == 2
    torch.set_num_threads(1)
    assert usual_threads() == 1


def test_more_rounds_only_shorten_and_seams_do_not_stay() -> None:
    cities = np.random.default_rng(0).random((1_200, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)
    values = [
        metric.length(searched(metric, near, np.arange(1_200), Budget(kicks), leaf=300))
        for kicks in (0.0, 5.0, 20.0)
    ]
    assert values[0] > values[1] > values[2]
    assert values[2] < 1.02 * (0.7124 * 1_200**0.5 + 0.6)


@pytest.mark.parametrize("n", [8, 600])
def test_seconds_end_the_search(n: int) -> None:
    cities = np.random.default_rng(0).random((n, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)
    searched(metric, near, np.arange(n), Budget(1.0), leaf=100)  # compiled before the clock runs
    start = time.monotonic()
    searched(metric, near, np.arange(n), Budget(1.0, time.monotonic() + 0.3), leaf=100)
    assert 0.25 < time.monotonic() - start < 3.0


@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_a_few_cities_are_solved_exactly(n: int) -> None:
    for seed in range(5):
        metric = Metric.of(np.random.default_rng(seed).random((n, 2)))
        found = searched(metric, near_lists(metric.xy, n - 1), np.arange(n), Budget(50.0))
        assert metric.length(found) == pytest.approx(shortest(metric))


def test_candidates_lead_out_of_a_cluster() -> None:
    """Two clusters: the nearest five are of the same one, a triangle has the other."""
    rng = np.random.default_rng(0)
    cities = rng.random((24, 2))
    cities[12:, 0] += 50
    near = candidate_lists(cities)
    assert not (near_lists(cities, 5)[:12] >= 12).any()
    assert (near[:12] >= 12).any()
    length = np.linalg.norm(cities[near] - cities[:, None], axis=2)
    length[near < 0] = np.inf
    assert (np.diff(np.nan_to_num(length, posinf=1e9), axis=1) >= 0).all()
    likely = near_lists(cities, 10)[:, 5:]
    assert np.array_equal(candidate_lists(cities, likely)[:, :5], likely)


@pytest.mark.parametrize("leaf", [600, 150])
def test_a_short_and_warm_search_does_not_lengthen_a_good_tour(leaf: int) -> None:
    cities = np.random.default_rng(0).random((600, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)
    good = searched(metric, near, np.arange(600), Budget(30.0))
    for seed in range(5):
        again = searched(metric, near, good, Budget(0.2), seed=seed, leaf=leaf)
        assert metric.length(again) <= metric.length(good) + 1e-9


def test_a_search_cools_down_to_nothing_as_its_kicks_run_out() -> None:
    """Five kicks per city in steps of two: from 1 to 3/5, to 1/5, to 0."""
    heats = [(step.warm, step.cool) for step in _steps(Budget(5.0), 1.0)]
    assert heats == [pytest.approx(pair) for pair in ((1, 0.6), (0.6, 0.2), (0.2, 0))]


def test_with_a_deadline_the_first_step_is_cold_and_the_last_one_ends_cold() -> None:
    """A clock on which each kick per city takes a second, and a time for seven of them."""
    steps: list[_Step] = []

    def clock() -> float:
        return sum(step.kicks for step in steps)

    for step in _steps(Budget(0.0, 7.0, clock), 1.0):
        steps.append(step)
    assert (steps[0].warm, steps[0].cool) == (0, 0)
    assert steps[1].warm == pytest.approx(1 - steps[0].kicks / 7)
    assert all(step.warm > step.cool for step in steps[1:])
    assert steps[-1].cool == pytest.approx(0)
    assert sum(step.kicks for step in steps) == pytest.approx(7)


def test_many_cities_accept_losses_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above `WHOLE` cities a search with losses gives another tour than one without."""
    cities = np.random.default_rng(0).random((WHOLE + 100, 2))
    metric, near = Metric.of(cities), candidate_lists(cities)

    def found() -> np.ndarray:
        return searched(metric, near, np.arange(len(cities)), Budget(1.0), leaf=1_000)

    warm = found()
    monkeypatch.setattr("diconet.problems.tsp.divide._WARM", 0.0)
    assert not np.array_equal(warm, found())


def test_no_edge_across_the_map_is_left() -> None:
    """Greedy joins its last ends from far away; a descent among few neighbours left some."""
    cities = np.random.default_rng([20_000, 0, 77]).random((20_000, 2))
    metric, near = Metric.of(cities), near_lists(cities, 8)
    edges = np.stack([np.repeat(np.arange(20_000), 8), near.ravel()], 1).astype(np.int32)
    length = np.linalg.norm(cities[edges[:, 0]] - cities[edges[:, 1]], axis=1)
    tour = searched(metric, candidate_lists(cities), greedy_tour(metric, edges, -length), Budget(0))
    longest = np.linalg.norm(cities[tour] - cities[np.roll(tour, 1)], axis=1).max()
    assert longest * 20_000**0.5 < 10
