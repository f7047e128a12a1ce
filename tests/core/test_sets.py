from __future__ import annotations

import pytest
import torch

from diconet.core.sets import SetBatch, standardise


@pytest.fixture
def three() -> SetBatch:
    """Sets of 2, 0 and 3 items with one feature."""
    items = torch.tensor([[1.0], [3.0], [10.0], [20.0], [60.0]])
    return SetBatch.pack(items, torch.tensor([2, 0, 3]), torch.tensor([[0.1], [0.2], [0.3]]))


def test_owner_and_position(three: SetBatch) -> None:
    assert three.owner.tolist() == [0, 0, 2, 2, 2]
    assert three.position.tolist() == [0, 1, 0, 1, 2]


def test_mean_of_an_empty_set_is_zero(three: SetBatch) -> None:
    assert three.mean(three.items).tolist() == [[2.0], [0.0], [30.0]]


def test_take_keeps_items_context_and_index_together(three: SetBatch) -> None:
    taken = three.take(torch.tensor([2, 0, 2]))
    assert taken.items[:, 0].tolist() == [10, 20, 60, 1, 3, 10, 20, 60]
    assert taken.index.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert taken.context[:, 0].tolist() == pytest.approx([0.3, 0.1, 0.3])


def test_repeat_puts_copies_in_a_row_and_numbers_them_anew(three: SetBatch) -> None:
    copies = three.repeat(2)
    assert copies.sizes.tolist() == [2, 2, 0, 0, 3, 3]
    assert copies.index.tolist() == list(range(10))


def test_unpack_undoes_of() -> None:
    sets = [torch.rand(2, 3), torch.rand(4, 3)]
    for back, original in zip(SetBatch.of(sets).unpack(), sets, strict=True):
        assert torch.equal(back, original)


def test_standardise_by_hand() -> None:
    """1, 3: mean 2, spread 1. 10, 20, 60: mean 30, variance (400 + 100 + 900) / 3."""
    items = torch.tensor([[1.0], [3.0], [10.0], [20.0], [60.0]])
    x, mean, spread = standardise(SetBatch.pack(items, torch.tensor([2, 3])))
    assert mean[:, 0].tolist() == [2, 30]
    assert spread[:, 0].tolist() == pytest.approx([1.0, (1400 / 3) ** 0.5])
    assert x[:2, 0].tolist() == [-1, 1]


def test_standardise_every_feature_by_itself() -> None:
    """Spread 1 and 3 in the two features; the second set is a point."""
    items = torch.tensor([[0.0, 0.0], [2.0, 6.0], [5.0, 5.0]])
    x, mean, spread = standardise(SetBatch.pack(items, torch.tensor([2, 1])), per_feature=True)
    assert mean.tolist() == [[1.0, 3.0], [5.0, 5.0]]
    assert spread.tolist() == [[1.0, 3.0], [0.0, 0.0]]
    assert x.tolist() == [[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]]


def test_standardise_of_equal_items_is_zero_not_nan() -> None:
    sets = SetBatch.pack(torch.full((4, 2), 0.7), torch.tensor([4]))
    assert torch.equal(standardise(sets)[0], torch.zeros(4, 2))


def test_pack_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"sizes must add up to the number of items, 3; got 2\."):
        SetBatch.pack(torch.rand(3, 1), torch.tensor([2]))
    with pytest.raises(ValueError, match=r"one row per set, 1 in all; got 2\."):
        SetBatch.pack(torch.rand(3, 1), torch.tensor([3]), torch.rand(2, 1))
    SetBatch.pack(torch.rand(3, 1), torch.tensor([3]), torch.rand(1, 1))
    with pytest.raises(ValueError, match="at least one set"):
        SetBatch.of([])
    with pytest.raises(ValueError, match=r"sizes must be at least 0; got -1\."):
        SetBatch.pack(torch.rand(8, 1), torch.tensor([9, -1]))


def test_of_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"the same features; got \(3, 2\) and \(4, 3\)\."):
        SetBatch.of([torch.zeros(3, 2), torch.zeros(4, 3)])


def test_sizes_may_be_short_integers() -> None:
    sets = SetBatch.pack(torch.rand(5, 2), torch.tensor([2, 3], dtype=torch.int32))
    assert sets.mean(sets.items).shape == (2, 2)
