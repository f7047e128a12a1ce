from __future__ import annotations

import torch

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch


def pair() -> Sequences:
    return Sequences.of([torch.tensor([2, 0, 1]), torch.tensor([1]), torch.tensor([3, 1])])


def test_rows_point_into_the_packed_sets() -> None:
    sets = SetBatch.pack(torch.rand(9, 2), torch.tensor([3, 2, 4]))
    assert pair().rows(sets).tolist() == [2, 0, 1, 4, 8, 6]


def test_take_and_repeat() -> None:
    assert [p.tolist() for p in pair().take(torch.tensor([2, 0])).unpack()] == [[3, 1], [2, 0, 1]]
    assert [p.tolist() for p in pair().repeat(2).unpack()[:3]] == [[2, 0, 1], [2, 0, 1], [1]]


def test_rotation_starts_at_the_smallest_key_and_keeps_the_cycle() -> None:
    turned = pair().rotated(pair().places)
    assert [p.tolist() for p in turned.unpack()] == [[0, 1, 2], [1], [1, 3]]


def test_rotation_breaks_ties_by_the_first() -> None:
    cycle = Sequences.of([torch.tensor([5, 6, 7, 8])])
    assert cycle.rotated(torch.tensor([1.0, 0.0, 0.0, 1.0])).places.tolist() == [6, 7, 8, 5]
