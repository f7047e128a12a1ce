"""The knapsack recursion of section 6.3: fill a part of the room, then the rest the same way."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.greedy import ROOM, TO_COME, VALUE, WEIGHT
from diconet.noise import gumbel, mix
from diconet.segments import index_of, ragged_arange, segment_max, segment_sort
from diconet.sets import SetBatch
from diconet.splits.similarity import padded_rows, size_groups
from diconet.tree import Cut

NEVER = -1e9
"""The score of an item that cannot be drawn."""


class FillSplit(nn.Module):
    """Draws items without replacement until a fraction `alpha` of the capacity is filled.

    What was drawn is the closed first side. The second goes on with the room left and one call
    fewer to go as its context; the last of `num_splits` + 1 calls fills all of that. Items heavier
    than all that a call may fill are not drawn; a draw that does not fit beside the others ends it.
    Without seeds, items are taken in the order of their scores.
    """

    def __init__(self, network: nn.Module, alpha: float = 0.5, num_splits: int = 3) -> None:
        super().__init__()
        if not 0 < alpha <= 1:
            raise ValueError(f"alpha must be above 0 and at most 1; got {alpha}.")
        if num_splits < 0:
            raise ValueError(f"num_splits must be at least 0; got {num_splits}.")
        self.config = {"network": network, "alpha": alpha, "num_splits": num_splits}
        self.network = network
        self.alpha = alpha
        self.num_splits = num_splits

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        capacity = sets.context[:, ROOM]
        at_root = sets.context.shape[1] == 1
        to_go = torch.full_like(capacity, self.num_splits) if at_root else sets.context[:, TO_COME]
        budget = torch.where(to_go > 0, self.alpha * capacity, capacity)
        weights = sets.items[:, WEIGHT]
        scores = self._scores(sets, budget).masked_fill(weights > budget[sets.owner], NEVER)
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
        contexts = sets.context.new_zeros(len(sets), 2, 3)
        contexts[:, :, ROOM] = torch.stack([weight, capacity - weight], 1)
        contexts[:, 1, TO_COME] = to_go - 1
        closed = torch.stack([torch.ones_like(to_go, dtype=torch.bool), to_go <= 0], 1)
        return Cut(side, log_prob, contexts=contexts, closed=closed)

    def _scores(self, sets: SetBatch, budget: Float[Tensor, "sets"]) -> Float[Tensor, "items"]:
        """One score an item; the samples of one input, alike until the first draw, share them."""
        first, which = runs_of_equals(sets)
        some = sets.take(first)
        scores = self.network(some, fill_inputs(some, budget[first]))
        return scores[ragged_arange(some.offsets[:-1][which], sets.sizes)]


def runs_of_equals(sets: SetBatch) -> tuple[Int[Tensor, "runs"], Int[Tensor, "sets"]]:
    """The first set of every run of equal neighbours, and the run that each set is in."""
    size = int(sets.sizes[0]) if len(sets) else 0
    if len(sets) < 2 or bool((sets.sizes != size).any()):
        every = torch.arange(len(sets), device=sets.sizes.device)
        return every, every
    rows = torch.cat([sets.items.reshape(len(sets), -1), sets.context], 1)
    new = torch.ones(len(sets), dtype=torch.bool, device=rows.device)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    return index_of(new), new.long().cumsum(0) - 1


def fill_inputs(sets: SetBatch, budget: Float[Tensor, "sets"]) -> Float[Tensor, "items 3"]:
    """What the network sees of an item: value, weight and their ratio, relative to its set.

    The ratio enters as a logarithm: for uniform weights it has no mean.
    """
    value, weight = sets.items[:, VALUE], sets.items[:, WEIGHT]
    best = segment_max(value, sets.owner, len(sets)).clamp(min=1e-9)
    value = value / best[sets.owner]
    weight = (weight / budget.clamp(min=1e-9)[sets.owner]).clamp(max=1e3)
    ratio = torch.log(value.clamp(min=1e-6) / weight.clamp(min=1e-6))
    return torch.stack([value, weight.clamp(max=3), ratio], 1).float()


def draw_log_prob(
    sets: SetBatch, scores: Float[Tensor, "items"], taken: Bool[Tensor, "items"]
) -> Float[Tensor, "sets"]:
    """log-probability of drawing, out of each set's items, first the taken ones in their order.

    Scores come in the order of the draws, the taken items first. The item after them, which did not
    fit, was drawn too and counts: without it the estimate of the gradient would be biased.
    """
    count = sets.sum(taken.double()).long()
    drawn = (sets.position <= count[sets.owner]) & (scores > NEVER / 2)
    steps = scores.new_zeros(sets.num_items)
    for which in size_groups(sets.sizes, 4_000_000):
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
