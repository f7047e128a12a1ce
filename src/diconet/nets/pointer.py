"""The pointer merge (appendix D): reads two sequences and points at their items one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diconet.core.answers import Sequences, rotation
from diconet.core.model import Part
from diconet.core.segments import index_of, offsets_of, owner_of, ragged_arange
from diconet.core.sets import SetBatch
from diconet.core.tree import Level, halves, joined
from diconet.nets.decoder import LOST, Forced, Items, PointerDecoder, Pointing
from diconet.nets.frame import Frame, Spread
from diconet.nets.gru import encode
from diconet.nets.routes import hard_matrices, padded, routes_of_items


@dataclass(frozen=True, eq=False)
class Pointed:
    """Answers of a level: ordered items; with a target also routes, at the root its likelihood.

    `routes[r, j]` is the probability that row r of the answers is item j of its root's target.
    """

    roots: SetBatch
    sets: SetBatch
    depth: int
    routes: Float[Tensor, "rows targets"] | None = None
    log_prob: Float[Tensor, "sets"] | None = None

    @property
    def solution(self) -> Sequences:
        """The answers as ordered choices from the roots."""
        return Sequences.from_answer(self.sets, self.roots)


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the decoder attends to: the items of each node with their encodings."""

    sets: SetBatch
    frame: Frame
    states: Float[Tensor, "items width"]
    start: Float[Tensor, "nodes width"]
    items: Items


class PointerMerge(Part):
    """A pointer network from two sequences to one that chooses among their items.

    A GRU encodes each child's sequence; the decoder starts from rho(A0 e0 + A1 e1) and points, step
    by step, at an item not yet taken or at the end symbol. A leaf's sequence is its points in the
    given order. The `frame` normalises the points of a node: by default, mean 0 and spread 1.

    Below the root a node continues until the end symbol has probability `patience`: keeping an item
    too many costs little there. Given a target, it returns the log of the product of all matrices
    at the target's items. With `binarise`, matrices below the root are hard choices, which pass no
    gradient down. A cycle may start anywhere: targets start at their `first` item in the order of
    the leaves, or at the `lowest`, that with the smallest last feature.
    """

    def __init__(
        self,
        num_features: int,
        width: int = 512,
        frame: nn.Module | None = None,
        patience: float = 0.85,
        epsilon: float = 1e-6,
        binarise: bool = False,
        begin: Literal["first", "lowest"] = "first",
    ) -> None:
        super().__init__()
        if not 0 < patience <= 1:
            raise ValueError(f"patience must be above 0 and at most 1; got {patience}.")
        self.config["frame"] = self.frame = Spread() if frame is None else frame
        self.patience = patience
        self.epsilon = epsilon
        self.binarise = binarise
        self.begin = begin
        self.encoder = nn.GRU(num_features, width)
        self.start = nn.Linear(2 * width, width)
        self.decoder = PointerDecoder(num_features, width)

    def forward(self, level: Level, below: Pointed | None, target: Sequences | None) -> Pointed:
        pairs, origin = halves(level, None if below is None else below.sets)
        depth = level.number if below is None else below.depth
        is_root = level.number == 0
        hard = self.binarise and not is_root
        with torch.set_grad_enabled(torch.is_grad_enabled() and not hard):
            memory = self._encode(pairs)
            if target is None or not is_root:
                patience = None if is_root else self.patience
                pointing = self._point(memory, patience, matrices=target is not None and not hard)
        if target is None:
            return Pointed(level.roots, _answers(memory, pointing), depth)
        routes = routes_of_items(level.roots, target, level.sets.index, self.start.weight.dtype)
        if below is not None and below.routes is not None:
            routes = torch.cat([routes, below.routes])
        blocks = padded(routes[origin], memory.sets, memory.items.key_row.shape[1])
        if is_root:
            return self._likelihood(level, memory, blocks, target, depth)
        matrices = pointing.prob
        if hard:
            floor = self.epsilon ** (1 / max(depth, 1))
            matrices = hard_matrices(pointing.chosen, memory.sets, blocks.shape[1], floor)
        out = torch.bmm(matrices.to(blocks.dtype), blocks)
        rows = index_of((pointing.chosen >= 0).flatten())
        return Pointed(
            level.roots, _answers(memory, pointing), depth, out.flatten(0, 1).index_select(0, rows)
        )

    def _encode(self, pairs: SetBatch) -> _Memory:
        node = joined(pairs)
        frame = self.frame(node)
        points = frame(node.items, node.owner).to(self.start.weight.dtype)  # may be doubles
        states, last, rows = encode(self.encoder, points, pairs.sizes)
        start = torch.tanh(self.start(last.reshape(len(node), self.start.in_features)))
        most = int(node.sizes.max()) if len(node) else 0
        items = Items(
            padded(points, node, most),
            padded(rows[:, None], node, most).squeeze(2),
            node.sizes,
        )
        return _Memory(node, frame, states, start, items)

    def _point(
        self,
        memory: _Memory,
        patience: float | None,
        forced: Forced | None = None,
        matrices: bool = True,
    ) -> Pointing:
        seen = (memory.states, memory.start, memory.items)
        pointing: Pointing = self.decoder(*seen, patience, forced, matrices)
        return pointing

    def _likelihood(
        self,
        level: Level,
        memory: _Memory,
        routes: Float[Tensor, "nodes items targets"],
        target: Sequences,
        depth: int,
    ) -> Pointed:
        """The root, given the target: log of the product of all matrices at the target's items."""
        roots = level.sets
        rows = target.rows(roots)
        place = rows.new_full((roots.num_items,), memory.sets.num_items)
        place[memory.sets.index] = torch.arange(memory.sets.num_items, device=rows.device)
        key = roots.items[:, -1] if self.begin == "lowest" else place
        turned = rotation(key[rows], target.sizes)
        rows, owner = rows[turned], owner_of(target.sizes)
        step = ragged_arange(torch.zeros_like(target.sizes), target.sizes)
        shape = len(roots), 1 + (int(target.sizes.max()) if len(roots) else 0)
        points = memory.items.points.new_zeros(*shape, roots.num_features)
        points[owner, step] = memory.frame(roots.items[rows], owner).to(points.dtype)
        items = rows.new_full(shape, LOST)
        first = memory.sets.offsets[:-1][owner]
        items[owner, step] = torch.where(
            place[rows] < memory.sets.num_items, place[rows] - first, LOST
        )
        pointing = self._point(memory, None, Forced(points, items, target.sizes))
        column = turned - offsets_of(target.sizes)[:-1][owner]
        wanted = routes.transpose(1, 2)[owner, column]
        prob = (pointing.prob[owner, step] * wanted).sum(1)
        log_prob = pointing.log_end.index_add(0, owner, torch.log(prob + self.epsilon))
        return Pointed(roots, roots.select(rows, target.sizes), depth, log_prob=log_prob)


def _answers(memory: _Memory, pointing: Pointing) -> SetBatch:
    """The items that each node pointed at, in that order."""
    rows = memory.sets.offsets[:-1, None] + pointing.chosen
    return memory.sets.select(rows[pointing.chosen >= 0], pointing.sizes)
