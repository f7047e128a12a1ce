"""Going down one side only: which side of a cut holds the answer, and what is asked there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Level
from diconet.nets.compare import Counted, counted
from diconet.nets.forms import Forms

_RANGE = 1e4
"""Numbers that are asked of a side stay within this while they are learned."""


@dataclass(frozen=True, eq=False)
class Gated(Cut):
    """A cut, and the log-odds that the answer lies on its second side."""

    logit: Float[Tensor, "sets"] | None = None


class DescentSplit(nn.Module):
    """Cuts a set by another split, and decides which side the answer is on and what to ask there.

    A set's context is one number that is asked of it, such as k. Learned linear forms of that
    number, of how many items lie on both sides, and of 1 say on which side the answer is (the
    second where positive), and what number to ask of either side. When solving, the other side is
    closed: nobody looks at it again, so that the whole way down costs a few times the set.
    """

    general = True
    """Networks with this split are trained by `general_loss` unless told otherwise."""

    def __init__(self, split: nn.Module) -> None:
        super().__init__()
        self.config = {"split": split}
        self.split = split
        self.gate = Forms(3, degrees=(0, 1))
        self.asked = Forms(3, num_forms=2, degrees=(0, 1))

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Gated:
        cut: Cut = self.split(sets, seeds)
        second = sets.sum(cut.side.double())
        known = torch.stack([sets.context[:, 0].double(), sets.sizes - second, second], 1)
        logit = self.gate(known).squeeze(1)
        asked = self.asked(known).clamp(-_RANGE, _RANGE) if self.training else self.asked(known)
        closed = None
        if not self.training:
            closed = torch.stack([logit > 0, logit <= 0], 1)
        parts = (cut.side, cut.log_prob, cut.prob)
        return Gated(*parts, contexts=asked[:, :, None], closed=closed, logit=logit)


class DescentMerge(nn.Module):
    """Hands up the answer of the side that the split chose; it has nothing to learn itself.

    From a target, the likelihood is that of all choices on the way down to it.
    """

    def __init__(self, resolution: float = 0.5) -> None:
        super().__init__()
        self.config = {"resolution": resolution}
        self.resolution = resolution

    def forward(self, level: Level, below: Counted | None, target: Sequences | None) -> Counted:
        own, logit = level.sets, getattr(level.cut, "logit", None)
        rows = own.offsets[:-1].clamp(max=max(own.num_items - 1, 0))
        if below is not None and logit is not None:
            chosen = 2 * torch.arange(len(level.inner), device=rows.device) + (logit > 0)
            place = own.index.new_zeros(level.roots.num_items)
            place[own.index] = torch.arange(own.num_items, device=rows.device)
            rows = rows.index_copy(0, level.inner, place[below.sets.index[chosen]])
        answer = own.select(rows, torch.ones_like(own.sizes))
        # a cut looks at every item once
        looked = torch.where(level.is_leaf, 0, own.sizes)
        found = Counted(level.roots, answer, work=counted(level, looked, below))
        if target is None:
            return found
        before = None if below is None else below.log_prob
        total = own.items.new_zeros(len(level.roots)).double() if before is None else before
        if logit is not None and level.cut is not None:
            nodes = own.take(level.inner)
            wanted = target.mask(level.roots)[nodes.index]
            side = level.cut.side[wanted]
            odds = torch.asinh(logit[nodes.owner[wanted]] / self.resolution)
            term = F.logsigmoid(torch.where(side, odds, -odds))
            example = level.example[level.inner][nodes.owner[wanted]]
            total = total.index_add(0, example, term)
        return replace(found, log_prob=total)
