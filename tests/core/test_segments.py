from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diconet.core.segments import (
    cross,
    followers,
    inverse,
    owner_of,
    place_within,
    ragged_arange,
    segment_argmax,
    segment_logsumexp,
    segment_max,
    segment_sort,
    segment_sum,
)

sizes_lists = st.lists(st.integers(0, 5), min_size=1, max_size=6)


def _values(sizes: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    values = torch.randn(sum(sizes), generator=torch.Generator().manual_seed(seed))
    return values, owner_of(torch.tensor(sizes))


def test_ragged_arange_lists_every_run() -> None:
    runs = ragged_arange(torch.tensor([10, 3, 7]), torch.tensor([2, 0, 3]))
    assert runs.tolist() == [10, 11, 7, 8, 9]


def test_followers_go_round_each_segment() -> None:
    sizes = torch.tensor([3, 0, 1, 2])
    assert followers(sizes).tolist() == [1, 2, 0, 3, 5, 4]
    assert followers(sizes, -1).tolist() == [2, 0, 1, 3, 5, 4]


@given(sizes_lists, st.integers(0, 9))
def test_reductions_agree_with_a_loop(sizes: list[int], seed: int) -> None:
    values, owner = _values(sizes, seed)
    pieces = values.split(sizes)
    total = segment_sum(values, owner, len(sizes))
    assert torch.allclose(total, torch.stack([p.sum() for p in pieces]), atol=1e-6)
    lse = segment_logsumexp(values, owner, len(sizes))
    assert torch.allclose(lse, torch.stack([p.logsumexp(0) for p in pieces]), atol=1e-5)
    best, first, start = segment_max(values, owner, len(sizes)), 0, 0
    argbest = segment_argmax(values, owner, len(sizes))
    for i, piece in enumerate(pieces):
        assert best[i] == (piece.max() if len(piece) else 0)
        first = start + int(piece.argmax()) if len(piece) else len(values)
        assert argbest[i] == first
        start += len(piece)


def test_logsumexp_survives_large_values() -> None:
    values = torch.tensor([1000.0, 1000.0, -1000.0])
    lse = segment_logsumexp(values, torch.tensor([0, 0, 1]), 2)
    assert lse.tolist() == pytest.approx([1000.6931, -1000.0])


def test_logsumexp_has_the_gradient_of_a_softmax() -> None:
    values = torch.tensor([0.3, -1.0, 2.0], requires_grad=True)
    segment_logsumexp(values, torch.tensor([0, 0, 1]), 2).sum().backward()
    assert torch.allclose(values.grad, torch.cat([values[:2].softmax(0), torch.ones(1)]).detach())


@given(sizes_lists, st.integers(0, 9))
def test_sort_stays_within_segments(sizes: list[int], seed: int) -> None:
    values, owner = _values(sizes, seed)
    expected = torch.cat([p.sort().values for p in values.split(sizes)])
    assert torch.equal(values[segment_sort(values, owner)], expected)


def test_cross_pairs_only_within_a_segment() -> None:
    left, right = cross(torch.tensor([2, 1]), torch.tensor([1, 2]))
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 0), (1, 0), (2, 1), (2, 2)]


def test_inverse_undoes_a_permutation() -> None:
    permutation = torch.tensor([2, 0, 1])
    assert permutation[inverse(permutation)].tolist() == [0, 1, 2]


def test_places_count_within_an_owner_in_any_order() -> None:
    owner = torch.tensor([2, 0, 2, 2, 0, 3])
    assert place_within(owner, 5).tolist() == [0, 0, 1, 2, 1, 0]
