"""What one item is to another: a score for every pair, for answers that are made step by step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.host import count
from diconet.core.sets import SetBatch, standardise
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import Look

_MOST_PAIRS = 2**21
"""Sets with more pairs of items than this are judged pair by pair when asked, to save memory."""

_FEWEST_SLOTS = 4
"""A table has room for this many items of a set at least; a path has up to 4 ways to go."""

Ask = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Scores from a row of each of some nodes to several rows: (nodes, row, rows) -> scores."""


class PairJudge(nn.Module):
    """Judges a pair by the vectors of its items, what lies between them and the edge they have."""

    def __init__(self, encoder: SetEncoder) -> None:
        super().__init__()
        width, inputs = encoder.width, encoder.inputs
        self.towards = nn.Linear(width, width)
        self.origin = nn.Linear(width, width, bias=False)
        self.between = nn.Linear(2 * inputs.num_features + 1, width, bias=False)
        edges = inputs.edge_features
        unit = torch.tensor([1.0, *(inputs.edge_scale or [1.0] * (edges or 0))])
        self.register_buffer("edge_unit", unit, persistent=False)
        self.joint = None if edges is None else nn.Linear(edges + 1, width, bias=False)
        self.head = nn.Linear(width, 1, bias=False)

    def forward(self, node: SetBatch, look: Look, *, whole: bool) -> Ask:
        """What scores the pairs of all nodes; a table if they are small and asked as a whole."""
        sets = look.sets
        pairs = sets.num_items * count(sets.sizes.max()) if len(sets) else 0
        if not whole or not 0 < pairs <= _MOST_PAIRS:
            each = _Pairs(self, node, look.per_copy())
            return lambda nodes, row, rows: each(row[:, None].expand_as(rows), rows)
        slots = torch.arange(max(count(sets.sizes.max()), _FEWEST_SLOTS), device=sets.index.device)
        first = sets.offsets[:-1]
        to = (first[sets.owner][:, None] + slots).clamp(max=sets.num_items - 1)
        row = torch.arange(sets.num_items, device=slots.device)[:, None].expand_as(to)
        table = _Pairs(self, sets, look.vectors)(row, to)
        back = look.copied(first) - node.offsets[:-1]  # from a copy's row to that of its set
        return lambda nodes, row, rows: table.index_select(0, row + back[nodes])[:, : rows.shape[1]]


class _Pairs:
    """The judge at work on one batch of sets."""

    def __init__(
        self, judge: PairJudge, sets: SetBatch, vectors: Float[Tensor, "items width"]
    ) -> None:
        self._judge, self._sets = judge, sets
        self._to, self._from = judge.towards(vectors), judge.origin(vectors)
        self._points = standardise(sets)[0].to(vectors.dtype)
        if judge.joint is not None and sets.relations is not None:
            ends = sets.relations.rows(sets.offsets)
            self._edge, self._by_edge = torch.sort(ends[0] * sets.num_items + ends[1])

    def __call__(self, row: Int[Tensor, "*pairs"], to: Int[Tensor, "*pairs"]) -> Tensor:
        gap = self._points[to] - self._points[row]
        far = gap.square().sum(-1, keepdim=True).add(1e-12).sqrt()
        between = self._judge.between(torch.cat([gap, gap.abs(), far], -1))
        total = self._to[to] + self._from[row] + between
        if self._judge.joint is not None and self._sets.relations is not None:
            edges = self._edges(row, to).to(total.dtype) / self._judge.get_buffer("edge_unit")
            total = total + self._judge.joint(edges)
        scores: Tensor = self._judge.head(F.relu(total)).squeeze(-1)
        return scores

    def _edges(self, row: Int[Tensor, "*pairs"], to: Int[Tensor, "*pairs"]) -> Tensor:
        """The features of the edge of each pair and a one; zeros where there is none."""
        assert self._sets.relations is not None
        features = self._sets.relations.features
        known = torch.cat([features.new_ones(len(features), 1), features], 1)
        if not len(known):
            return known.new_zeros(*row.shape, known.shape[1])
        key = row * self._sets.num_items + to
        place = torch.searchsorted(self._edge, key).clamp(max=len(known) - 1)
        return known[self._by_edge[place]] * (self._edge[place] == key)[..., None]
