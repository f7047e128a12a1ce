"""The product of stochastic matrices over a tree (eq. mergefinaleq), as far as a target needs it.

Every merge is a stochastic matrix, with rows for its outputs and columns for its inputs. The
likelihood of a target needs only the product's columns at the target's items, so a node passes up,
for each row of its answer and each item of the target, the probability that this row *is* that
item: its routes.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.segments import ragged_arange
from diconet.core.sets import SetBatch


def routes_of_items(
    roots: SetBatch, target: Sequences, items: Int[Tensor, "rows"], dtype: torch.dtype
) -> Float[Tensor, "rows targets"]:
    """The initial routes of items: each is itself with probability 1.

    `items` are rows of the roots; column j is the j-th item of the target of their own root.
    """
    longest = int(target.sizes.max()) if len(target) else 0
    column = torch.full((roots.num_items,), longest, device=items.device)
    rows = target.rows(roots)
    column[rows] = ragged_arange(torch.zeros_like(target.sizes), target.sizes)
    return torch.nn.functional.one_hot(column[items], longest + 1)[:, :-1].to(dtype)


def hard_matrices(
    chosen: Int[Tensor, "nodes steps"], nodes: SetBatch, most: int, floor: float
) -> Float[Tensor, "nodes steps items"]:
    """Hard choices as matrices: `1 - n floor` at the item, `floor` elsewhere (4.2.3).

    If there are so many items that little would be left, they share half.
    """
    sizes = nodes.sizes.clamp(min=1).to(torch.float32)
    lowest = (0.5 / sizes).clamp(max=floor)[:, None, None]
    there = torch.arange(most, device=sizes.device) < nodes.sizes[:, None]
    matrix = torch.where(there[:, None, :], lowest, 0).repeat(1, chosen.shape[1], 1)
    highest = (1 - sizes[:, None, None] * lowest).expand(-1, chosen.shape[1], 1)
    matrix.scatter_(2, chosen.clamp(min=0)[:, :, None], highest)
    return matrix * (chosen >= 0)[:, :, None]


def padded(
    values: Float[Tensor, "rows columns"] | Int[Tensor, "rows columns"], nodes: SetBatch, most: int
) -> Float[Tensor, "nodes most columns"] | Int[Tensor, "nodes most columns"]:
    """Per-item values as one block per node, zero where a node has fewer items than `most`."""
    block = values.new_zeros(len(nodes) * most, values.shape[1])
    place = nodes.owner * most + nodes.position
    return block.index_copy(0, place, values).reshape(len(nodes), most, values.shape[1])
