"""The merge for answers that are subsets: a node keeps some of what its halves kept."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.tree import Level
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed, add_by_root
from diconet.nets.rounds import Decider


class SubsetMerge(nn.Module):
    """Keeps or drops every item handed up (Y within Y0 and Y1); a leaf chooses among its own.

    From a reward, every decision is drawn, and the policy gradient counts it. From a target, an
    item that belongs is kept on all of its way up, and one that does not must be dropped somewhere:
    the likelihood of the target is the product over items of the chance of that.
    """

    def __init__(self, rounds: int = 1, **encoder: Any) -> None:
        super().__init__()
        encoder.pop("extra", None)
        self.decider = Decider(rounds, extra=HAND_FEATURES, **encoder)
        self.config = self.decider.config

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, None if below is None else below.sets)
        sets, rows, copies = handed.distinct(level)
        signals = handed.signals(torch.float32)[rows]
        decided = self.decider(sets, handed.seeds, signals, copies)
        keep, log_prob, survival = decided.yes, None, None
        if target is not None:
            log_keep = F.logsigmoid(decided.logit)
            survival = log_keep
            if below is not None and below.survival is not None:
                survival = log_keep + handed.from_below(level, below.survival)
            member = target.mask(level.roots)[handed.sets.index]
            keep = keep | member
            last = ~member & ((level.number == 0) | ~keep)
            term = torch.where(member, log_keep, torch.where(last, log_not(survival), 0))
            before = None if below is None else below.log_prob
            log_prob = add_by_root(level, term, handed.sets.owner, before)
        draws = None
        if handed.seeds is not None:
            before = None if below is None else below.draw_log_prob
            draws = add_by_root(level, decided.log_prob, handed.sets.owner, before)
        answer = handed.kept(level, keep)
        if survival is not None:
            every = survival.new_zeros(level.roots.num_items)
            survival = every.index_copy(0, handed.sets.index, survival)[answer.index]
        return Chosen(level.roots, answer, draws, log_prob, survival)


def log_not(log_prob: Float[Tensor, "items"]) -> Float[Tensor, "items"]:
    """log(1 - p) from log p."""
    return torch.log(-torch.expm1(log_prob.clamp(max=-1e-6)))
