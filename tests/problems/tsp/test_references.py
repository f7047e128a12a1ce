import numpy as np
import pytest

from benchmarks.tsp_references import (
    elkai_tour,
    ortools_tour,
    random_insertion_tour,
)
from diconet.problems.tsp.references import fast_tsp_tour, nearest_neighbour_tour
from diconet.problems.tsp.search.metric import Metric


def test_nearest_neighbour_by_hand() -> None:
    line = np.array([[0.0, 0], [5, 0], [1, 0], [-2, 0]])
    assert nearest_neighbour_tour(line).tolist() == [0, 2, 3, 1]


def test_insertion_by_hand() -> None:
    """A square with its centre: whatever the order, cities go where they cost least."""
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    for seed in range(5):
        tour = random_insertion_tour(square, seed)
        assert Metric.of(square).length(tour) == pytest.approx(4)


@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_all_give_permutations_and_rank_as_known(n: int) -> None:
    cities = np.random.default_rng(0).random((n, 2))
    tours = {
        "nearest": nearest_neighbour_tour(cities),
        "insertion": random_insertion_tour(cities),
        "ortools": ortools_tour(cities, 0.2),
        "fast": fast_tsp_tour(cities, 0.02),
    }
    for tour in tours.values():
        assert sorted(tour.tolist()) == list(range(n))
    if n == 60:
        length = {name: Metric.of(cities).length(tour) for name, tour in tours.items()}
        assert length["fast"] <= length["ortools"] <= length["insertion"] < length["nearest"]


def test_lkh_where_it_is_installed() -> None:
    pytest.importorskip("elkai")
    cities = np.random.default_rng(0).random((12, 2))
    best = Metric.of(cities).length(fast_tsp_tour(cities, 0.01))
    assert Metric.of(cities).length(elkai_tour(cities)) == pytest.approx(best, rel=1e-3)
