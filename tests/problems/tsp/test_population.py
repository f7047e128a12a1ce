"""Many tours from different starts, crossed."""

import time
from itertools import permutations
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.nets.axes import AcrossSplit
from diconet.problems.tsp import population, solve
from diconet.problems.tsp.crossing import Crossing, Crowd
from diconet.problems.tsp.divide import Budget, searched
from diconet.problems.tsp.population import CELL, Population, crossed, is_crossed
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists, near_lists
from diconet.problems.tsp.solve import Tour, tsp
from diconet.problems.tsp.table import control


def random_start(n: int) -> Any:
    return lambda rng: rng.permutation(n)


@pytest.fixture
def few_tours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "_USUAL", 20)
    monkeypatch.setattr(population, "_MOST", 20)


def one(cities: object, **options: Any) -> Tour:
    found = tsp(cities, model=control(), **options)  # type: ignore[call-overload]
    assert isinstance(found, Tour)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_few_cities_are_solved_exactly(seed: int) -> None:
    metric = Metric.of(np.random.default_rng(seed).random((8, 2)))
    ways = (np.array([0, *rest]) for rest in permutations(range(1, 8)))
    near = near_lists(metric.xy, 7)
    found = crossed(metric, near, np.arange(8), random_start(8), Budget(0.0))
    assert metric.length(found) == pytest.approx(min(map(metric.length, ways)))


def test_crossing_is_ahead_of_exchanges_and_level_with_many_kicks() -> None:
    metric = Metric.of(np.random.default_rng(0).random((200, 2)))
    near = candidate_lists(metric.xy)
    found = metric.length(crossed(metric, near, np.arange(200), random_start(200), Budget(0.0)))
    assert found < 0.99 * metric.length(searched(metric, near, np.arange(200), Budget(0.0)))
    assert found <= 1.0001 * metric.length(searched(metric, near, np.arange(200), Budget(100.0)))


@pytest.mark.usefixtures("few_tours")
@pytest.mark.parametrize("leaf", [2_000, 150])
def test_the_answer_depends_on_the_seed_but_not_on_the_threads(leaf: int) -> None:
    metric = Metric.of(np.random.default_rng(1).integers(0, 40, (400, 2)))
    near, start = candidate_lists(metric.xy), random_start(400)
    tours = [
        crossed(
            metric, near, np.arange(400), start, Budget(0.0), seed=seed, leaf=leaf, threads=threads
        )
        for seed, threads in ((0, 1), (0, 2), (1, 1))
    ]
    assert np.array_equal(tours[0], tours[1])
    assert not np.array_equal(tours[0], tours[2])


def test_every_population_has_starts_of_its_own() -> None:
    metric = Metric.of(np.random.default_rng(1).random((40, 2)))
    start, near = random_start(40), near_lists(metric.xy, 5)
    drawn = [
        Population(metric, near, Budget(0.0), seeds, 1e-9).found(np.arange(40), start, 3)
        for seeds in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0][1:], drawn[2][1:])
    assert not np.array_equal(drawn[0][1:], drawn[3][1:])


@given(st.integers(5, 170), st.sampled_from(["square", "line", "grid"]), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_sizes_around_the_leaf_limit_get_a_tour_that_is_never_longer(
    n: int, kind: str, seed: int
) -> None:
    cities = np.random.default_rng(n).random((n, 2))
    if kind == "line":
        cities[:, 1] = 0
    elif kind == "grid":
        cities = np.unique(np.round(9 * cities), axis=0)
    metric, tour = Metric.of(cities), np.arange(len(cities))
    if len(tour) < 5:
        return
    with patch.object(population, "_USUAL", 6), patch.object(population, "_MOST", 6):
        found = crossed(
            metric, candidate_lists(cities), tour, random_start(len(tour)), Budget(0.0), seed=seed,
            leaf=40,
        )  # fmt: skip
    assert np.array_equal(np.sort(found), tour)
    assert metric.length(found) <= metric.length(tour) + 1e-9


@pytest.mark.usefixtures("few_tours")
def test_dividing_loses_nothing_along_the_cuts() -> None:
    metric = Metric.of(np.random.default_rng(7).random((1_000, 2)))
    near = candidate_lists(metric.xy)
    tour = searched(metric, near, np.arange(1_000), Budget(0.0))
    divided, flat = (
        metric.length(
            crossed(metric, near, tour, random_start(1_000), Budget(0.0), leaf=leaf, threads=1)
        )
        for leaf in (125, 1_000)
    )
    assert divided <= 1.001 * flat


def test_each_node_has_its_share_of_the_time() -> None:
    """Leaves of 100 cities count 2.5 times: 4 * 250 + 2 * 200 + 400 in all, 250 for the first."""
    metric = Metric.of(np.random.default_rng(3).random((400, 2)))
    near = candidate_lists(metric.xy)
    deadlines: list[float | None] = []

    def note(
        self: object, crowd: Crowd, budget: Budget, patience: int, seeds: tuple[int, ...]
    ) -> None:
        deadlines.append(budget.deadline)

    tours = np.tile(np.arange(400, dtype=np.int32), (3, 1))
    with patch.object(Crossing, "_cross", note):
        many = Population(metric, near, Budget(0.0, 18.0, lambda: 0.0), (0, 0), 1e-9)
        many.cross(tours, AcrossSplit(), 100)
    assert deadlines[0] == pytest.approx(2.5)
    assert len(deadlines) == 7
    assert deadlines[-1] == pytest.approx(18.0)


def test_later_populations_do_not_replace_a_shorter_tour(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ten tours each there is time for several populations, all worse than the given tour."""
    monkeypatch.setattr(population, "_MOST", 10)
    metric = Metric.of(np.random.default_rng(5).random((520, 2)))
    near = candidate_lists(metric.xy)
    good = searched(metric, near, np.arange(520), Budget(30.0))
    budget = Budget(0.0, time.process_time() + 1.0, time.process_time)
    found = crossed(metric, near, good, random_start(520), budget, threads=1)
    assert metric.length(found) <= metric.length(good)


def test_the_time_limit_is_kept_and_the_tour_never_longer() -> None:
    n = 4_000
    metric = Metric.of(np.random.default_rng(2).random((n, 2)))
    near = candidate_lists(metric.xy)
    crossed(metric, near, np.arange(n), random_start(n), Budget(0.0, time.monotonic()))  # compiles
    for seconds in (0.0, 0.5, 1.5):
        begun = time.process_time()
        budget = Budget(0.0, begun + seconds, time.process_time)
        found = crossed(metric, near, np.arange(n), random_start(n), budget, threads=1)
        assert time.process_time() - begun < seconds + 0.5
        assert np.array_equal(np.sort(found), np.arange(n))
        assert metric.length(found) <= metric.length(np.arange(n))


def test_tours_are_crossed_where_there_are_many_cities_and_enough_time() -> None:
    assert is_crossed(1_000, Budget(0.0))
    assert is_crossed(100, Budget(0.0))
    assert not is_crossed(99, Budget(0.0))
    assert is_crossed(50_000, Budget(0.0))
    assert not is_crossed(50_001, Budget(0.0))
    assert is_crossed(1_000, Budget(0.0, time.monotonic() + 2.0))
    assert not is_crossed(1_000, Budget(0.0, time.monotonic() + 0.01))
    assert not is_crossed(10_000, Budget(0.0, time.monotonic() + 1.0), threads=1)
    assert is_crossed(10_000, Budget(0.0, time.monotonic() + 1.0), threads=2)
    assert not is_crossed(100_000, Budget(0.0, time.monotonic() + 18.0), threads=1)
    assert is_crossed(100_000, Budget(0.0, time.monotonic() + 25.0), threads=1)


def test_some_time_is_left_to_kicks_and_many_cities_get_more_time_to_cross() -> None:
    n = 300
    metric = Metric.of(np.random.default_rng(3).random((n, 2)))
    budget = Budget(0.0, time.process_time() + 2.0, time.process_time)
    crossed(metric, candidate_lists(metric.xy), np.arange(n), random_start(n), budget, threads=1)
    assert budget.left > 0.1
    ratios = [population._ratio(n, CELL) for n in (CELL, 2 * CELL, 80 * CELL, 800 * CELL)]
    assert ratios == sorted(set(ratios))


@pytest.mark.parametrize("options", [{"kicks": 0}, {"kicks": 1}, {"refine": "2opt"}])
def test_who_asks_for_kicks_gets_kicks(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **others: object) -> np.ndarray:
        raise AssertionError("crossed")

    cities = np.random.default_rng(3).random((600, 2))
    monkeypatch.setattr(solve, "crossed", refuse)
    assert len(one(cities, **options).tour) == 600
    with pytest.raises(AssertionError, match="crossed"):
        one(cities)


def test_the_time_that_crossing_leaves_is_for_kicks(monkeypatch: pytest.MonkeyPatch) -> None:
    cities = np.random.default_rng(6).random((600, 2))
    plain = one(cities, refine="2opt").value
    monkeypatch.setattr(solve, "crossed", lambda metric, near, tour, *rest, **others: tour)
    assert one(cities, seconds=1.0).value < plain


@pytest.mark.parametrize(("n", "seconds"), [(120, None), (900, 1.5)])
@pytest.mark.parametrize("kind", ["uniform", "grid", "copies", "line"])
def test_any_kind_of_map_gets_a_tour_as_good_as_by_kicks(
    kind: str, n: int, seconds: float | None
) -> None:
    cities = np.random.default_rng(4).random((n, 2))
    if kind == "grid":
        cities = np.round(1.2 * n**0.5 * cities)
    elif kind == "copies":
        cities[n // 2 :] = cities[: n // 2] + 0.001
        cities[: n // 9] = cities[-n // 9 :][: n // 9]
    elif kind == "line":
        cities[:, 1] = 0
    found = one(cities, seconds=seconds)
    assert np.array_equal(np.sort(found.tour), np.arange(n))
    assert found.value == pytest.approx(Metric.of(cities).length(found.tour))
    assert found.value <= 1.002 * one(cities, kicks=10).value
