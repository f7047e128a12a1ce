"""The merge for subsets: a node keeps some of the items that its halves kept."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.coin import coin_cut
from diconet.core.model import Part
from diconet.core.tree import Level
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed, add_by_root


class SubsetMerge(Part):
    """Keeps or drops every item passed up (Y within Y0 and Y1); a leaf chooses among its own.

    With a reward, every decision is a draw for the policy gradient. With a target, an item that
    belongs to it is kept all the way up, and any other must be dropped somewhere: the likelihood of
    the target is the product of these probabilities over items.
    """

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        self.encoder = SetEncoder(extra=HAND_FEATURES, **encoder)
        self.head = nn.Linear(self.encoder.width, 1)
        nn.init.zeros_(self.head.bias)

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        logit = self.head(handed.looked_at(level, self.encoder).per_copy()).squeeze(1)
        drawn = coin_cut(handed.sets, logit, handed.seeds)
        if target is None:
            answer = handed.kept(level, drawn.side)
            return Chosen.by_steps(level, below, answer, drawn.log_prob, None)
        log_keep = F.logsigmoid(logit)
        keep, survival, log_prob = likelihood(level, handed, below, target, log_keep, drawn.side)
        answer = handed.kept(level, keep)
        every = survival.new_zeros(level.roots.num_items)
        survival = every.index_copy(0, handed.sets.index, survival)[answer.index]
        return Chosen(level.roots, answer, log_prob=log_prob, survival=survival)


def likelihood(
    level: Level,
    handed: Handed,
    below: Chosen | None,
    target: Sequences,
    log_keep: Float[Tensor, "items"],
    stays: Bool[Tensor, "items"],
) -> tuple[Bool[Tensor, "items"], Float[Tensor, "items"], Float[Tensor, "roots"]]:
    """The items that stay or belong, and the log-probabilities of their path and of the target."""
    survival = log_keep
    if below is not None and below.survival is not None:
        survival = log_keep + handed.from_below(level, below.survival)
    member = target.mask(level.roots)[handed.sets.index]
    keep = stays | member
    last = ~member & ((level.number == 0) | ~keep)
    term = torch.where(member, log_keep, torch.where(last, log_not(survival), 0))
    return keep, survival, add_by_root(level, term, handed.sets.owner, below)


def log_not(log_prob: Float[Tensor, "items"]) -> Float[Tensor, "items"]:
    """log(1 - p) from log p."""
    return torch.log(-torch.expm1(log_prob.clamp(max=-1e-6)))
