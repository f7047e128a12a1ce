"""The knapsack recursion of section 6.3: fill a part of the room, then the rest the same way."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.noise import gumbel, mix, uniform
from diconet.core.segments import index_of, ragged_arange, segment_max, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.padding import padded_rows, similar_sizes
from diconet.nets.similarity import PAIRS_AT_ONCE
from diconet.problems.knapsack.greedy import ROOM, TO_COME, VALUE, WEIGHT

_RATIO = 2
"""The column of a network's inputs that is the ratio of value to weight."""

NUM_INPUTS = 5
"""What `fill_inputs` shows of an item."""

_MOST = 3.0
"""Weights are shown up to this multiple of the budget."""


class FillSplit(Part):
    """Draws items without replacement until a fraction `alpha` of the capacity is filled.

    What was drawn is the closed first side. The second goes on with the room left and one call
    fewer to go as its context; the last of `num_splits` + 1 calls fills all of that. A draw that
    does not fit beside the others ends a call. Without seeds, items are taken in the order of their
    scores.
    """

    def __init__(self, network: nn.Module, alpha: float = 0.5, num_splits: int = 3) -> None:
        super().__init__()
        if not 0 < alpha <= 1:
            raise ValueError(f"alpha must be above 0 and at most 1; got {alpha}.")
        if num_splits < 0:
            raise ValueError(f"num_splits must be at least 0; got {num_splits}.")
        self.network = network
        self.alpha = alpha
        self.num_splits = num_splits

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        capacity = sets.context[:, ROOM]
        at_root = sets.context.shape[1] == 1
        to_go = torch.full_like(capacity, self.num_splits) if at_root else sets.context[:, TO_COME]
        budget = torch.where(to_go > 0, self.alpha * capacity, capacity)
        weights = sets.items[:, WEIGHT]
        scores = self._scores(sets, budget)
        keys = scores.detach()
        if seeds is not None:
            keys = keys + gumbel(mix(seeds[sets.owner], sets.position))
        order = segment_sort(-keys, sets.owner)
        running = _running(weights[order], sets)
        taken = running <= budget[sets.owner]
        log_prob = draw_log_prob(sets, scores[order], taken)
        side = torch.empty_like(taken)
        side[order] = ~taken
        weight = sets.sum(torch.where(side, 0.0, weights))
        contexts = sets.context.new_zeros(len(sets), 2, 2)
        contexts[:, :, ROOM] = torch.stack([weight, capacity - weight], 1)
        contexts[:, 1, TO_COME] = to_go - 1
        closed = torch.stack([torch.ones_like(to_go, dtype=torch.bool), to_go <= 0], 1)
        return Cut(side, log_prob, contexts=contexts, closed=closed)

    def _scores(self, sets: SetBatch, budget: Float[Tensor, "sets"]) -> Float[Tensor, "items"]:
        """One score per item; the samples of one input, alike until the first draw, share them."""
        first, which = runs_of_equals(sets)
        some = sets.take(first)
        scores = self.network(some, fill_inputs(some, budget[first]))
        return scores[ragged_arange(some.offsets[:-1][which], sets.sizes)]


def runs_of_equals(sets: SetBatch) -> tuple[Int[Tensor, "runs"], Int[Tensor, "sets"]]:
    """The first set of every run of equal neighbours, and the run that each set is in."""
    new = torch.ones(len(sets), dtype=torch.bool, device=sets.sizes.device)
    new[1:] = (sets.sizes[1:] != sets.sizes[:-1]) | ((sets.context[1:] != sets.context[:-1]).any(1))
    # Where sizes agree, an item's partner in the set before lies one set's size further up.
    partner = torch.arange(sets.num_items, device=new.device) - sets.sizes[sets.owner]
    differs = (sets.items != sets.items[partner.clamp(min=0)]).any(1)
    new |= sets.sum(differs.double()) > 0
    return index_of(new), new.long().cumsum(0) - 1


def fill_inputs(sets: SetBatch, budget: Float[Tensor, "sets"]) -> Float[Tensor, "items 5"]:
    """What the network sees of an item: value, weight and their ratio, relative to its set.

    The ratio enters as a logarithm: for uniform weights it has no mean. Two are ours: the weight of
    all items up to this one by falling ratio, which reaches 1 where the budget is used up, and the
    budget's share of the room left, which tells the last call from the others.
    """
    value, weight = sets.items[:, VALUE], sets.items[:, WEIGHT]
    best = segment_max(value, sets.owner, len(sets)).clamp(min=1e-9)
    value = value / best[sets.owner]
    weight = (weight / budget.clamp(min=1e-9)[sets.owner]).clamp(max=1e3)
    ratio = torch.log(value.clamp(min=1e-6) / weight.clamp(min=1e-6))
    order = segment_sort(-ratio, sets.owner)
    running = torch.empty_like(weight)
    running[order] = _running(weight[order], sets)
    share = (budget / sets.context[:, ROOM].clamp(min=1e-9))[sets.owner]
    inputs = [value, weight.clamp(max=_MOST), ratio, running.clamp(max=_MOST), share]
    return torch.stack(inputs, 1).float()


def draw_log_prob(
    sets: SetBatch, scores: Float[Tensor, "items"], taken: Bool[Tensor, "items"]
) -> Float[Tensor, "sets"]:
    """log-probability of drawing, out of each set's items, first the taken ones in their order.

    Scores come in the order of the draws, the taken items first. The item after them, which did not
    fit, was drawn too and counts: without it the estimate of the gradient would be biased.
    """
    count = sets.sum(taken.double()).long()
    drawn = sets.position <= count[sets.owner]
    steps = scores.new_zeros(sets.num_items)
    for which in similar_sizes(sets.sizes, most_pairs=PAIRS_AT_ONCE):
        rows, there = padded_rows(sets, which)
        left = scores[rows].masked_fill(~there, -1e30)
        remaining = left.flip(1).logcumsumexp(1).flip(1)
        steps = steps.index_put((rows[there],), (left - remaining)[there])
    return sets.sum(torch.where(drawn, steps, 0.0))


def _running(values: Float[Tensor, "items"], sets: SetBatch) -> Float[Tensor, "items"]:
    """Running sums within each set, for items that lie in the sets' places."""
    total = values.cumsum(0)
    before = torch.cat([total.new_zeros(1), total])[sets.offsets[:-1]]
    return total - before[sets.owner]


class RatioOrder(nn.Module):
    """In place of a network: items by falling value per weight."""

    def forward(self, sets: SetBatch, x: Float[Tensor, "items inputs"]) -> Float[Tensor, "items"]:
        return x[:, _RATIO]


class RandomOrder(nn.Module):
    """In place of a network: items in an order of no meaning, the same for the same set."""

    def forward(self, sets: SetBatch, x: Float[Tensor, "items inputs"]) -> Float[Tensor, "items"]:
        return uniform(mix(sets.index, sets.position))
