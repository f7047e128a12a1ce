"""The split for anyone's task: a coin for every item, from the general network over its set."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.segments import owner_of, segment_sum
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.rounds import Decided, Decider


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
        return _cut(self.decider(sets, seeds), sets.owner, len(sets))

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)`, where there are `times` seeds per set."""
        times = len(seeds) // len(sets)
        owner = owner_of(sets.sizes.repeat_interleave(times))
        return _cut(self.decider(sets, seeds, copies=times), owner, len(seeds))


def _cut(decided: Decided, owner: Int[Tensor, "items"], num_sets: int) -> Cut:
    total = segment_sum(decided.log_prob, owner, num_sets)
    return Cut(decided.yes, total, torch.sigmoid(decided.logit))
