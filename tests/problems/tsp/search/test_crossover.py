"""Cycles of two tours, children made from them, and the variety of many tours."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.problems.tsp.crossing import Crowd
from diconet.problems.tsp.search import cycles, variety
from diconet.problems.tsp.search.crossover import Room, Tours, cross_all
from diconet.problems.tsp.search.exchange import positions
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import near_lists
from diconet.problems.tsp.search.parts import all_positions, disputed, restricted
from diconet.problems.tsp.search.variety import frequencies
from tests.compiled import from_python

alternating, differences = from_python(cycles.alternating), from_python(cycles.differences)
segment_of, subtours = from_python(cycles.segment_of), from_python(cycles.subtours)
count, loss = from_python(variety.count), from_python(variety.loss)

KINDS = ["euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO", "haversine"]


def rooms_of(n: int, seed: int) -> list[Room]:
    return [Room.of(n, 2 * seed + 1), Room.of(n, 2 * seed + 2)]


def unlinked(tours: np.ndarray) -> np.ndarray:
    return np.full((*tours.shape, 2), -1, dtype=np.int32)


def all_of(tours: np.ndarray) -> Tours:
    return Tours.of(tours, unlinked(tours))


def random_tours(rng: np.random.Generator, many: int, n: int) -> np.ndarray:
    return np.stack([rng.permutation(n) for _ in range(many)]).astype(np.int32)


def edges_of(tour: np.ndarray) -> list[tuple[int, int]]:
    ends = zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True)
    return sorted((min(a, b), max(a, b)) for a, b in ends)


def cycles_of(
    tour: np.ndarray,
    other: np.ndarray,
    seed: int,
    link: np.ndarray | None = None,
    other_link: np.ndarray | None = None,
) -> tuple[list[list[int]], Room]:
    room = Room.of(len(tour), 2 * seed + 1)
    link = unlinked(tour) if link is None else link
    other_link = unlinked(other) if other_link is None else other_link
    args = (tour, positions(tour), link, other, positions(other), other_link)
    many = differences(*args, room.adjacent, room.rest, room.degree, room.differing)
    cut = alternating(
        room.rest, room.degree, room.differing, many, room.at, room.path, room.cycles, room.bounds,
        room.state,
    )  # fmt: skip
    bounds = room.bounds[: cut + 1].tolist()
    return [room.cycles[a:b].tolist() for a, b in pairwise(bounds)], room


@given(st.integers(5, 60), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_cycles_take_each_edge_that_differs_once_and_by_turns(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tour, other = random_tours(rng, 2, n)
    cycles, room = cycles_of(tour, other, seed)
    mine, theirs = [], []
    for cycle in cycles:
        around = edges_of_walk(cycle)
        mine += around[0::2]
        theirs += around[1::2]
    assert sorted(mine) == sorted(set(edges_of(tour)) - set(edges_of(other)))
    assert sorted(theirs) == sorted(set(edges_of(other)) - set(edges_of(tour)))
    assert (room.at == -1).all()


@given(st.integers(20, 60), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_in_a_part_cycles_are_made_of_edges_of_each_tour_by_turns_and_no_links(
    n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tours = random_tours(rng, 2, n)
    members = np.sort(rng.choice(n, n // 2 + 5, replace=False)).astype(np.int32)
    (tour, other), (link, other_link) = restricted(
        tours, all_positions(tours), unlinked(tours), members
    )
    cycles, room = cycles_of(tour, other, seed, link, other_link)
    around = [edges_of_walk(cycle) for cycle in cycles]
    mine = [edge for cycle in around for edge in cycle[0::2]]
    theirs = [edge for cycle in around for edge in cycle[1::2]]
    assert len(set(mine)) == len(mine)
    assert set(mine) <= set(edges_of(tour)) - set(edges_of(other)) - links_of(link)
    assert set(theirs) <= set(edges_of(other)) - set(edges_of(tour)) - links_of(other_link)
    assert (room.at == -1).all()


def links_of(link: np.ndarray) -> set[tuple[int, int]]:
    """The fixed edges, as pairs in order."""
    return {(min(a, int(b)), max(a, int(b))) for a, row in enumerate(link) for b in row if b >= 0}


def edges_of_walk(cycle: list[int]) -> list[tuple[int, int]]:
    return [(min(a, b), max(a, b)) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True)]


@given(st.integers(5, 40), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_subtours_are_those_of_the_replaced_edges(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tour, other = random_tours(rng, 2, n)
    cycles, room = cycles_of(tour, other, seed)
    if not cycles:
        return
    cycle = np.array(cycles[0], dtype=np.int32)
    k = len(cycle) // 2
    onward = np.append(2 * np.arange(1, k), 0).astype(np.int32)
    pos = positions(tour)
    parts = subtours(pos, cycle, onward, room.keys, room.nodes, room.label, room.sizes)
    around = edges_of_walk(cycle.tolist())
    left = (set(edges_of(tour)) - set(around[0::2])) | set(around[1::2])
    root = connected(n, left)
    found = np.array([room.label[segment_of(room.keys, k, pos[city])] for city in range(n)])
    assert parts == len(set(root))
    assert len(set(zip(root, found.tolist(), strict=True))) == parts
    assert np.array_equal(np.bincount(found), room.sizes[:parts])


def connected(n: int, edges: set[tuple[int, int]]) -> list[int]:
    """For each city, the lowest city connected to it."""
    root = list(range(n))
    for _ in range(n):
        for a, b in edges:
            root[a] = root[b] = min(root[a], root[b])
    return root


@given(
    st.integers(6, 80), st.integers(0, 10_000), st.sampled_from(KINDS), st.booleans(), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_crossing_leaves_tours_and_gains_what_it_says(
    n: int, seed: int, kind: str, on_grid: bool, greedy: bool
) -> None:
    """On grids many edges have the same length, and some cities the same place."""
    rng = np.random.default_rng(seed)
    cities = rng.integers(0, 7, (n, 2)).astype(float) if on_grid else 80 * rng.random((n, 2))
    metric = Metric.of(cities, kind)
    many, rooms = all_of(random_tours(rng, 5, n)), rooms_of(n, seed)
    near = near_lists(cities, 8)
    for _ in range(6):
        before = np.array([metric.length(tour) for tour in many.tours])
        gain = cross_all(metric.xy, metric.code, near, many, rooms, 1e-9, greedy)
        after = np.array([metric.length(tour) for tour in many.tours])
        assert (before - after).sum() == pytest.approx(gain, rel=1e-9, abs=1e-9 * before.sum())
        assert (after <= before + 1e-9).all()
        assert (np.sort(many.tours, axis=1) == np.arange(n)).all()
        for tour, place in zip(many.tours, many.places, strict=True):
            assert np.array_equal(positions(tour), place)
        assert all((room.owner == -1).all() for room in rooms)


def test_crossing_tours_that_agree_changes_nothing() -> None:
    tours = np.tile(np.arange(9, dtype=np.int32), (3, 1))
    tours[1] = np.roll(tours[1][::-1], 4)
    metric, many = Metric.of(np.random.default_rng(0).random((9, 2))), all_of(tours.copy())
    near = near_lists(metric.xy, 5)
    assert cross_all(metric.xy, 0, near, many, rooms_of(9, 1), 1e-9, False) == 0
    assert np.array_equal(many.tours, tours)


def test_two_halves_solved_in_different_tours_are_combined() -> None:
    """Two rings, far apart: each tour has crossed edges in one of them, and a child in neither."""
    turn = 2 * np.pi * np.arange(12) / 12
    ring = np.stack([np.cos(turn), np.sin(turn)], 1)
    metric = Metric.of(np.concatenate([ring - [3, 0], [3, 0] - ring]))
    good = np.arange(24, dtype=np.int32)
    tours = np.stack([good, good])
    tours[0, [5, 6]] = tours[0, [6, 5]]
    tours[1, [17, 18]] = tours[1, [18, 17]]
    many, near = all_of(tours), near_lists(metric.xy, 10)
    cross_all(metric.xy, 0, near, many, rooms_of(24, 3), 1e-9, False)
    assert min(metric.length(tour) for tour in tours) == pytest.approx(metric.length(good))


def test_edges_are_still_counted_rightly_after_crossing() -> None:
    """Six tours have at most twelve edges per city, for which there is space."""
    rng = np.random.default_rng(0)
    metric = Metric.of(rng.random((60, 2)))
    many, rooms = all_of(random_tours(rng, 6, 60)), rooms_of(60, 0)
    for _ in range(30):
        cross_all(metric.xy, 0, near_lists(metric.xy, 10), many, rooms, 1e-9, False)
    seen, times = frequencies(many.tours, many.links)
    assert counted(many.seen, many.times) == counted(seen, times)


def counted(seen: np.ndarray, times: np.ndarray) -> dict[tuple[int, int], int]:
    rows, slots = np.nonzero(times)
    return {(a, int(seen[a, k])): int(times[a, k]) for a, k in zip(rows, slots, strict=True)}


def test_loss_is_the_difference_of_entropies() -> None:
    """Three of four tours have the edge 0-1 and one has 0-2; then all have 0-1.

    The entropy of these two edges is -(3/4) log(3/4) - (1/4) log(1/4) before and 0 after.
    """
    seen, times = np.full((3, 12), -1, dtype=np.int32), np.zeros((3, 12), dtype=np.int32)
    one, two = np.array([[0, 1]], dtype=np.int32), np.array([[0, 2]], dtype=np.int32)
    for edge in (one, one, one, two):
        count(seen, times, edge, 1, 1)
    surprise = all_of(np.tile(np.arange(5, dtype=np.int32), (4, 1))).surprise
    before = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert loss(seen, times, surprise, two, one, 1) == pytest.approx(before)
    assert loss(seen, times, surprise, one, two, 1) == pytest.approx(before - 2 * 0.5 * np.log(2))


@given(st.integers(30, 90), st.integers(0, 10_000), st.booleans())
@settings(max_examples=60, deadline=None)
def test_crossing_in_a_part_keeps_links_and_the_rest_of_each_tour(
    n: int, seed: int, twice: bool
) -> None:
    """Also in a part of a part, whose links are those of the larger one and more."""
    rng = np.random.default_rng(seed)
    metric = Metric.of(rng.random((n, 2)))
    crowd = Crowd.of(metric, near_lists(metric.xy, 8), random_tours(rng, 6, n))
    before = crowd.tours.copy()
    members = np.sort(rng.choice(n, n // 2, replace=False)).astype(np.int32)
    parts = [crowd, crowd.part(members)]
    rows = [np.arange(n), members]
    if twice:
        rows.append(np.sort(rng.choice(len(members), len(members) - 4, replace=False)))
        parts.append(parts[-1].part(rows[-1].astype(np.int32)))
    part = parts[-1]
    many, rooms = Tours.of(part.tours, part.links), rooms_of(len(part.xy), seed)
    gain = sum(cross_all(part.xy, part.code, part.near, many, rooms, 1e-9, True) for _ in range(5))
    for tour, link in zip(part.tours, part.links, strict=True):
        assert links_of(link) <= set(edges_of(tour))
    for outer, inside, inner in zip(parts[-2::-1], rows[:0:-1], parts[:0:-1], strict=False):
        outer.take(inside.astype(np.int32), inner)
    changed = members[rows[-1]] if twice else members
    for old, new in zip(before, crowd.tours, strict=True):
        assert np.array_equal(np.sort(new), np.arange(n))
        moved = set(edges_of(old)) ^ set(edges_of(new))
        assert {city for edge in moved for city in edge} <= set(changed.tolist())
    assert np.array_equal(all_positions(crowd.tours), crowd.places)
    shorter = sum(map(metric.length, before)) - sum(map(metric.length, crowd.tours))
    assert shorter == pytest.approx(gain, abs=1e-6)


def test_cities_on_which_all_tours_agree_are_not_disputed() -> None:
    tours = np.tile(np.arange(12, dtype=np.int32), (3, 1))
    tours[1] = tours[1][::-1]
    tours[2, [4, 5]] = tours[2, [5, 4]]
    assert disputed(tours, all_positions(tours)).tolist() == [3, 4, 5, 6]
