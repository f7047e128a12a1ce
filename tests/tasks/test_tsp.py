from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from diconet.answers import Sequences
from diconet.references.tsp import fast_tsp_tour
from diconet.sets import SetBatch
from diconet.tasks.tsp import TourBook, TspTask, accuracy, lengths


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


def test_accuracy_counts_cities_with_both_neighbours_right() -> None:
    # 0-1-2-3-4 against 0-1-2-4-3: cities 0 (3 for 4), 2, 3, 4 differ, city 1 does not
    one, two = Sequences.of([torch.arange(5)]), Sequences.of([torch.tensor([0, 1, 2, 4, 3])])
    assert accuracy(one, two) == pytest.approx(20)
    backward = Sequences.of([torch.tensor([2, 1, 0, 4, 3])])
    assert accuracy(one, backward) == pytest.approx(100)


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


def test_a_book_finds_the_tours_of_what_it_gave_out(tmp_path: Path) -> None:
    book = TourBook.make([6, 6, 6, 9, 9], seed=0, seconds=0.001)
    book.save(tmp_path / "book.npz")
    book = TourBook.load(tmp_path / "book.npz")
    drawn = book.sample(4, 8, rng=torch.Generator().manual_seed(1))
    assert drawn.sizes.tolist() == [9] * 4
    # turned and mirrored, so the lengths are those of the tours in the book
    expected = lengths(SetBatch.pack(book.cities, book.tours.sizes), book.tours)
    found = lengths(drawn, book.oracle(drawn))
    assert torch.allclose(found, expected[drawn.context[:, 0].long()], atol=1e-5)
    assert not torch.allclose(drawn.items[:9], book.cities[-9:], atol=1e-3)
