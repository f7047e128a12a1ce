"""The merge for fronts: an item stays unless one of the other half dominates it."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.segments import cross, index_of, segment_sum
from diconet.core.sets import SetBatch
from diconet.core.tree import Level, halves
from diconet.nets.compare import Counted, counted, middles
from diconet.nets.form_kernels import merge_fronts
from diconet.nets.forms import Forms
from diconet.nets.handed import Handed, add_by_root
from diconet.nets.subset import log_not


class DominanceMerge(nn.Module):
    """Keeps of two fronts what nothing in the other one dominates.

    One item dominates another where none of `num_forms` learned forms of the two is negative and
    some are positive. Given is that the two are compared in this way, and that fronts are walked in
    the order of their first feature, so that each item meets only its neighbours in the other half;
    what the forms say is learned. They are linear without a constant, so that they change sign at
    the same place at every scale. From a target, as in `SubsetMerge`: what belongs is kept on all
    of its way up, what does not must be dropped somewhere; every item then meets all of the other
    half.
    """

    def __init__(self, num_features: int, num_forms: int = 2, resolution: float = 0.1) -> None:
        super().__init__()
        self.config = {
            "num_features": num_features,
            "num_forms": num_forms,
            "resolution": resolution,
        }
        self.form = Forms(2 * num_features, num_forms, degrees=(1,))
        self.resolution = resolution

    def forward(self, level: Level, below: Counted | None, target: Sequences | None) -> Counted:
        handed = Handed.of(level, None if below is None else below.sets)
        if target is None:
            return self._merged(level, handed, below)
        node = handed.sets
        log_keep = self._log_keep(level, node, below)
        survival = log_keep
        if below is not None and below.survival is not None:
            survival = log_keep + handed.from_below(level, below.survival)
        member = target.mask(level.roots)[node.index]
        keep = (log_keep > -torch.log(log_keep.new_tensor(2.0))) | member
        last = ~member & ((level.number == 0) | ~keep)
        term = torch.where(member, log_keep, torch.where(last, log_not(survival), 0))
        before = None if below is None else below.log_prob
        total = add_by_root(level, term, node.owner, before)
        rows = index_of(keep)
        kept = torch.bincount(node.owner[rows], minlength=len(node))
        return Counted(
            level.roots, node.select(rows, kept), log_prob=total, survival=survival[rows]
        )

    def _log_keep(
        self, level: Level, node: SetBatch, below: Counted | None
    ) -> Float[Tensor, "items"]:
        """The log-probability that nothing in the other half dominates an item."""
        row, other = rows_across(level, None if below is None else below.sets)
        both = torch.cat([node.items[row], node.items[other]], 1)
        dominated = F.logsigmoid(self.form(both) / self.resolution).sum(1)
        return segment_sum(log_not(dominated), row, node.num_items)

    def _merged(self, level: Level, handed: Handed, below: Counted | None) -> Counted:
        node = handed.sets
        order, stays, tested = merge_fronts(
            to_host(node.items.double()),
            to_host(node.offsets),
            to_host(middles(handed)),
            *self.form.terms(),
        )
        order = from_host(order, node.items)
        rows = order[from_host(stays, node.items)[order]]
        kept = torch.bincount(node.owner[rows], minlength=len(node))
        work = counted(level, from_host(tested, node.items), below)
        return Counted(level.roots, node.select(rows, kept), work=work)


def rows_across(
    level: Level, below: SetBatch | None
) -> tuple[Int[Tensor, "pairs"], Int[Tensor, "pairs"]]:
    """Every two rows of a node that come from different halves, in both orders.

    At a leaf with more than one item, every two different ones.
    """
    pairs, _ = halves(level, below)
    sizes = pairs.sizes.reshape(-1, 2)
    node = sizes.sum(1)
    row, other = cross(node, node)
    half = pairs.owner % 2
    apart = (half[row] != half[other]) | (level.is_leaf[pairs.owner[row] // 2] & (row != other))
    return row[apart], other[apart]
