"""The paper's travelling salesman (appendix C): a graph network at the leaves, another to merge.

The answer of a node is a signal over all pairs of its cities: for each city, a distribution over
its neighbours on the tour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.answers import Sequences
from diconet.core.coin import coin_cut
from diconet.core.host import to_host
from diconet.core.model import Part
from diconet.core.segments import followers, index_of, segment_logsumexp, segment_sum
from diconet.core.sets import SetBatch, standardise
from diconet.core.tree import Cut, Level
from diconet.nets.pair_net import PairNet, Pairs
from diconet.problems.tsp.search.beam import beam_tour
from diconet.problems.tsp.search.metric import Metric

NODE_INPUTS = 3
"""Node inputs of the graph network on its own: degree and coordinates."""

MERGE_NODE_INPUTS = 1
"""Node inputs of the merge: the share of a city's surroundings that lies across the cut."""

MERGE_EDGE_INPUTS = 5
"""Nearness and length across the cut, whether it is across, and the leaf's output, twice."""

SURE = 8.0
"""The logit of an edge that is part of the answer; others have 0."""

_SQUARE_SPREAD = 12**-0.5  # the standard deviation of a coordinate in the unit square
_REACH = 1.5
_FARTHEST = 8.0


@dataclass(frozen=True, eq=False)
class PairSignal:
    """A number for every pair of cities of every node; `pairs.sets.index` refers to the roots."""

    pairs: Pairs
    logits: Float[Tensor, "pairs"]
    log_prob: Float[Tensor, "sets"] | None = None
    beam: int = 40

    @property
    def log_norm(self) -> Float[Tensor, "items"]:
        """For each city, the log of the normaliser of its distribution."""
        ends = torch.cat([self.pairs.one, self.pairs.other])
        both = torch.cat([self.logits, self.logits])
        return segment_logsumexp(both, ends, self.pairs.sets.num_items)

    @property
    def solution(self) -> Sequences:
        """The tours found by beam search."""
        tours = [
            torch.from_numpy(beam_tour(Metric.of(to_host(cities)), near, scores, self.beam))
            for cities, (near, scores) in zip(self.pairs.sets.unpack(), self.rows(), strict=True)
        ]
        return Sequences.of(tours).to(self.logits.device)

    def decided(self) -> PairSignal:
        """The same as made choices: the edges of the tours found are sure, all others are not."""
        tours = self.solution
        logits = torch.zeros_like(self.logits)
        logits[self.pairs.number(*steps_of(self.pairs.sets, tours))] = SURE
        return replace(self, logits=logits)

    def candidates(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every set, all its pairs (as positions within the set) and their scores."""
        sets = self.pairs.sets
        ends = torch.stack([self.pairs.one, self.pairs.other], 1)
        places = sets.position[ends].to(torch.int32)
        count = (sets.sizes * (sets.sizes - 1) // 2).tolist()
        return [
            (to_host(some), to_host(scores))
            for some, scores in zip(
                places.split(count), self.logits.detach().split(count), strict=True
            )
        ]

    def rows(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each set: every city's others, likeliest first, and their log-probabilities."""
        sizes = self.pairs.sets.sizes
        norms = self.log_norm.detach().split(sizes.tolist())
        logits = self.logits.detach().split((sizes * (sizes - 1) // 2).tolist())
        for norm, mine in zip(norms, logits, strict=True):
            size = len(norm)
            table = mine.new_full((size, size), -torch.inf)
            one, other = torch.triu_indices(size, size, 1, device=mine.device)
            table[one, other] = mine
            table[other, one] = mine
            order = (table - norm[:, None]).sort(dim=1, descending=True, stable=True)
            width = max(size - 1, 0)
            yield to_host(order.indices[:, :width]), to_host(order.values[:, :width])


class PairMerge(Part):
    """One network scores the pairs of a leaf; another, given the leaves' scores, those of a union.

    Without `merge` it works only for trees of depth 0: the paper's reference. The network at the
    leaves is already trained, and stays fixed if there is a merge to train. With `binarise`, a
    merge is given its parts' tours, found by beam search, instead of the scores of all edges.
    """

    def __init__(self, leaf: PairNet, merge: PairNet | None = None, binarise: bool = False) -> None:
        super().__init__()
        self.binarise = binarise
        self.leaf = leaf
        self.leaf_head = nn.Linear(leaf.config["width"], 1)
        self.merge = merge
        if merge is not None:
            self.merge_head = nn.Linear(merge.config["width"], 1)
            for parameter in (*leaf.parameters(), *self.leaf_head.parameters()):
                parameter.requires_grad = False

    def forward(
        self, level: Level, below: PairSignal | None, target: Sequences | None
    ) -> PairSignal:
        pairs = Pairs.of(level.sets)
        if below is None:
            logits = self._of_leaves(level, pairs)
        elif self.merge is None:
            raise ValueError("a tree with cuts needs a merge network; got none.")
        else:
            said = below.decided() if self.binarise else below
            nodes, edges, weight = merge_inputs(pairs, said)
            logits = self.merge_head(self.merge(pairs, nodes, edges, weight)[1]).squeeze(1)
            if len(level.inner) < len(level.sets):
                leaf = level.is_leaf[pairs.sets.owner[pairs.one]]
                logits = torch.where(leaf, self._of_leaves(level, pairs), logits)
        signal = PairSignal(pairs, logits)
        if level.number or target is None:
            return signal
        return replace(signal, log_prob=log_likelihood(signal, target))

    def _of_leaves(self, level: Level, pairs: Pairs) -> Float[Tensor, "pairs"]:
        """The scores that the network trained on whole instances gives to parts of one."""
        inputs = graph_inputs(pairs, enlarge=level.number > 0)
        return self.leaf_head(self.leaf(pairs, *inputs)[1]).squeeze(1)


class PairSplit(Part):
    """One coin flip per city, with odds from its own graph network.

    Features are standardised over the set before they become coins: what all cities have in common
    grows from layer to layer, and would send them all to the same side.
    """

    def __init__(self, net: PairNet) -> None:
        super().__init__()
        self.net = net
        self.head = nn.Linear(net.config["width"], 1, bias=False)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        pairs = Pairs.of(sets)
        nodes, _ = self.net(pairs, *graph_inputs(pairs, enlarge=True))
        apart = nodes - sets.mean(nodes)[sets.owner]
        spread = (sets.mean(apart.square())[sets.owner] + 1e-6).sqrt()
        return coin_cut(sets, self.head(apart / spread).squeeze(1), seeds)


def graph_inputs(
    pairs: Pairs, enlarge: bool = False
) -> tuple[Float[Tensor, "items inputs"], Float[Tensor, "pairs 1"]]:
    """The complete graph with weights d_max - d(x, x'), as in the paper, d_max = sqrt(2).

    With `enlarge`, each set is first scaled to the spread of the unit square.
    """
    points, _, spread = standardise(pairs.sets)
    distance = pairs.distance[:, None]
    if enlarge:
        distance = distance * (_SQUARE_SPREAD / spread)[pairs.sets.owner[pairs.one]]
    weight = 2**0.5 - distance
    count = pairs.sets.sizes[pairs.sets.owner][:, None].to(weight.dtype)
    return torch.cat([pairs.gather(weight) / count, points], 1), weight


def merge_inputs(
    pairs: Pairs, below: PairSignal
) -> tuple[Float[Tensor, "items 1"], Float[Tensor, "pairs inputs"], Float[Tensor, "pairs"]]:
    """The inputs of a merge: the leaves' signals within leaves, lengths only across the cut.

    Lengths are in units of the mean distance to the nearest city, so that a set of 80 looks like
    one of 20. Within a leaf, only the leaf's output is known of two cities: a merge that sees every
    length learns to ignore the leaves. The third result is the weight of a pair in means.
    """
    said, known = handed_up(pairs, below)
    across = 1 - known
    length = pairs.distance / nearest(pairs)[pairs.sets.owner[pairs.one]]
    close = torch.exp(-length / _REACH) * across
    prior = said.exp() * known
    far = (length / _FARTHEST).clamp(max=1) * across
    edges = torch.stack([close, far, across, prior, said.clamp(min=-_FARTHEST) / 4 * known], 1)
    weight = close + prior
    nodes = pairs.gather(close[:, None]) / pairs.gather(weight[:, None]).clamp(min=1e-9)
    return nodes, edges, weight


def nearest(pairs: Pairs) -> Float[Tensor, "sets"]:
    """For each set, the mean distance from a city to the nearest other."""
    least = pairs.distance.new_full((pairs.sets.num_items,), torch.inf)
    for end in (pairs.one, pairs.other):
        least = least.scatter_reduce(0, end, pairs.distance, "amin")
    least = torch.where(least.isfinite(), least, 0)
    return pairs.sets.mean(least[:, None]).squeeze(1).clamp(min=1e-9)


def handed_up(
    pairs: Pairs, below: PairSignal
) -> tuple[Float[Tensor, "pairs"], Float[Tensor, "pairs"]]:
    """The children's log-probability of each pair, and whether one of them contains it."""
    child = below.pairs.sets
    place = child.index.new_full((int(pairs.sets.index.max()) + 1,), -1)
    place[child.index] = torch.arange(child.num_items, device=place.device)
    one, other = place[pairs.sets.index[pairs.one]], place[pairs.sets.index[pairs.other]]
    same = (one >= 0) & (other >= 0)
    same &= child.owner[one] == child.owner[other]
    row = below.pairs.number(one[same], other[same])
    norm = below.log_norm
    said = below.logits[row] - (norm[one[same]] + norm[other[same]]) / 2
    prior = said.new_zeros(len(one)).index_put((index_of(same),), said)
    return prior, same.to(prior.dtype)


def log_likelihood(signal: PairSignal, target: Sequences) -> Float[Tensor, "sets"]:
    """log-probability of both neighbours of every city on the target tour, mean over cities."""
    sets = signal.pairs.sets
    here, there = steps_of(sets, target)
    norm = signal.log_norm
    said = 2 * signal.logits[signal.pairs.number(here, there)] - norm[here] - norm[there]
    return segment_sum(said, sets.owner[here], len(sets)) / sets.sizes.clamp(min=1)


def steps_of(sets: SetBatch, tours: Sequences) -> tuple[Int[Tensor, "steps"], Int[Tensor, "steps"]]:
    """Every step of the tours, from a row to the next; a single city makes none."""
    rows = tours.rows(sets)
    after = rows[followers(tours.sizes)]
    steps = rows != after
    return rows[steps], after[steps]
