from itertools import permutations

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch
from diconet.problems.tsp.problem import PROBLEM
from diconet.problems.tsp.references import fast_tsp_tour
from diconet.problems.tsp.table import Exam
from diconet.problems.tsp.task import TourBook, TspTask, lengths, neighbours


def test_lengths_count_the_way_home() -> None:
    sets = SetBatch.of(
        [
            torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]),
            torch.tensor([[1.0, 1.0]]),
            torch.tensor([[0.0, 0.0], [0.0, 2.0]]),
        ]
    )
    tours = Sequences.of([torch.tensor([2, 0, 1]), torch.tensor([0]), torch.tensor([0, 1])])
    assert lengths(sets, tours).tolist() == [12, 0, 4]
    assert TspTask().reward(sets, tours).tolist() == [-12, 0, -4]


def test_neighbours_do_not_depend_on_the_direction_of_a_tour() -> None:
    tour = torch.tensor([0, 1, 2, 4, 3])
    assert neighbours(tour).tolist() == [[1, 3], [0, 2], [1, 4], [0, 4], [2, 3]]
    assert torch.equal(neighbours(tour), neighbours(tour.flip(0)))


def test_no_seed_trains_on_a_test_instance() -> None:
    """Twenty seeds of either kind, and seeds that would meet if one were made of the other."""
    sizes = [10, 10, 20]
    trained, tested = set(), set()
    for seed in range(20):
        cities = TourBook.make(sizes, seed=seed, seconds=0.001).cities
        trained |= {tuple(city) for city in cities.tolist()}
        for size in (10, 20):
            tested |= {tuple(city) for city in Exam.of(size, 2, seed).sets.items.tolist()}
            raw = PROBLEM.fresh(size, 2, 1_000 * seed + size).data
            tested |= {tuple(city) for cities in raw for city in cities.tolist()}
    assert len(trained) == 20 * 40
    assert not trained & tested


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 14, 20, 23])
def test_fast_tsp_gives_a_permutation(n: int) -> None:
    tour = fast_tsp_tour(np.random.default_rng(n).random((n, 2)), 0.002)
    assert sorted(tour.tolist()) == list(range(n))


def test_the_oracle_is_optimal_where_that_can_be_seen() -> None:
    task = TspTask()
    sets = task.sample(3, 6, rng=torch.Generator().manual_seed(0))
    best = lengths(sets, task.oracle(sets))
    for number, items in enumerate(sets.unpack()):
        alone = SetBatch.of([items])
        tours = (Sequences.of([torch.tensor([0, *rest])]) for rest in permutations(range(1, 6)))
        assert best[number].item() == pytest.approx(min(lengths(alone, t).item() for t in tours))


def test_a_book_finds_the_tours_of_what_it_gave_out() -> None:
    book = TourBook.make([6, 6, 6, 9, 9], seed=0, seconds=0.001)
    drawn = book.sample(4, 8, rng=torch.Generator().manual_seed(1))
    assert drawn.sizes.tolist() == [9] * 4
    # turned and mirrored, so the lengths are those of the tours in the book
    expected = lengths(SetBatch.pack(book.cities, book.tours.sizes), book.tours)
    found = lengths(drawn, book.oracle(drawn))
    assert torch.allclose(found, expected[drawn.context[:, 0].long()], atol=1e-5)
    assert not torch.allclose(drawn.items[:9], book.cities[-9:], atol=1e-3)
