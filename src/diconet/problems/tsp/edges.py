"""A merge over near neighbours: edge scores, recomputed where a cut has affected them.

At a leaf the network scores every edge. At an inner node it rescores only the cities that had
neighbours across the cut, and their surroundings, with the children's scores as input.
A cut is a line and a node an area, so the total work of all merges stays in proportion to n.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import one_thread, to_host
from diconet.core.model import Part
from diconet.core.segments import followers, offsets_of, segment_sum
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, Level, grow
from diconet.nets.axes import AcrossSplit
from diconet.nets.near import NUM_FEATURES, NearGraph, edge_features
from diconet.nets.neighbour_net import NeighbourNet
from diconet.problems.tsp.search.decode import greedy_tour
from diconet.problems.tsp.search.metric import Metric

_AROUND = 3


@dataclass(frozen=True, eq=False)
class EdgeSignal:
    """For every item of the roots, its neighbours (as rows of the roots) and their scores.

    Items that are in no node of the level have empty slots.
    """

    roots: SetBatch
    graph: NearGraph
    logits: Float[Tensor, "items slots"]
    log_prob: Float[Tensor, "sets"] | None = None

    @property
    def solution(self) -> Sequences:
        """The greedy tours that take the likeliest edges first."""
        cities = [to_host(items) for items in self.roots.unpack()]
        return Sequences.of(
            [
                torch.from_numpy(greedy_tour(Metric.of(items), *scored).astype(np.int64))
                for items, scored in zip(cities, self.candidates(), strict=True)
            ]
        ).to(self.logits.device)

    def edges(self) -> tuple[Int[Tensor, "edges 2"], Float[Tensor, "edges"]]:
        """Each edge once, as two rows of the roots, with its score, the mean of both directions."""
        graph = self.graph
        rows = torch.arange(len(self.logits), device=self.logits.device)
        rows = rows[:, None].expand_as(graph.neighbour)
        score = (self.logits + self.logits.flatten()[graph.reverse]) / 2
        once = graph.present & ~(graph.mutual & (rows > graph.neighbour))
        return torch.stack([rows[once], graph.neighbour[once]], 1), score[once]

    def likely(self, many: int) -> list[np.ndarray]:
        """For every set, each city's `many` likeliest neighbours (as positions within the set)."""
        shown = self.logits.detach().masked_fill(~self.graph.present, -torch.inf)
        best = shown.topk(min(many, shown.shape[1]), dim=1).indices
        rows = self.graph.neighbour.gather(1, best)
        places = rows - self.roots.offsets[:-1][self.roots.owner][:, None]
        return [to_host(some) for some in places.split(self.roots.sizes.tolist())]

    def candidates(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every set, its edges (as positions within it) and their scores, each edge once."""
        edges, score = self.edges()
        owner = self.roots.owner[edges[:, 0]]
        places = (edges - self.roots.offsets[:-1][owner][:, None]).to(torch.int32)
        count = torch.bincount(owner, minlength=len(self.roots)).tolist()
        return [
            (to_host(some), to_host(scores))
            for some, scores in zip(places.split(count), score.detach().split(count), strict=True)
        ]


class EdgeMerge(Part):
    """Scores the edges to each city's nearest neighbours, within leaves and across cuts.

    Cities at most `reach` edges from an affected one are rescored, with those up to `context`
    further edges away as input. Except in training, nodes go through the network in
    groups of about `chunk` cities, which bounds memory and fits the processor's cache.
    """

    def __init__(
        self,
        net: NeighbourNet,
        slots: int = 8,
        reach: int = 1,
        context: int = 2,
        chunk: int = 2_000,
    ) -> None:
        super().__init__()
        if slots < 2:
            raise ValueError(f"slots must be at least 2; got {slots}.")
        self.net = net
        self.slots = slots
        self.reach = reach
        self.context = context
        self.chunk = chunk

    @classmethod
    def fresh(cls, width: int = 48, num_layers: int = 8, slots: int = 8) -> EdgeMerge:
        """An untrained merge; it sees an edge's features, its score below, and if it had one."""
        return cls(NeighbourNet(NUM_FEATURES + 2, width, num_layers), slots)

    def forward(
        self, level: Level, below: EdgeSignal | None, target: Sequences | None
    ) -> EdgeSignal:
        sets = level.sets
        graph = NearGraph.of(sets, self.slots)
        prior, known = _handed_up(sets, graph, below)
        if below is None:  # nothing has been scored yet
            scored = torch.ones_like(known[:, 0])
            region = torch.arange(len(scored), device=scored.device)
        else:
            scored = graph.around((graph.present & ~known).any(1), self.reach)
            region = graph.around(scored, self.context).nonzero().squeeze(1)
        fresh = prior.new_zeros(prior.shape)
        for rows in self._groups(sets, region):
            fresh = fresh.index_copy(0, rows, self.score(sets, graph, prior, known, rows))
        logits = torch.where(scored[:, None], fresh, prior)
        answer = at_roots(level.roots, sets, graph, logits)
        if level.number or target is None:
            return answer
        return replace(answer, log_prob=log_likelihood(answer, target))

    def score(
        self,
        sets: SetBatch,
        graph: NearGraph,
        prior: Float[Tensor, "items slots"],
        known: Bool[Tensor, "items slots"],
        rows: Int[Tensor, "rows"],
    ) -> Float[Tensor, "rows slots"]:
        """The scores of some rows, which see only each other."""
        part = graph if len(rows) == sets.num_items else graph.within(rows)
        below = torch.stack([prior[rows] / 4, known[rows].to(prior.dtype)], 2)
        features = torch.cat([edge_features(sets.items[rows], part), below], 2)
        return self.net(part, features * part.present[:, :, None])

    def _groups(self, sets: SetBatch, region: Int[Tensor, "rows"]) -> Iterator[Int[Tensor, "rows"]]:
        """The rows to score, in groups of whole nodes; one group if gradients are needed."""
        if len(region) == 0:
            return
        if torch.is_grad_enabled() or len(region) <= self.chunk:
            yield region
            return
        sizes = torch.bincount(sets.owner[region], minlength=len(sets))
        group = (offsets_of(sizes)[1:] - 1).clamp(min=0) // self.chunk
        groups = region.split(torch.bincount(group, weights=sizes).long().tolist())
        yield from (rows for rows in groups if len(rows))


def scored_once(merge: EdgeMerge, sets: SetBatch, leaf_size: int = 3_000) -> EdgeSignal:
    """The signal of one large set, from one forward pass per city.

    The cities of a leaf are scored together with those up to three edges around them, so that cuts
    have no effect; each thread works on one leaf at a time, which bounds memory.
    """
    graph = NearGraph.of(sets, merge.slots)
    leaves = grow(AcrossSplit(), sets, Growth(leaf_size=leaf_size)).leaves
    order = torch.argsort(leaves, stable=True)
    prior = sets.items.new_zeros(graph.neighbour.shape)
    known = torch.zeros_like(graph.present)
    logits = torch.zeros_like(prior)

    @torch.inference_mode()
    def score(rows: Int[Tensor, "rows"]) -> None:
        region = rows
        for _ in range(_AROUND):
            region = torch.unique(torch.cat([region, graph.neighbour[region].flatten()]))
        scores = merge.score(sets, graph, prior, known, region)
        logits[rows] = scores[torch.searchsorted(region, rows)]

    many = torch.get_num_threads()
    # One leaf per thread: the tensors of a leaf are too small to be shared among threads.
    with (
        one_thread(),
        ThreadPoolExecutor(many, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        list(pool.map(score, order.split(torch.bincount(leaves).tolist())))
    return EdgeSignal(sets, graph, logits)


def _handed_up(
    sets: SetBatch, graph: NearGraph, below: EdgeSignal | None
) -> tuple[Float[Tensor, "items slots"], Bool[Tensor, "items slots"]]:
    """The score of each edge of a level in the level below, and whether it had one."""
    known = torch.zeros_like(graph.present)
    prior = sets.items.new_zeros(known.shape)
    if below is None:
        return prior, known
    wanted = sets.index[graph.neighbour]
    had = below.graph.neighbour[sets.index]
    same = (wanted[:, :, None] == had[:, None]) & below.graph.present[sets.index][:, None]
    found, slot = same.max(2)
    known = found & graph.present
    score = below.logits[sets.index].gather(1, slot)
    return torch.where(known, score, prior), known


def at_roots(
    roots: SetBatch, sets: SetBatch, graph: NearGraph, logits: Float[Tensor, "items slots"]
) -> EdgeSignal:
    """A level's signal, renumbered by the rows of the roots."""
    if sets is roots:
        return EdgeSignal(roots, graph, logits)
    shape = (roots.num_items, graph.slots)
    neighbour = torch.arange(shape[0], device=sets.index.device)[:, None].repeat(1, shape[1])
    neighbour[sets.index] = sets.index[graph.neighbour]
    present = graph.present.new_zeros(shape)
    present[sets.index] = graph.present
    signal = logits.new_zeros(shape).index_copy(0, sets.index, logits)
    return EdgeSignal(roots, NearGraph(neighbour, present), signal)


def log_likelihood(signal: EdgeSignal, target: Sequences) -> Float[Tensor, "sets"]:
    """log-probability of the edges of the target tours, each edge independently, per city."""
    rows = target.rows(signal.roots)
    after = rows[followers(target.sizes)]
    beside = rows.new_empty(len(rows), 2)
    beside[rows, 0] = after
    beside[after, 1] = rows
    used = (signal.graph.neighbour[:, :, None] == beside[:, None]).any(2)
    each = F.logsigmoid(torch.where(used, signal.logits, -signal.logits))
    per_item = (each * signal.graph.present).sum(1)
    total = segment_sum(per_item, signal.roots.owner, len(signal.roots))
    return total / signal.roots.sizes.clamp(min=1)


class LengthMerge(Part):
    """Scores every edge by minus its length, in units of the mean distance to near neighbours.

    The control for what learning buys: everything after it is the same.
    """

    def __init__(self, slots: int = 8) -> None:
        super().__init__()
        self.slots = slots

    def forward(
        self, level: Level, below: EdgeSignal | None, target: Sequences | None
    ) -> EdgeSignal | None:
        if level.number:
            return None  # only the root sees every edge
        sets = level.sets
        graph = NearGraph.of(sets, self.slots)
        length = torch.linalg.vector_norm(sets.items[graph.neighbour] - sets.items[:, None], dim=2)
        near = length[:, :5].mean(1)
        unit = sets.mean(near)[sets.owner].clamp(min=torch.finfo(near.dtype).tiny)
        return at_roots(level.roots, sets, graph, -length / unit[:, None])
