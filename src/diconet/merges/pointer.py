"""The pointer merge (appendix D): read two sequences, point at their items one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from diconet.answers import Sequences, rotation
from diconet.merges.attention import additive_scores
from diconet.merges.course import Course, Way
from diconet.merges.frame import Frame, Normalise
from diconet.merges.routes import Gamma, Routes, routes_in, routes_out
from diconet.segments import (
    cross,
    index_of,
    inverse,
    offsets_of,
    owner_of,
    ragged_arange,
    segment_argmax,
    segment_logsumexp,
    segment_sort,
    segment_sum,
)
from diconet.sets import SetBatch
from diconet.tree import Level, halves, joined

Order = Literal["given", "angle", "outline"]
Attention = Literal["plain", "bearings", "course"]

_SHARPNESS = 6.0
"""How much more than its size a bearing counts: directions to be told apart differ little."""


@dataclass(frozen=True, eq=False)
class Pointed:
    """Answers of a level: ordered items; with a target also routes, at the root its likelihood."""

    roots: SetBatch
    sets: SetBatch
    depth: int
    routes: Routes | None = None
    log_prob: Float[Tensor, "sets"] | None = None

    @property
    def solution(self) -> Sequences:
        """The answers as ordered choices out of the roots."""
        return Sequences.from_answer(self.sets, self.roots)


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the decoder looks at: the items of each node with their encodings."""

    sets: SetBatch
    points: Float[Tensor, "items features"]
    keys: Float[Tensor, "items width"]
    start: Float[Tensor, "nodes width"]
    frame: Frame


class PointerMerge(nn.Module):
    """A pointer network from two sequences to one that chooses among their items.

    A GRU encodes each child's sequence; the decoder starts from rho(A0 e0 + A1 e1) and points, step
    by step, at an item not yet taken or at the end symbol. `order="angle"` reads the items of each
    child by angle around the node's mean instead of as they come, "outline" around the child's own;
    `bidirectional` reads them both ways, half the width each. Below the root a node goes on until
    the end symbol has probability `patience`: keeping an item too many costs little there.

    A node sees its points moved to their mean and scaled to spread 1 or, with
    `normalise="covariance"`, stretched until none of their directions stands out; with "abreast" it
    also turns until its halves lie side by side, however they were cut; with "facing", to the
    farthest, where angles and answers then begin, so that whatever moves, turns and stretches the
    plane changes nothing.

    The `attention` is the paper's ("plain"), or it takes bearings: the direction in which an item
    lies, seen from the last one (at first its place, seen from the mean), joins the paper's sum
    ("bearings"); or the decoder is told by which way it came and names a course, and an item scores
    by how well its bearing agrees ("course"), where the end lies in the direction of the first
    item. Unless it faces an item, a node on course begins where it likes.
    """

    def __init__(
        self,
        num_features: int,
        width: int = 512,
        order: Order = "given",
        bidirectional: bool = False,
        normalise: Normalise = "spread",
        attention: Attention = "plain",
        patience: float = 0.85,
        epsilon: float = 1e-6,
        binarise: bool = False,
    ) -> None:
        super().__init__()
        _check_choices({"order": order, "normalise": normalise, "attention": attention})
        if order != "given" and num_features != 2:
            raise ValueError(f'order="{order}" needs 2 features; got {num_features}.')
        if normalise in ("facing", "abreast") and num_features != 2:
            raise ValueError(f'normalise="{normalise}" needs 2 features; got {num_features}.')
        if bidirectional and width % 2:
            raise ValueError(f"width must be even to read both ways; got {width}.")
        if not 0 < patience <= 1:
            raise ValueError(f"patience must be above 0 and at most 1; got {patience}.")
        self.config = {
            "num_features": num_features,
            "width": width,
            "order": order,
            "bidirectional": bidirectional,
            "normalise": normalise,
            "attention": attention,
            "patience": patience,
            "epsilon": epsilon,
        }
        self.order = order
        self.normalise: Normalise = normalise
        self.patience = patience
        self.epsilon = epsilon
        self.binarise = binarise
        directions = 2 if bidirectional else 1
        self.encoder = nn.GRU(num_features, width // directions, bidirectional=bidirectional)
        self.decoder = nn.GRU(num_features * (2 if attention == "course" else 1), width)
        self.start = nn.Linear(2 * width, width)
        self.key = nn.Linear(width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.bearing = (
            nn.Linear(num_features, width, bias=False) if attention == "bearings" else None
        )
        self.course = Course(width, num_features) if attention == "course" else None
        self.first_input = nn.Parameter(torch.zeros(self.decoder.input_size))
        self.end_key = nn.Parameter(torch.zeros(width))

    def forward(self, level: Level, below: Pointed | None, target: Sequences | None) -> Pointed:
        pairs, origin = halves(level, None if below is None else below.sets)
        frame = Frame.of(pairs, self.normalise)
        if self.order != "given":
            rows = (
                frame.by_angle(frame(pairs.items, pairs.owner // 2), pairs.owner)
                if self.order == "angle"
                else frame.by_outline(pairs)
            )
            pairs, origin = pairs.select(rows, pairs.sizes), origin[rows]
        memory = self._encode(pairs, frame)
        depth = level.number if below is None else below.depth
        if target is None:
            rows, sizes = self._generate(memory, is_root=level.number == 0)
            return Pointed(level.roots, memory.sets.select(rows, sizes), depth)

        is_target = torch.zeros(level.roots.num_items, dtype=torch.bool, device=origin.device)
        is_target[target.rows(level.roots)] = True
        routes = routes_in(
            level, origin, memory.sets, None if below is None else below.routes, is_target
        )
        if level.number > 0:
            rows, sizes = self._generate(memory, is_root=False)
            if self.binarise:
                floor = self.epsilon ** (1 / max(depth, 1))
                gamma = Gamma.chosen(rows, sizes, memory.sets, floor)
            else:
                taken = _taken(rows, sizes, memory)
                gamma, _ = self._attend(memory, memory.points[rows], taken, sizes)
            out = routes_out(level, routes, gamma, memory.sets, is_target)
            return Pointed(level.roots, memory.sets.select(rows, sizes), depth, out)
        return self._likelihood(level, memory, routes, target, depth)

    def _likelihood(
        self, level: Level, memory: _Memory, routes: Routes, target: Sequences, depth: int
    ) -> Pointed:
        """The root, told the target: log of the product of all matrices at the target's items."""
        roots = level.sets
        rows = target.rows(roots)
        seen = torch.full((roots.num_items,), memory.sets.num_items, device=rows.device)
        seen[memory.sets.index[self._by_preference(memory)]] = torch.arange(
            memory.sets.num_items, device=rows.device
        )
        rows = rows[rotation(seen[rows], target.sizes)]  # a cycle may start anywhere
        owner = owner_of(target.sizes)
        points = memory.frame(roots.items[rows], owner).to(memory.points.dtype)
        step_of = torch.full((roots.num_items,), -1, device=rows.device)
        step_of[rows] = (
            torch.arange(len(rows), device=rows.device) - offsets_of(target.sizes)[:-1][owner]
        )
        step = step_of[memory.sets.index]
        never = roots.num_items  # a target may be longer than what is left of it in memory
        taken = torch.where(step < 0, never, step)
        gamma, log_end = self._attend(memory, points, taken, target.sizes)

        node = memory.sets.owner[routes.row]
        gamma_row = offsets_of(target.sizes)[:-1][node] + step_of[routes.item]
        flow = gamma.entry(gamma_row, routes.row) * routes.prob
        prob = segment_sum(flow, gamma_row, len(rows))
        log_prob = segment_sum(torch.log(prob + self.epsilon), owner, len(roots)) + log_end
        return Pointed(roots, roots.select(rows, target.sizes), depth, log_prob=log_prob)

    def _encode(self, pairs: SetBatch, frame: Frame) -> _Memory:
        node = joined(pairs)
        points = frame(node.items, node.owner).to(self.key.weight.dtype)  # may be doubles
        states, last = _run_gru(self.encoder, points, pairs.sizes)
        start = torch.tanh(self.start(last.reshape(len(node), self.start.in_features)))
        return _Memory(node, points, self.key(states), start, frame)

    def _input(self, way: Way) -> Float[Tensor, "steps inputs"]:
        return way.here if self.course is None else torch.cat([way.here, way.arrival], 1)

    def _scores(
        self,
        memory: _Memory,
        states: Float[Tensor, "steps width"],
        way: Way,
        row: Int[Tensor, "pairs"],
        column: Int[Tensor, "pairs"],
    ) -> tuple[Float[Tensor, "pairs"], Float[Tensor, "steps"]]:
        """What each step gives the items listed for it, and the end symbol."""
        queries = self.query(states)
        attended = memory.keys, queries, self.score.weight[0], column, row
        end = self.score(torch.tanh(self.end_key + queries)).squeeze(1)
        if self.bearing is not None:
            bearing = _SHARPNESS * way.bearing(memory.points[column], row)
            return additive_scores(*attended, bearing, self.bearing.weight.t()), end
        items = additive_scores(*attended)
        if self.course is None:
            return items, end
        course = self.course(states)
        items = items + (course[row] * way.bearing(memory.points[column], row)).sum(1)
        return items, end + way.homeward(course)

    def _attend(
        self,
        memory: _Memory,
        points: Float[Tensor, "steps features"],
        taken: Int[Tensor, "items"],
        sizes: Int[Tensor, "nodes"],
    ) -> tuple[Gamma, Float[Tensor, "nodes"]]:
        """The matrices of given outputs (eq. ptrnetatt), and the log-probability to end after them.

        `taken` is the step at which each item of the memory was pointed at; it is barred after it.
        """
        nodes = memory.sets
        steps = sizes + 1  # the last one should point at the end symbol
        last = offsets_of(steps)[1:] - 1
        is_last = torch.zeros(int(steps.sum()), dtype=torch.bool, device=sizes.device)
        is_last[last] = True
        is_first = is_last.roll(1)
        way = Way.along(points, sizes)
        inputs = torch.where(is_first[:, None], self.first_input, self._input(way))
        states, _ = _run_gru(self.decoder, inputs, steps, memory.start)

        row, column = cross(steps, nodes.sizes)
        scores, end = self._scores(memory, states, way, row, column)
        step = row - offsets_of(steps)[:-1][nodes.owner[column]]
        scores = scores.masked_fill(taken[column] < step, -torch.inf)
        node_of_row = owner_of(steps)
        end = end.masked_fill(is_first & (nodes.sizes > 0)[node_of_row], -torch.inf)
        norm = torch.logaddexp(segment_logsumexp(scores, row, len(is_last)), end)
        log_end = (end - norm)[last]
        kept = ~is_last[row]
        prob = torch.exp(scores - norm[row])[kept]
        return Gamma(prob, sizes, nodes.sizes), log_end

    @torch.no_grad()
    def _by_preference(self, memory: _Memory) -> Int[Tensor, "items"]:
        """The items of each node by where it would begin: as they are read, or turn up ahead of it,
        or as it likes them itself on its course."""
        if memory.frame.ahead is not None:
            return memory.frame.by_angle(memory.points, memory.sets.owner)
        if self.course is None:
            return torch.arange(memory.sets.num_items, device=memory.sets.sizes.device)
        inputs = self.first_input.expand(len(memory.sets), -1)
        state = _gru_step(self.decoder, inputs, memory.start)
        everything = torch.arange(memory.sets.num_items, device=inputs.device)
        way = Way.before(memory.frame.mean)
        scores, _ = self._scores(memory, state, way, memory.sets.owner, everything)
        return segment_sort(-scores, memory.sets.owner)

    @torch.no_grad()
    def _generate(
        self, memory: _Memory, is_root: bool
    ) -> tuple[Int[Tensor, "rows"], Int[Tensor, "nodes"]]:
        """The items that each node points at, always the likeliest, until it ends."""
        nodes = memory.sets
        active = index_of(nodes.sizes > 0)
        state = memory.start[active]
        inputs = self.first_input.expand(len(active), -1)
        free = torch.ones(nodes.num_items, dtype=torch.bool, device=nodes.sizes.device)
        way = Way.before(memory.points[: len(active)])
        chosen: list[Tensor] = []
        while len(active):
            state = _gru_step(self.decoder, inputs, state)
            sizes = nodes.sizes[active]
            rows = ragged_arange(nodes.offsets[:-1][active], sizes)
            rows, owner = rows[free[rows]], owner_of(sizes)[free[rows]]
            scores, end = self._scores(memory, state, way, owner, rows)
            items = segment_logsumexp(scores, owner, len(active))
            best = segment_argmax(scores, owner, len(active))
            some = best < len(rows)
            best = best.clamp(max=max(len(rows) - 1, 0))
            if is_root:
                go_on = some & (scores[best] >= end) if len(rows) else some
            else:
                go_on = some & (torch.sigmoid(end - items) < self.patience)
            if not chosen:
                go_on = some
            active, state = active[go_on], state[go_on]
            picked = rows[best[go_on]]
            free[picked] = False
            way = way.take(go_on).on_to(memory.points[picked])
            inputs = self._input(way)
            chosen.append(picked)
        rows = torch.cat(chosen) if chosen else nodes.index.new_zeros(0)
        rows = rows[torch.argsort(nodes.owner[rows], stable=True)]
        return rows, torch.bincount(nodes.owner[rows], minlength=len(nodes))


def _check_choices(chosen: dict[str, str]) -> None:
    for name, kind in (("order", Order), ("normalise", Normalise), ("attention", Attention)):
        if name in chosen and chosen[name] not in get_args(kind):
            known = ", ".join(get_args(kind))
            raise ValueError(f"{name} must be one of {known}; got {chosen[name]!r}.")


def _taken(
    rows: Int[Tensor, "rows"], sizes: Int[Tensor, "nodes"], memory: _Memory
) -> Int[Tensor, "items"]:
    """The step at which each item was pointed at; past every step where it never was."""
    taken = torch.full((memory.sets.num_items,), memory.sets.num_items, device=rows.device)
    taken[rows] = (
        torch.arange(len(rows), device=rows.device) - offsets_of(sizes)[:-1][owner_of(sizes)]
    )
    return taken


def _run_gru(
    gru: nn.GRU,
    inputs: Float[Tensor, "rows features"],
    sizes: Int[Tensor, "sets"],
    start: Float[Tensor, "sets width"] | None = None,
) -> tuple[Float[Tensor, "rows width"], Float[Tensor, "sets width"]]:
    """All sequences at once, none padded: every state, and each sequence's last."""
    width = gru.hidden_size * (2 if gru.bidirectional else 1)
    last = inputs.new_zeros(len(sizes), width) if start is None else start
    by_size = torch.argsort(sizes, descending=True, stable=True)
    by_size = by_size[: int((sizes > 0).sum())]
    if len(by_size) == 0:
        return inputs.new_zeros(0, width), last
    rank = torch.empty_like(sizes)
    rank[by_size] = torch.arange(len(by_size), device=sizes.device)
    owner = owner_of(sizes, len(inputs))
    step = torch.arange(len(inputs), device=sizes.device) - offsets_of(sizes)[:-1][owner]
    by_time = torch.argsort(step * len(sizes) + rank[owner])
    packed = PackedSequence(inputs[by_time], torch.bincount(step).cpu())
    states, final = gru(packed, None if start is None else start[by_size].unsqueeze(0))
    final = final.transpose(0, 1).reshape(len(by_size), width)
    return states.data[inverse(by_time)], last.index_copy(0, by_size, final)


def _gru_step(
    gru: nn.GRU, inputs: Float[Tensor, "sets features"], state: Float[Tensor, "sets width"]
) -> Float[Tensor, "sets width"]:
    return torch.gru_cell(inputs, state, *gru.all_weights[0])
