"""The triple merge: an edge of the answer is judged by the position of third points.

Two convex polygons become one. Every candidate edge i -> j is tested against its witnesses k, by
learned sums of products of the directions between the three; a softmax over the edges out of i,
and over having none, says whether i stays and where the answer continues from it. The problem is
the same at every level of the tree, so one small module solves all of them, including leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.model import Part
from diconet.core.segments import (
    followers,
    index_of,
    ragged_arange,
    segment_argmax,
    segment_logsumexp,
    segment_max,
    segment_sort,
    segment_sum,
)
from diconet.core.sets import SetBatch
from diconet.core.tree import Level, halves, joined
from diconet.problems.hull.calipers import NOBODY, Edges, all_edges, caliper_edges

_FEW = 24  # up to this many points, all pairs are tested, whatever hulls they belong to
_CHUNK = 1 << 16  # edges judged at a time when no gradient is needed: bounds the memory


@dataclass(frozen=True, eq=False)
class Polygons:
    """Answers of a level: corners in cyclic order; with a target, its log-likelihood so far."""

    roots: SetBatch
    sets: SetBatch
    log_prob: Float[Tensor, "roots"] | None = None

    @property
    def solution(self) -> Sequences:
        """The answers as ordered choices from the roots."""
        return Sequences.from_answer(self.sets, self.roots)


class TripleJudge(Part):
    """Scores edges in the plane by their witnesses: positive if an edge holds against all of them.

    A triple enters as the directions i -> j, i -> k and j -> k, through learned sums of
    products of their coordinates ("forms"); each form takes its worst witness. Without a bias a
    form changes sign at the same place at every scale, however close to a tie; it is computed in
    double precision for the closest ones.
    """

    def __init__(self, num_forms: int = 1, resolution: float = 1e-8) -> None:
        super().__init__()
        if num_forms < 1:
            raise ValueError(f"num_forms must be at least 1; got {num_forms}.")
        if not resolution > 0:
            raise ValueError(f"resolution must be above 0; got {resolution}.")
        start = torch.randn(4, 2, num_forms, dtype=torch.float64)
        self.forms = nn.Parameter(start / math.sqrt(8 * num_forms))
        self.resolution = resolution

    def forward(self, points: Float[Tensor, "items 2"], edges: Edges) -> Float[Tensor, "edges"]:
        points = points.to(self.forms.dtype)
        tail, head = points[edges.tail], points[edges.head]
        third = points[edges.witness]
        to_third = torch.cat(
            [_direction(third - tail[:, None]), _direction(third - head[:, None])], 2
        )
        # Linear in the directions of both edge and witness: one form per coordinate of the latter.
        by_x, by_y = (to_third @ self.forms.flatten(1)).chunk(2, 2)
        along = _direction(head - tail)[:, None, :]
        against = along[..., :1] * by_x + along[..., 1:] * by_y
        against = against.masked_fill((edges.witness == NOBODY)[:, :, None], -torch.inf)
        worst = F.pad(against, (0, 0, 0, 1), value=-torch.inf).amax(1)
        worst = torch.where(worst.isneginf(), -1.0, worst)  # an edge without witnesses holds
        return -torch.asinh(worst / self.resolution).sum(1).to(torch.float32)


def _direction(step: Float[Tensor, "*shape 2"]) -> Float[Tensor, "*shape 2"]:
    """Unit vectors; the zero vector is kept."""
    length = torch.linalg.vector_norm(step, dim=-1, keepdim=True)
    return step / torch.where(length > 0, length, 1)


class TripleMerge(Part):
    """Merges the hulls of two point sets in the plane, or finds that of a small set at a leaf.

    A point is dropped only if having no edge has at least probability `patience`: keeping one in
    doubt costs a little time, dropping one loses the answer. Given a target, its corners are always
    kept; the likelihood is then the probability that all of them would have stayed and that the
    root draws the target.
    """

    def __init__(
        self, judge: TripleJudge | None = None, patience: float = 0.5, epsilon: float = 1e-6
    ) -> None:
        super().__init__()
        if not 0.5 <= patience < 1:
            raise ValueError(f"patience must be at least 0.5 and below 1; got {patience}.")
        self.config["judge"] = self.judge = TripleJudge() if judge is None else judge
        self.patience = patience
        self.epsilon = epsilon

    def forward(self, level: Level, below: Polygons | None, target: Sequences | None) -> Polygons:
        pairs, _ = halves(level, None if below is None else below.sets)
        node = joined(pairs)
        points = whiten(node)
        edges = _candidates(level, pairs, points)
        score = torch.cat([self.scores(points, group) for group in edges])
        tail = torch.cat([group.tail for group in edges])
        head = torch.cat([group.head for group in edges])
        best = segment_max(score, tail, node.num_items, empty=-torch.inf)
        # A point alone in its node has no edge, and is its own hull.
        best = best.masked_fill((node.sizes == 1)[node.owner], torch.inf)
        is_root = level.number == 0
        stays = best > math.log(1 / self.patience - 1)
        log_prob = None
        if target is not None:
            after = _successors(level.roots, target)
            some = segment_logsumexp(score, tail, node.num_items)
            if is_root:
                log_prob = self._draws(node, tail, head, score, some, after)
            else:
                is_corner = after[node.index] != NOBODY
                stays = stays | is_corner
                # how likely all corners have an edge to leave by
                asked = index_of(is_corner & (node.sizes > 1)[node.owner])
                example = level.example[node.owner[asked]]
                log_prob = segment_sum(F.logsigmoid(some[asked]), example, len(level.roots))
            if below is not None and below.log_prob is not None:
                log_prob = log_prob + below.log_prob
        rows, sizes = _cycles(node, points, stays, best)
        return Polygons(level.roots, node.select(rows, sizes), log_prob)

    def scores(self, points: Float[Tensor, "items 2"], edges: Edges) -> Float[Tensor, "edges"]:
        """The judge's score of each edge, computed in pieces if there are many."""
        if torch.is_grad_enabled() or len(edges) <= _CHUNK:
            scores: Tensor = self.judge(points, edges)
            return scores
        return torch.cat([self.judge(points, part) for part in edges.split(_CHUNK)])

    def _draws(
        self,
        node: SetBatch,
        tail: Int[Tensor, "edges"],
        head: Int[Tensor, "edges"],
        score: Float[Tensor, "edges"],
        some: Float[Tensor, "items"],
        after: Int[Tensor, "root_items"],
    ) -> Float[Tensor, "roots"]:
        """The log-probability that every corner leads to the next one, and other points nowhere."""
        wanted = after[node.index]
        hit = index_of(wanted[tail] == node.index[head])
        right = segment_logsumexp(score[hit], tail[hit], node.num_items) - F.softplus(some)
        right = torch.logaddexp(right, right.new_full((), math.log(self.epsilon)))
        log_prob = torch.where(wanted == NOBODY, -F.softplus(some), right)
        return node.sum(log_prob.masked_fill((node.sizes == 1)[node.owner], 0.0))


def whiten(sets: SetBatch, floor: float = 1e-8) -> Float[Tensor, "items 2"]:
    """Points transformed, in double precision, to mean 0 and covariance 1 within their set.

    The hull is the same in such coordinates. A set thinner than `floor` stays that thin.
    """
    x, y = (sets.items.double() - sets.mean(sets.items.double())[sets.owner]).unbind(1)
    xx, xy, yy = sets.mean(torch.stack([x * x, x * y, y * y], 1)).unbind(1)
    least = floor * (xx + yy).sqrt().clamp(min=1e-150)
    spread = torch.maximum(xx.sqrt(), least)
    shear = xy / spread
    rest = torch.maximum((yy - shear * shear).clamp(min=0).sqrt(), least)
    x = x / spread[sets.owner]
    return torch.stack([x, (y - shear[sets.owner] * x) / rest[sets.owner]], 1)


def _candidates(level: Level, pairs: SetBatch, points: Float[Tensor, "items 2"]) -> list[Edges]:
    """All pairs of a leaf's points; for two hulls to merge, those that the calipers touch.

    For few points, all pairs: that takes less time than finding out which to leave out.
    """
    node = joined(pairs)
    if node.num_items <= _FEW or not len(level.inner):
        return [all_edges(node)]
    leaf = index_of(level.is_leaf)
    found = []
    if len(leaf):
        leaf_rows = ragged_arange(node.offsets[:-1][leaf], node.sizes[leaf])
        found.append(all_edges(node.take(leaf)).among(leaf_rows))
    half = (2 * level.inner[:, None] + torch.arange(2, device=leaf.device)).flatten()
    rows = ragged_arange(pairs.offsets[:-1][half], pairs.sizes[half])
    found.append(caliper_edges(pairs.take(half), points[rows]).among(rows))
    return found


def _successors(roots: SetBatch, target: Sequences) -> Int[Tensor, "items"]:
    """For every corner of the target the next one, as rows of the roots; NOBODY for other items."""
    rows = target.rows(roots)
    after = torch.full((roots.num_items,), NOBODY, device=rows.device)
    after[rows] = rows[followers(target.sizes)]
    return after


def _cycles(
    node: SetBatch,
    points: Float[Tensor, "items 2"],
    stays: Bool[Tensor, "items"],
    best: Float[Tensor, "items"],
) -> tuple[Int[Tensor, "rows"], Int[Tensor, "nodes"]]:
    """The rows that stay, counter-clockwise around the node's mean; at least one per node."""
    likeliest = segment_argmax(best, node.owner, len(node))
    stays = stays.clone()
    stays[likeliest[likeliest < node.num_items]] = True
    rows = index_of(stays)
    angle = torch.atan2(points[rows, 1], points[rows, 0])
    rows = rows[segment_sort(angle, node.owner[rows])]
    return rows, torch.bincount(node.owner[rows], minlength=len(node))
