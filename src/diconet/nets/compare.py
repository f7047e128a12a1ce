"""The merge for orders that is exact at any size: two heads compared by a learned form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.segments import segment_sort
from diconet.core.tree import Level
from diconet.nets.form_kernels import merge_ordered
from diconet.nets.forms import Forms
from diconet.nets.handed import Chosen, Handed, add_by_root
from diconet.nets.order import rivals


@dataclass(frozen=True, eq=False)
class Counted(Chosen):
    """Items handed up, and how many comparisons, or similar steps, each root has cost so far."""

    work: Float[Tensor, "roots"] | None = None


def counted(level: Level, work: Tensor, below: Any) -> Float[Tensor, "roots"]:
    """The work of the nodes of a level added up by root, on top of that below."""
    total = torch.zeros(len(level.roots), dtype=torch.float64, device=work.device)
    total = total.index_add(0, level.example, work.double())
    before = getattr(below, "work", None)
    return total if before is None else total + before


def middles(handed: Handed) -> Int[Tensor, "nodes"]:
    """The row at which each node's second half begins; the end of the node where it is a leaf."""
    second = handed.sets.sum((handed.half == 1).double()).long()
    return handed.sets.offsets[1:] - second


class ComparedMerge(nn.Module):
    """Puts the heads of two ordered halves against each other; a learned form says who is first.

    The form sees 1 and the features of both items, and all products of two of these. Given is that
    heads are compared; which of two comes first, and by what, is learned. From a target the
    likelihood is exact: a node's part of the target is the only order from which the root can still
    reach it. `resolution` is the unit of the form while it learns.
    """

    def __init__(self, num_features: int, resolution: float = 0.1) -> None:
        super().__init__()
        self.config = {"num_features": num_features, "resolution": resolution}
        self.form = Forms(2 * num_features)
        self.resolution = resolution

    def forward(self, level: Level, below: Counted | None, target: Sequences | None) -> Counted:
        handed = Handed.of(level, None if below is None else below.sets)
        node = handed.sets
        if target is None:
            return self._merged(level, handed, below)
        rank = node.index.new_empty(level.roots.num_items)
        rank[target.rows(level.roots)] = torch.arange(len(rank), device=rank.device)
        order = segment_sort(rank[node.index], node.owner)
        row, rival = rivals(handed, order)
        # the form sees the first half's head first, whichever of the two it was that won
        low, high = torch.minimum(row, rival), torch.maximum(row, rival)
        logit = self.form(torch.cat([node.items[low], node.items[high]], 1)).squeeze(1)
        log_prob = F.logsigmoid(torch.where(row == low, logit, -logit) / self.resolution)
        before = None if below is None else below.log_prob
        total = add_by_root(level, log_prob, node.owner[row], before)
        return Counted(level.roots, node.select(order, node.sizes), log_prob=total)

    def _merged(self, level: Level, handed: Handed, below: Counted | None) -> Counted:
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
        return Counted(level.roots, node.select(rows, node.sizes), work=work)
