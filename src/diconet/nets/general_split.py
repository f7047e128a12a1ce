"""The split for anyone's task: a coin for every item, from the general network over its set."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.coin import coin_cut
from diconet.core.segments import ragged_arange
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.rounds import Decider


class GeneralSplit(nn.Module):
    """A coin for every item, drawn from one look at the set, or in `rounds` of several looks.

    The other arguments are those of a `SetEncoder`. `many` draws several cuts of a set whose first
    look they share, with its noise.
    """

    general = True
    """Networks with this split are trained by `general_loss` unless told otherwise."""

    def __init__(self, rounds: int = 1, **encoder: Any) -> None:
        super().__init__()
        self.decider = Decider(rounds, **encoder)
        self.config = self.decider.config

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        decided = self.decider(sets, seeds)
        prob = torch.sigmoid(decided.logit)
        return Cut(decided.yes, sets.sum(decided.log_prob), prob)

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)`, where there are `times` seeds per set."""
        times = len(seeds) // len(sets)
        if self.decider.rounds > 1:
            return self(sets.repeat(times), seeds)
        logits = self.decider.logits(sets, seeds[::times], None)
        which = torch.arange(len(sets), device=logits.device).repeat_interleave(times)
        rows = ragged_arange(sets.offsets[:-1][which], sets.sizes[which])
        copies = SetBatch.pack(sets.items[rows], sets.sizes[which])
        return coin_cut(copies, logits.index_select(0, rows), seeds)
