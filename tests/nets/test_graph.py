from __future__ import annotations

import pytest
import torch

from diconet.core.sets import SetBatch
from diconet.nets.graph_split import GraphSplit


@pytest.fixture
def split() -> GraphSplit:
    torch.manual_seed(0)
    return GraphSplit(2, width=8, num_layers=3)


def sets_of(*sizes: int, seed: int = 0) -> SetBatch:
    rng = torch.Generator().manual_seed(seed)
    return SetBatch.of([torch.rand(n, 2, generator=rng) for n in sizes])


def test_a_set_gets_the_same_logits_alone_or_in_a_batch(split: GraphSplit) -> None:
    sets = sets_of(5, 17, 6, 1, 30)
    together = sets.unpack(split.net(sets))
    for points, logits in zip(sets.unpack(), together, strict=True):
        alone = split.net(SetBatch.of([points]))
        torch.testing.assert_close(logits, alone, atol=1e-5, rtol=1e-4)


def test_order_of_the_items_does_not_matter(split: GraphSplit) -> None:
    sets = sets_of(12)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    turned = split.net(SetBatch.of([sets.items[order]]))
    torch.testing.assert_close(turned, split.net(sets)[order], atol=1e-5, rtol=1e-4)


def test_items_in_double_precision_are_welcome(split: GraphSplit) -> None:
    sets = sets_of(5, 12)
    fine = split.net(sets.with_items(sets.items.double()))
    torch.testing.assert_close(fine, split.net(sets), atol=1e-5, rtol=1e-4)


def test_shift_and_scale_do_not_matter(split: GraphSplit) -> None:
    sets = sets_of(12)
    moved = sets.with_items(sets.items * 7 + 3)
    torch.testing.assert_close(split.net(moved), split.net(sets), atol=1e-3, rtol=1e-2)


def test_kernel_reaches_the_output(split: GraphSplit) -> None:
    """Another sigma, other logits: a network that lost its kernel would not notice."""
    sets = sets_of(12)
    before = split.net(sets)
    split.net.sigma = 2.0
    assert (split.net(sets) - before).abs().max() > 1e-3


def test_equal_points_and_single_points_give_finite_gradients(split: GraphSplit) -> None:
    sets = SetBatch.of([torch.ones(4, 2), torch.ones(1, 2)])
    split(sets, torch.tensor([1, 2])).log_prob.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in split.parameters())


def test_many_cuts_are_the_cuts_of_copies(split: GraphSplit) -> None:
    sets, seeds = sets_of(5, 9), torch.arange(6)
    many, copies = split(sets, seeds), split(sets.repeat(3), seeds)
    assert many.side.tolist() == copies.side.tolist()
    torch.testing.assert_close(many.log_prob, copies.log_prob, atol=1e-4, rtol=1e-4)


def test_refuses_an_odd_width() -> None:
    with pytest.raises(ValueError, match="width must be even; got 5"):
        GraphSplit(2, width=5)
