"""Picks items one by one: a subset learned from a reward, or one side of a cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import count
from diconet.core.model import Part
from diconet.core.noise import gumbels, mix
from diconet.core.sets import SetBatch, standardise
from diconet.core.tree import Cut, Level
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed, Look

_RANK = 8
"""Numbers by which the items picked so far and a candidate for the next are compared."""

_MOST_PAIRS = 2**21
"""Sets with more pairs of items than this are scored pair by pair on demand, to save memory."""

_FEWEST_SLOTS = 4
"""The minimum number of items per set in a table; a path has up to 4 candidates."""

Ask = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Scores from one row per node to several rows: (nodes, row, rows) -> scores."""


class PairJudge(nn.Module):
    """Scores a pair by the vectors of its items, their difference and the edge between them."""

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
        """A function that scores pairs in all nodes; a table if `whole` and they are small."""
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
    """The judge applied to one batch of sets."""

    def __init__(
        self, judge: PairJudge, sets: SetBatch, vectors: Float[Tensor, "items width"]
    ) -> None:
        self._judge, self._sets = judge, sets
        self._to, self._from = judge.towards(vectors), judge.origin(vectors)
        self._points = standardise(sets)[0].to(vectors.dtype)
        if judge.joint is not None and sets.relations is not None:
            source, target = sets.edges()
            self._edge, self._by_edge = torch.sort(source * sets.num_items + target)

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
        """A one and the features of each pair's edge; zeros if there is no edge."""
        assert self._sets.relations is not None
        features = self._sets.relations.features
        known = torch.cat([features.new_ones(len(features), 1), features], 1)
        if not len(known):
            return known.new_zeros(*row.shape, known.shape[1])
        key = row * self._sets.num_items + to
        place = torch.searchsorted(self._edge, key).clamp(max=len(known) - 1)
        return known[self._by_edge[place]] * (self._edge[place] == key)[..., None]


class Picker(nn.Module):
    """Picks items of a set one after the other, until it stops.

    Whether an item is next depends on the item, on its relation to each one picked before, and on
    what all of these together leave room for. So sparse choices, conflicts and budgets can all be
    learned, with no more draws than items picked. A set of n items costs n^2.
    """

    def __init__(self, encoder: SetEncoder) -> None:
        super().__init__()
        width = encoder.width
        self.judge = PairJudge(encoder)
        self.own = nn.Linear(width, 1 + _RANK)
        self.begin, self.add = nn.Linear(width, width), nn.Linear(width, width)
        self.room = nn.Linear(width, 1 + _RANK)

    def forward(
        self,
        node: SetBatch,
        look: Look,
        seeds: Int[Tensor, "nodes"] | None,
        member: Bool[Tensor, "items"] | None = None,
    ) -> tuple[Bool[Tensor, "items"], Float[Tensor, "nodes"]]:
        """Which items were picked, and the log-probability of each node's picks.

        Picks are drawn given seeds, else the likeliest; with `member`, only items of a target.
        """
        vectors = look.per_copy()
        own, added = self.own(vectors), self.add(vectors)
        room = look.copied(self.begin(look.sets.mean(look.vectors)))
        ask = self.judge(node, look, whole=True)
        slots = torch.arange(count(node.sizes.max()) if len(node) else 0, device=node.index.device)
        rows = (node.offsets[:-1, None] + slots).clamp(max=max(node.num_items - 1, 0))
        scores, keys = own[rows, 0], own[rows, 1:]
        left = slots < node.sizes[:, None]
        log_prob = scores.new_zeros(len(node))
        nodes = torch.arange(len(node), device=rows.device)
        goes_on = torch.ones_like(nodes, dtype=torch.bool)
        for step in range(len(slots) + 1):
            state = self.room(F.relu(room))
            fit = scores + (keys * state[:, None, 1:]).sum(2)
            logits = torch.cat([fit.masked_fill(~left, -torch.inf), state[:, :1]], 1)
            pick, chance = _next(F.log_softmax(logits, 1), seeds, step, member, rows)
            log_prob = log_prob + torch.where(goes_on, chance, 0)
            goes_on = goes_on & (pick < len(slots))
            if not count(goes_on.any()):
                break
            pick = pick.clamp(max=len(slots) - 1)
            left = left & ~(goes_on[:, None] & (slots == pick[:, None]))
            row = rows.gather(1, pick[:, None]).squeeze(1)
            scores = scores + ask(nodes, row, rows) * goes_on[:, None]
            room = room + added.index_select(0, row) * goes_on[:, None]
        picked = torch.zeros_like(node.index, dtype=torch.bool)
        there = slots < node.sizes[:, None]
        picked[rows[there]] = ~left[there]
        return picked, log_prob


def _next(
    chances: Float[Tensor, "nodes slots"],
    seeds: Int[Tensor, "nodes"] | None,
    step: int,
    member: Bool[Tensor, "items"] | None,
    rows: Int[Tensor, "nodes items"],
) -> tuple[Int[Tensor, "nodes"], Float[Tensor, "nodes"]]:
    """The slot of each node's next pick (the last slot stops), and its log-probability.

    With a target, any of its remaining items is right, and stopping once there is none.
    """
    drawn = chances.detach()
    if member is not None:
        right = F.pad(member[rows], (0, 1)) & torch.isfinite(drawn)
        right[:, -1] = ~right.any(1)
        drawn = drawn.masked_fill(~right, -torch.inf)
    if seeds is not None:
        drawn = drawn + gumbels(mix(seeds, step), drawn.shape[1])
    pick = drawn.argmax(1)
    if member is not None:
        return pick, torch.logsumexp(chances.masked_fill(~right, -torch.inf), 1)
    return pick, chances.gather(1, pick[:, None]).squeeze(1)


class PickMerge(Part):
    """A subset of what a node's halves passed up, picked item by item."""

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        self.encoder = SetEncoder(extra=HAND_FEATURES, **encoder)
        self.picker = Picker(self.encoder)

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        member = None if target is None else target.mask(level.roots)[handed.sets.index]
        look = handed.looked_at(level, self.encoder)
        picked, log_prob = self.picker(handed.sets, look, handed.seeds, member)
        answer = handed.kept(level, picked)
        return Chosen.by_steps(level, below, answer, log_prob, target)


class PickSplit(Part):
    """A cut whose second side is picked item by item, for loads and conflicts."""

    general = many = True

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        self.encoder = SetEncoder(**encoder)
        self.picker = Picker(self.encoder)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        times = 1 if seeds is None else len(seeds) // len(sets)
        look = Look(sets, self.encoder(sets, seeds), times)
        return Cut(*self.picker(sets.repeat(times), look, seeds))
