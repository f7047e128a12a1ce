"""Cuts by one independent coin flip per item, and the random split."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from diconet.core.model import Part
from diconet.core.noise import mix, uniform
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut


def coin_cut(
    sets: SetBatch, logits: Float[Tensor, "items"], seeds: Int[Tensor, "draws"] | None
) -> Cut:
    """One independent coin flip per item, given seeds; without, each takes its likelier side.

    Several seeds per set give the cuts of `sets.repeat(times)`.
    """
    if seeds is not None and len(seeds) > len(sets):
        times = len(seeds) // len(sets)
        sets, logits = sets.repeat(times), sets.repeated(logits, times)
    prob = torch.sigmoid(logits)
    if seeds is None:
        side = logits > 0
    else:
        draws = uniform(mix(seeds[sets.owner], sets.position))
        side = draws < prob.detach()
    log_prob = sets.sum(F.logsigmoid(torch.where(side, logits, -logits)))
    return Cut(side, log_prob, prob)


class RandomSplit(Part):
    """A fair coin flip for every item; nothing is learned."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        logits = sets.items.new_zeros(sets.num_items)
        if seeds is None:
            # A fair coin has no likelier side: draw the same sides for all sets of a size.
            seeds = mix(sets.sizes, self.seed)
        return coin_cut(sets, logits, seeds)
