"""Learned forms: sums of products whose coefficients become small whole numbers when solving.

A network that is right at ten items and wrong at a million mostly errs on close calls. A form has
none: its coefficients are real numbers during training; when solving, they are rounded to multiples
of half the largest of them, so that "first minus second" is exact at every scale. Two merges
consist of nothing else: one that compares two heads, and one that descends into one side only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.model import Part
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Level
from diconet.nets.form_kernels import merge_ordered
from diconet.nets.handed import Chosen, Handed, add_by_root
from diconet.nets.order import rivals

STEP = 0.5
"""Coefficients are rounded to multiples of this, in units of the largest of a form."""


class Forms(Part):
    """Forms in `num_inputs` numbers: sums over a constant, the numbers, and products of two.

    `degrees` restricts them to some of these three.

    In training mode the coefficients are as learned; in evaluation mode they are in units of the
    largest of their form, rounded to multiples of a half.
    """

    pairs: Tensor

    def __init__(
        self, num_inputs: int, num_forms: int = 1, degrees: Sequence[int] = (0, 1, 2)
    ) -> None:
        super().__init__()
        if not degrees or not set(degrees) <= {0, 1, 2}:
            raise ValueError(f"degrees must be some of 0, 1, 2; got {degrees}.")
        products = combinations_with_replacement(range(num_inputs + 1), 2)  # 0 represents 1
        pairs = [pair for pair in products if sum(place > 0 for place in pair) in degrees]
        self.register_buffer("pairs", torch.tensor(pairs), persistent=False)
        self.weight = nn.Parameter(torch.randn(num_forms, len(pairs), dtype=torch.float64) / 2)

    @property
    def coefficients(self) -> Float[Tensor, "forms terms"]:
        """The effective coefficients: at most 1 in size in training, else multiples of a half."""
        largest = self.weight.abs().amax(1, keepdim=True)
        if self.training:
            return self.weight / largest.clamp(min=1)
        return torch.round(self.weight / largest.clamp(min=1e-30) / STEP) * STEP

    def forward(self, inputs: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows forms"]:
        inputs = inputs.to(self.weight.dtype)
        with_one = torch.cat([torch.ones_like(inputs[:, :1]), inputs], 1)
        weight, pairs = self.coefficients, self.pairs
        if not self.training:  # terms with coefficient 0 must not overflow either
            some = (weight != 0).any(0)
            weight, pairs = weight[:, some], pairs[some]
        return (with_one[:, pairs[:, 0]] * with_one[:, pairs[:, 1]]) @ weight.T

    def terms(self) -> tuple[np.ndarray, np.ndarray]:
        """The nonzero coefficients, (forms, terms), and the pairs of inputs they belong to.

        For compiled kernels, on the host.
        """
        weight = self.coefficients.detach()
        some = (weight != 0).any(0)
        return to_host(weight[:, some].contiguous()), to_host(self.pairs[some].contiguous())


def counted(level: Level, work: Tensor, below: Any) -> Float[Tensor, "roots"]:
    """The work of the nodes of a level summed by root, added to that below."""
    nodes = torch.arange(len(work), device=work.device)
    return add_by_root(level, work.double(), nodes, below, "work")


def middles(handed: Handed) -> Int[Tensor, "nodes"]:
    """The row at which each node's second half begins; the end of the node if it is a leaf."""
    second = handed.sets.sum((handed.half == 1).double()).long()
    return handed.sets.offsets[1:] - second


class ComparedMerge(Part):
    """Merges two ordered halves by comparing their heads; a learned form says which goes first.

    The form sees 1 and the features of both items, and all products of two of these. It is given
    that heads are compared; which of two goes first, and by what features, is learned. The
    likelihood of a target is exact: a node's part of the target is the only order from which the
    root can still reach it. `resolution` is the unit of the form during training.
    """

    def __init__(self, num_features: int, resolution: float = 0.1) -> None:
        super().__init__()
        self.form = Forms(2 * num_features)
        self.resolution = resolution

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        node = handed.sets
        if target is None:
            return self._merged(level, handed, below)
        order = handed.in_order_of(target, level)
        row, rival = rivals(handed, order)
        # the form sees the first half's head first, whichever of the two won
        low, high = torch.minimum(row, rival), torch.maximum(row, rival)
        logit = self.form(torch.cat([node.items[low], node.items[high]], 1)).squeeze(1)
        log_prob = F.logsigmoid(torch.where(row == low, logit, -logit) / self.resolution)
        total = add_by_root(level, log_prob, node.owner[row], below)
        return Chosen(level.roots, node.select(order, node.sizes), log_prob=total)

    def _merged(self, level: Level, handed: Handed, below: Chosen | None) -> Chosen:
        node = handed.sets
        coefficients, pairs = self.form.terms()
        order, compared = merge_ordered(
            to_host(node.items.double()),
            to_host(node.offsets),
            to_host(middles(handed)),
            coefficients[0],
            pairs,
        )
        work = counted(level, from_host(compared, node.items), below)
        rows = from_host(order, node.items)
        return Chosen(level.roots, node.select(rows, node.sizes), work=work)


_RANGE = 1e4
"""The limit of the numbers passed to a side during training."""


@dataclass(frozen=True, eq=False)
class Gated(Cut):
    """A cut, and the log-odds that the answer lies on its second side."""

    logit: Float[Tensor, "sets"] | None = None


class DescentSplit(Part):
    """Cuts a set by another split, and chooses the side of the answer and what to ask for there.

    A set's context is one number that is asked for, such as k. Learned linear forms of that number,
    of the sizes of both sides, and of 1 give the side of the answer (the second if positive), and
    the number to ask for in either side. When solving, the other side is closed and never visited
    again, so that the whole descent costs a few times the size of the set.
    """

    general = True

    def __init__(self, split: nn.Module) -> None:
        super().__init__()
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


class DescentMerge(Part):
    """Passes up the answer of the side that the split chose; it has no parameters.

    The likelihood of a target is that of all choices on the way down to it.
    """

    def __init__(self, resolution: float = 0.5) -> None:
        super().__init__()
        self.resolution = resolution

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        own, logit = level.sets, getattr(level.cut, "logit", None)
        rows = own.offsets[:-1].clamp(max=max(own.num_items - 1, 0))
        if below is not None and logit is not None:
            chosen = 2 * torch.arange(len(level.inner), device=rows.device) + (logit > 0)
            place = own.index.new_zeros(level.roots.num_items)
            place[own.index] = torch.arange(own.num_items, device=rows.device)
            rows = rows.index_copy(0, level.inner, place[below.sets.index[chosen]])
        answer = own.select(rows, torch.ones_like(own.sizes))
        # a cut visits every item once
        looked = torch.where(level.is_leaf, 0, own.sizes)
        found = Chosen(level.roots, answer, work=counted(level, looked, below))
        if target is None:
            return found
        if logit is None or level.cut is None:  # the deepest level, where nothing is cut
            return replace(found, log_prob=own.items.new_zeros(len(level.roots)).double())
        nodes = own.take(level.inner)
        wanted = target.mask(level.roots)[nodes.index]
        side, owner = level.cut.side[wanted], nodes.owner[wanted]
        odds = torch.asinh(logit[owner] / self.resolution)
        term = F.logsigmoid(torch.where(side, odds, -odds))
        return replace(found, log_prob=add_by_root(level, term, level.inner[owner], below))
