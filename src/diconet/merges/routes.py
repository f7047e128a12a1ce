"""The product of stochastic matrices over a tree (eq. mergefinaleq), kept sparse.

Every merge is a stochastic matrix, rows its output places and columns its inputs. The likelihood of
a target needs only the product's entries at the target's items, so a node hands up, for each row of
its answer and each target item below it, the probability that this row *is* that item: its routes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.segments import cross, index_of, offsets_of, owner_of, segment_sum
from diconet.sets import SetBatch
from diconet.tree import Level


@dataclass(frozen=True, eq=False)
class Routes:
    """`prob[e]`: how likely packed row `row[e]` carries item `item[e]` of the roots."""

    row: Int[Tensor, "routes"]
    item: Int[Tensor, "routes"]
    prob: Float[Tensor, "routes"]


@dataclass(frozen=True, eq=False)
class Gamma:
    """The stochastic matrices of all nodes of a level, row after row.

    `sizes` counts each node's rows and `widths` its columns; `prob` lists the entries of one row
    after the other. What a row lacks to 1 is its probability of ending.
    """

    prob: Float[Tensor, "entries"]
    sizes: Int[Tensor, "nodes"]
    widths: Int[Tensor, "nodes"]

    def entry(self, row: Int[Tensor, "some"], column: Int[Tensor, "some"]) -> Float[Tensor, "some"]:
        """Entries by packed row and packed column, both of the same node."""
        node = owner_of(self.sizes)
        width = self.widths[node]
        place = column - offsets_of(self.widths)[:-1][node[row]]
        return self.prob[offsets_of(width)[:-1][row] + place]

    @classmethod
    def chosen(
        cls,
        rows: Int[Tensor, "rows"],
        sizes: Int[Tensor, "nodes"],
        nodes: SetBatch,
        floor: float,
    ) -> Gamma:
        """Choices already made: `1 - n floor` at the chosen item, `floor` elsewhere (4.2.3).

        Where the items are so many that nothing much would be left, they share half.
        """
        owner = owner_of(sizes)
        width = nodes.sizes[owner]
        lowest = (0.5 / width.to(nodes.items.dtype)).clamp(max=floor)
        prob = lowest.repeat_interleave(width)
        place = rows - nodes.offsets[:-1][owner]
        prob[offsets_of(width)[:-1] + place] = 1 - width * lowest
        return cls(prob, sizes, nodes.sizes)


def routes_in(
    level: Level,
    origin: Int[Tensor, "rows"],
    memory: SetBatch,
    below: Routes | None,
    is_target: Bool[Tensor, "items"],
) -> Routes:
    """The routes that enter a level: a leaf's item is itself, a row from below as handed up."""
    own_items = level.sets.num_items
    leaf_rows = index_of((origin < own_items) & is_target[memory.index])
    items = memory.index[leaf_rows]
    if below is None:
        return Routes(leaf_rows, items, torch.ones_like(items, dtype=memory.items.dtype))
    place = torch.empty(len(origin) + own_items, dtype=torch.long, device=origin.device)
    place[origin] = torch.arange(len(origin), device=origin.device)
    return Routes(
        torch.cat([leaf_rows, place[own_items + below.row]]),
        torch.cat([items, below.item]),
        torch.cat([torch.ones_like(items, dtype=below.prob.dtype), below.prob]),
    )


def routes_out(
    level: Level,
    routes: Routes,
    gamma: Gamma,
    memory: SetBatch,
    is_target: Bool[Tensor, "items"],
) -> Routes:
    """One factor of the product: routes to the inputs of a level become routes to its outputs."""
    nodes = len(level.sets)
    hit = is_target[level.sets.index]
    targets = segment_sum(hit.to(torch.float32), level.sets.owner, nodes).long()
    hit_rows = index_of(hit)
    # Out go, node by node, all pairs (row of the answer, target item under the node).
    out_row, out_target = cross(gamma.sizes, targets)
    item = level.sets.index[hit_rows][out_target]

    node = memory.owner[routes.row]
    by_node = torch.argsort(node, stable=True)
    entry, gamma_row = cross(torch.bincount(node, minlength=nodes), gamma.sizes)
    entry = by_node[entry]
    flow = gamma.entry(gamma_row, routes.row[entry]) * routes.prob[entry]

    local = torch.zeros(len(is_target), dtype=torch.long, device=hit.device)
    start = offsets_of(targets)[:-1]
    local[level.sets.index[hit_rows]] = (
        torch.arange(len(hit_rows), device=hit.device) - start[level.sets.owner[hit_rows]]
    )
    row_start = offsets_of(targets[owner_of(gamma.sizes)])[:-1]
    out = row_start[gamma_row] + local[routes.item[entry]]
    return Routes(out_row, item, segment_sum(flow, out, len(out_row)))
