"""One decision per node: a direction and a threshold, out of many, scored by a network.

The policy gradient then assigns credit to one draw per node, not one per item, and every cut
is that of a line, of a sequence or of a sweep over a graph. It costs n log n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.host import count
from diconet.core.model import Part
from diconet.core.noise import gumbel, mix
from diconet.core.segments import segment_argmax, segment_logsumexp, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.encoder import SetEncoder
from diconet.nets.signals import normals, one_seed_each, smoothed

_AXES = 4
"""The maximum number of features used as directions."""

_SHUFFLED = 4
"""One in this many directions is a random order of the items."""

_AT_ONCE = 200_000
"""Above this many candidates, directions are scored one by one, to save memory."""

_RIVAL = 16
"""Numbers by which the cuts of a sequence are compared with those before and after them."""

_SUMMARY = 6
"""Numbers per candidate that do not depend on the number of item features."""


class OneCutSplit(Part):
    """Cuts each set at one threshold along one direction.

    Directions are the features themselves, random ones, random orders and, on a graph, random
    numbers smoothed over edges; a sequence has only its own order. A candidate is scored by the
    sizes of its sides, the gap it lies in, the share of the variance it explains, the sums of each
    feature on both sides, and the edges it cuts; in a sequence also by the best candidates before
    and after it. With `along`, the features with these numbers are the only directions.
    """

    general = many = True

    def __init__(
        self, directions: int = 8, along: Sequence[int] | None = None, **encoder: Any
    ) -> None:
        super().__init__()
        if directions < 1:
            raise ValueError(f"directions must be at least 1; got {directions}.")
        encoder = {**encoder, "num_layers": min(encoder.get("num_layers", 2), 2), "noise": 0}
        self.encoder = SetEncoder(**encoder)
        self.directions, self.along = directions, None if along is None else list(along)
        width, features = self.encoder.width, self.encoder.inputs.num_features
        per_candidate = _SUMMARY + 4 * features
        self.judge = nn.Linear(per_candidate, 2 * width)
        self.judge_set = nn.Linear(width, 2 * width, bias=False)
        self.judge_ends = nn.Linear(2 * width, 2 * width, bias=False)
        self.judge_rivals = nn.Linear(2 * _RIVAL, 2 * width, bias=False)
        self.score = nn.Sequential(
            nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1, bias=False)
        )

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        sweeps, score = self._look(sets, seeds)
        if seeds is None or len(seeds) == len(sets):
            return self._cut(sets, sweeps, score, seeds)
        each = seeds.reshape(len(sets), -1).unbind(1)
        cuts = [self._cut(sets, sweeps, score, one) for one in each]
        sides = torch.stack([cut.side for cut in cuts], 1)
        copies = sets.with_items(sides.to(sets.items.dtype)).unpack()
        side = torch.cat([copy.T.flatten() for copy in copies]) > 0
        return Cut(side, torch.stack([cut.log_prob for cut in cuts], 1).flatten())

    def _look(
        self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None
    ) -> tuple[_Sweeps, Float[Tensor, "candidates"]]:
        along, hidden = self._along(sets, seeds), self.encoder(sets, seeds)
        sweeps = _Sweeps.of(sets, along)
        if along.numel() <= _AT_ONCE:
            return sweeps, self._scores(sweeps, hidden)
        one_by_one = (_Sweeps.of(sets, one) for one in along.split(1, 1))
        return sweeps, torch.cat([self._scores(sweep, hidden) for sweep in one_by_one])

    def _scores(
        self, sweeps: _Sweeps, hidden: Float[Tensor, "items width"]
    ) -> Float[Tensor, "candidates"]:
        numbers = sweeps.numbers(self.encoder.get_buffer("unit"))
        total = self.judge(numbers.to(hidden.dtype))
        whole = self.judge_set(sweeps.sets.mean(hidden))
        total = total + whole.index_select(0, sweeps.owner)
        if self.encoder.inputs.ordered:
            ends = torch.cat([hidden[sweeps.before], hidden[sweeps.after]], 1)
            total = total + self.judge_ends(ends)
            total = total + self.judge_rivals(_rivals(total[:, :_RIVAL], sweeps))
        return self.score(total).squeeze(1)

    def _cut(
        self,
        sets: SetBatch,
        sweeps: _Sweeps,
        score: Float[Tensor, "candidates"],
        seeds: Int[Tensor, "sets"] | None,
    ) -> Cut:
        drawn = score.detach()
        if seeds is not None:
            drawn = drawn + gumbel(mix(mix(seeds, 21)[sweeps.owner], sweeps.number))
        best = segment_argmax(drawn, sweeps.owner, len(sets))
        some = best < len(score)  # a set of one item has no candidate
        best = best.clamp(max=max(len(score) - 1, 0))
        side = torch.zeros(sets.num_items, dtype=torch.bool, device=sets.index.device)
        log_prob = score.new_zeros(len(sets))
        if len(score):
            side = sweeps.side(sets, best) & some[sets.owner]
            chance = score - segment_logsumexp(score, sweeps.owner, len(sets))[sweeps.owner]
            log_prob = torch.where(some, chance[best], 0.0)
        return Cut(side, log_prob)

    def _along(
        self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None
    ) -> Float[Tensor, "items directions"]:
        """Each item's position along every direction."""
        if self.encoder.inputs.ordered:
            return sets.position[:, None].double()
        seeds = one_seed_each(sets, seeds)
        unit = self.encoder.get_buffer("unit")
        usual = sets.items.double() / unit
        if self.along is not None:
            return usual[:, torch.tensor(self.along, device=usual.device)]
        axes = usual[:, :_AXES]
        rest = max(self.directions - axes.shape[1], 0)
        if sets.relations is not None:
            return torch.cat([axes, smoothed(sets, seeds, rest)], 1)
        # a line has only one direction, but loads may be divided in any order
        lines = 0 if sets.num_features == 1 else rest - rest // _SHUFFLED
        draws = normals(mix(seeds, 5), lines * sets.num_features).double()
        ways = draws.reshape(len(sets), lines, sets.num_features)
        centred = usual - sets.mean(usual)[sets.owner]
        turned = torch.einsum("if,irf->ir", centred, ways[sets.owner])
        chance = mix(mix(seeds, 7)[sets.owner], sets.position)
        return torch.cat([axes, turned, normals(chance, rest - lines).double()], 1)


def _rivals(
    views: Float[Tensor, "candidates views"], sweeps: _Sweeps
) -> Float[Tensor, "candidates both"]:
    """The maximum of each view over all cuts before and after each one, for sets cut one way."""
    sets = sweeps.sets
    column = sets.position[sweeps.place] + 1
    width = count(sets.sizes.max()) + 1 if len(sets) else 1
    padded = views.new_zeros(len(sets), width, views.shape[1])
    padded = padded.index_put((sweeps.owner, column), F.relu(views))
    before, after = torch.cummax(padded, 1)[0], torch.cummax(padded.flip(1), 1)[0].flip(1)
    return torch.cat([before[sweeps.owner, column - 1], after[sweeps.owner, column + 1]], 1)


@dataclass(frozen=True, eq=False)
class _Sweeps:
    """All candidates: after each item but the last, along each direction, set by set.

    `order` holds the rows sorted along each direction; `before` and `after` the rows beside a cut.
    """

    sets: SetBatch
    along: Float[Tensor, "items directions"]
    order: Int[Tensor, "directions items"]
    place: Int[Tensor, "candidates"]
    owner: Int[Tensor, "candidates"]
    way: Int[Tensor, "candidates"]

    @classmethod
    def of(cls, sets: SetBatch, along: Float[Tensor, "items directions"]) -> _Sweeps:
        """Sorts every set along every direction."""
        ways = along.shape[1]
        order = torch.stack([segment_sort(one, sets.owner) for one in along.unbind(1)])
        cuts = (sets.position < sets.sizes[sets.owner] - 1).nonzero().squeeze(1)
        place = cuts.repeat(ways)
        way = torch.arange(ways, device=cuts.device).repeat_interleave(len(cuts))
        return cls(sets, along, order, place, sets.owner[place], way)

    @property
    def number(self) -> Int[Tensor, "candidates"]:
        """The number of each candidate among those of its set, by position and direction."""
        return self.sets.position[self.place] * len(self.order) + self.way

    @property
    def before(self) -> Int[Tensor, "candidates"]:
        """The row just before each cut."""
        return self.order[self.way, self.place]

    @property
    def after(self) -> Int[Tensor, "candidates"]:
        """The row just after each cut."""
        return self.order[self.way, self.place + 1]

    def side(self, sets: SetBatch, chosen: Int[Tensor, "sets"]) -> Tensor:
        """Which items lie beyond the chosen candidate of their set."""
        rank = torch.empty_like(self.order)
        rank.scatter_(1, self.order, sets.position.expand_as(self.order))
        mine = rank.gather(0, self.way[chosen][sets.owner][None]).squeeze(0)
        return mine > sets.position[self.place[chosen]][sets.owner]

    def numbers(self, unit: Float[Tensor, "features"]) -> Float[Tensor, "candidates numbers"]:
        """The numbers that a candidate is scored by, given the usual unit of each feature."""
        sets, usual = self.sets, self.sets.items.double() / unit
        size = sets.sizes[self.owner].double()
        share = (sets.position[self.place] + 1) / size
        centred = usual - sets.mean(usual)[sets.owner]
        total = sets.sum(centred.square()).clamp(min=1e-12)[self.owner]
        apart = self._prefix(centred)  # the sum over the items before the cut
        explained = apart.square() / (size * share * (1 - share))[:, None] / total
        mass = sets.sum(usual.abs()).clamp(min=1e-12)[self.owner]
        lead = 2 * self._prefix(usual.abs()) / mass - 1
        overall = explained.mul(total).sum(1) / total.sum(1)
        parts = [
            torch.stack([share - 0.5, (share - 0.5).abs(), overall, *self._gaps()], 1),
            self._crossing(share)[:, None],
            explained,
            lead,
            lead.abs(),
            (lead.abs() + 1e-3).log() / 4,
        ]
        return torch.cat(parts, 1)

    def _prefix(self, values: Float[Tensor, "items features"]) -> Float[Tensor, "candidates f"]:
        """Sums over the items up to each cut."""
        sums = []
        for order in self.order:
            run = torch.cumsum(values[order], 0)
            start = torch.cat([run.new_zeros(1, run.shape[1]), run])[self.sets.offsets[:-1]]
            sums.append(run - start[self.sets.owner])
        cuts = self.place[: len(self.place) // max(len(self.order), 1)]
        return torch.cat([one[cuts] for one in sums])

    def _gaps(self) -> list[Float[Tensor, "candidates"]]:
        """The width of the gap at the cut relative to the spread, in logs, near and wider."""
        line = self.along.T.gather(1, self.order)
        first = self.sets.offsets[:-1][self.sets.owner]
        last = self.sets.offsets[1:][self.sets.owner] - 1
        reach = (line[:, last] - line[:, first]).clamp(min=1e-12)[self.way, self.place]
        gaps = []
        for window in (0, 3):
            low = torch.maximum(self.place - window, first[self.place])
            high = torch.minimum(self.place + 1 + window, last[self.place])
            gap = (line[self.way, high] - line[self.way, low]) / reach
            gaps.append((gap * self.sets.sizes[self.owner] / (2 * window + 1) + 1e-3).log() / 2)
        return gaps

    def _crossing(self, share: Float[Tensor, "candidates"]) -> Float[Tensor, "candidates"]:
        """Edges across the cut, relative to the number that a random cut of these sizes has."""
        edges = self.sets.relations
        if edges is None or edges.num_edges == 0:
            return torch.zeros_like(share)
        source, target = self.sets.edges()
        rank = torch.empty_like(self.order)
        places = torch.arange(rank.shape[1], device=rank.device)
        rank.scatter_(1, self.order, places.expand_as(rank))
        # an edge is open from its first end until just before its second
        start, end = rank[:, source], rank[:, target]
        opens = (end - start).sign().to(share.dtype)
        steps = torch.zeros(self.order.shape, dtype=share.dtype, device=share.device)
        steps = steps.scatter_add(1, start, opens)
        # with every edge stored both ways, what one end closes is what the other has opened
        steps = 2 * steps if edges.symmetric else steps.scatter_add(1, end, -opens)
        open_ = steps.cumsum(1)[self.way, self.place]
        usual = edges.sizes.clamp(min=1)[self.owner] * 2 * share * (1 - share)
        return open_ / usual.clamp(min=1e-6) - 1
