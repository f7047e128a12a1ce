"""One decision per set: which of many parallel cuts to make (a "sweep"), not one coin per item.

A policy gradient over one draw per set has far less variance than over one draw per item, and
finding the candidates takes O(n log n). Every cut is by a hyperplane, at any size and scale.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.noise import gumbel, mix
from diconet.core.segments import (
    index_of,
    offsets_of,
    owner_of,
    ragged_arange,
    segment_argmax,
    segment_logsumexp,
    segment_max,
)
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.sweep_candidates import CUT_FEATURES, Candidates, candidates_of, sides_of

SHARE_FEATURES = 12
"""Numbers that describe one way to divide a budget between the two sides of a cut."""

_POWERS = (1 / 3, 1 / 2, 2 / 3)
"""d / (d + 2) for points of intrinsic dimension d = 1, 2, 4: see `_share_features`."""

_SHARPNESS = 8.0
"""Scale of the learned logits: hundreds of cuts compete, and the best must soon stand out."""

_MANY = 8
"""From this many leaves on, cuts must be balanced."""

_LOPSIDED = 0.75
"""The largest distance of such a cut from the centre (0); 1 is the end."""

_REGRETTED = 0.5
"""Log of the largest cost, relative to the best, of a cut that is scored."""

_OUT_OF_REACH = 1e6
_BLOCK = 65_536

_UNTRAINED_COST_WEIGHT = 50.0
"""How strongly an untrained split prefers cheap cuts, per unit of log cost."""


class SweepSplit(Part):
    """Chooses one cut per set, and how the set's budget of leaves is divided between its sides.

    The first number of a set's context is its budget: the leaves it may still become. `share` says
    what divides it: a second, small network ("learned"), the number of items ("proportional"), or
    equal halves ("halved"). A set without context has no budget and is cut for as long as trees
    grow.

    Of a set with more than `max_points` items, only that many are examined; each item then goes to
    the nearer of the means of the two sides. While many leaves are left, each side gets at least a
    quarter of them, so that the depth of a tree is of the order of the logarithm of its leaves.
    """

    many = True

    def __init__(
        self,
        width: int = 64,
        share: Literal["learned", "proportional", "halved"] = "learned",
        max_positions: int = 32,
        max_points: int = 256,
    ) -> None:
        super().__init__()
        if share not in ("learned", "proportional", "halved"):
            raise ValueError(f"share must be learned, proportional or halved; got {share!r}.")
        for name, value in {"max_positions": max_positions, "max_points": max_points}.items():
            if value < 2:
                raise ValueError(f"{name} must be at least 2; got {value}.")
        self.share = share
        self.max_points = max_points
        self.max_positions = max_positions
        self.score = _mlp(CUT_FEATURES, width)
        self.cost_weights = nn.Parameter(torch.tensor([_UNTRAINED_COST_WEIGHT, 0.0, 0.0, 0.0]))
        self.shares = _mlp(SHARE_FEATURES, width // 2) if share == "learned" else None
        self.share_weights = nn.Parameter(torch.ones(2)) if share == "learned" else None

    def candidates(self, sets: SetBatch) -> Candidates:
        """The cuts to choose from; nothing here is learned."""
        return candidates_of(sets, _budget(sets), max_positions=self.max_positions)

    def logits(
        self, candidates: Candidates, rows: Int[Tensor, "rows"] | slice = slice(None)
    ) -> Float[Tensor, "rows"]:
        """The preference for each candidate: initially the cheaper the better, then as learned."""
        regret = candidates.regret[rows] @ self.cost_weights
        return _SHARPNESS * self.score(candidates.features(rows)).squeeze(1) - regret

    def set_cost_weight(self, weight: float) -> None:
        """Sets how strongly cuts of low immediate cost are preferred, per unit of log cost."""
        with torch.no_grad():
            self.cost_weights[0] = weight

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        times = 1 if seeds is None else len(seeds) // len(sets)
        few = _thinned(sets, self.max_points)
        candidates = self.candidates(few)
        chosen, log_prob = _draw(self._allowed(candidates), candidates.sizes, times, seeds)
        if times > 1:
            sets, few = sets.repeat(times), few.repeat(times)
        side = sides_of(few, candidates, chosen)
        if few.num_items < sets.num_items:
            side = _carried_over(sets, few, side)
        if sets.context.shape[1] == 0:
            return Cut(side, log_prob)
        first, share_log_prob = self._divide(sets, side, candidates, chosen, seeds)
        both = torch.stack([first, _budget(sets).long() - first], 1)
        contexts = sets.context[:, None].expand(-1, 2, -1).clone()
        contexts[:, :, 0] = both.to(contexts.dtype)
        return Cut(side, log_prob + share_log_prob, contexts=contexts, closed=both <= 1)

    def _allowed(self, candidates: Candidates) -> Float[Tensor, "cuts"]:
        """The preferences, with cuts that would unbalance a tree excluded.

        When solving, cuts that cost far more than the best are excluded too, which saves scoring
        them.
        """
        barred = (candidates.budget >= _MANY)[candidates.owner]
        barred &= candidates.off_centre() > _LOPSIDED
        if torch.is_grad_enabled():
            return self.logits(candidates).masked_fill(barred, -_OUT_OF_REACH)
        regret = candidates.regret[:, 0]
        kept = index_of(~barred & (regret < _REGRETTED))
        # if nothing is kept, the cheapest of the balanced ones
        logits = -_OUT_OF_REACH * (1 + regret / 8 + 4 * barred)
        logits[kept] = self.logits(candidates, kept)
        return logits

    def _divide(
        self,
        sets: SetBatch,
        side: Bool[Tensor, "items"],
        candidates: Candidates,
        chosen: Int[Tensor, "sets"],
        seeds: Int[Tensor, "sets"] | None,
    ) -> tuple[Int[Tensor, "sets"], Float[Tensor, "sets"]]:
        """The number of leaves of the first side, and its log-probability."""
        budget = _budget(sets).long()
        items = torch.bincount(sets.owner[~side], minlength=len(sets))
        quarter = torch.where(budget >= _MANY, budget // 4, 1)
        # a side never gets more leaves than it has items
        least = torch.maximum(torch.minimum(quarter, items), budget - (sets.sizes - items))
        most = torch.maximum(torch.minimum(budget - quarter, items), least)
        if self.shares is None:
            wanted = budget // 2
            if self.share == "proportional":
                wanted = (budget * items / sets.sizes).round().long()
            first = torch.minimum(torch.maximum(wanted, least), most)
            return first, torch.zeros(len(sets), device=side.device)
        width = most - least + 1
        if not bool((width > 1).any()):
            return least, torch.zeros(len(sets), device=side.device)
        owner = owner_of(width)
        first = ragged_arange(least, width)
        part = (items / sets.sizes)[owner]
        features = _share_features(first, budget[owner], part, candidates, chosen, owner)
        assert self.share_weights is not None
        logits = self.shares(features).squeeze(1) - features[:, 0:4:3] @ self.share_weights
        pick, log_prob = _draw(logits, width, 1, None if seeds is None else mix(seeds, 7))
        return first[pick], log_prob


def _thinned(sets: SetBatch, most: int) -> SetBatch:
    """At most `most` items per set, evenly spaced in its order."""
    if not bool((sets.sizes > most).any()):
        return sets
    sizes = sets.sizes.clamp(max=most)
    place = ragged_arange(torch.zeros_like(sizes), sizes)
    owner = owner_of(sizes)
    rows = sets.offsets[:-1][owner] + (place * sets.sizes[owner]) // sizes[owner].clamp(min=1)
    return sets.select(rows, sizes)


def _carried_over(
    sets: SetBatch, few: SetBatch, side: Bool[Tensor, "few"]
) -> Bool[Tensor, "items"]:
    """The sides of all items, given those of some: that of the nearer of the two means.

    If that would leave a side empty, its share of the items is cut off in their order.
    """
    second = side.to(few.items.dtype)[:, None]
    number = few.sum(second)
    total, beyond = few.sum(few.items), few.sum(few.items * second)
    far = beyond / number.clamp(min=1)
    near = (total - beyond) / (few.sizes[:, None] - number).clamp(min=1)
    line, middle = far - near, (far + near) / 2
    all_ = torch.empty(sets.num_items, dtype=torch.bool, device=side.device)
    for low in range(0, sets.num_items, _BLOCK):
        owner = sets.owner[low : low + _BLOCK]
        items = sets.items[low : low + _BLOCK]
        all_[low : low + _BLOCK] = ((items - middle[owner]) * line[owner]).sum(1) > 0
    count = sets.sum(all_.to(torch.float32)).long()
    bare = (count == 0) | (count == sets.sizes)
    if bool(bare.any()):
        first = (sets.sizes * (1 - number.squeeze(1) / few.sizes)).long().clamp(min=1)
        cut_off = sets.position >= torch.minimum(first, sets.sizes - 1)[sets.owner]
        all_ = torch.where(bare[sets.owner], cut_off, all_)
    exact = few.sizes == sets.sizes
    if bool(exact.any()):
        all_[exact[sets.owner]] = side[exact[few.owner]]
    return all_


def _mlp(inputs: int, width: int) -> nn.Sequential:
    """Two hidden layers; the output is zero before training."""
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last
    )


def _budget(sets: SetBatch) -> Float[Tensor, "sets"]:
    """The leaves that each set may become; two if not given."""
    if sets.context.shape[1] == 0:
        return torch.full_like(sets.sizes, 2, dtype=torch.float32)
    # a cut makes at least two leaves
    return torch.minimum(sets.context[:, 0], sets.sizes.float()).clamp(min=2)


def _draw(
    logits: Float[Tensor, "rows"],
    sizes: Int[Tensor, "sets"],
    times: int,
    seeds: Int[Tensor, "samples"] | None,
) -> tuple[Int[Tensor, "samples"], Float[Tensor, "samples"]]:
    """Rows drawn by softmax given seeds, `times` per segment; else the likeliest one.

    Also returns the log-probability of each.
    """
    owner = owner_of(sizes, len(logits))
    total = segment_logsumexp(logits, owner, len(sizes))
    keys = logits.detach()
    if seeds is None:
        chosen = segment_argmax(keys, owner, len(sizes))
        return chosen, logits[chosen] - total
    which = torch.arange(len(sizes), device=sizes.device).repeat_interleave(times)
    rows = ragged_arange(offsets_of(sizes)[which], sizes[which])
    sample = owner_of(sizes[which], len(rows))
    place = rows - offsets_of(sizes)[which][sample]
    noisy = keys[rows] + gumbel(mix(seeds[sample], place))
    chosen = rows[segment_argmax(noisy, sample, len(which))]
    return chosen, logits[chosen] - total[which]


def _share_features(
    first: Int[Tensor, "shares"],
    budget: Int[Tensor, "shares"],
    part: Float[Tensor, "shares"],
    candidates: Candidates,
    chosen: Int[Tensor, "sets"],
    owner: Int[Tensor, "shares"],
) -> Float[Tensor, "shares features"]:
    """Features of giving `first` leaves of the budget to the first side.

    If points fill d dimensions, the cost of a side with m leaves falls as m^(-2/d), and dividing
    the budget as cost^(d / (d + 2)) is best; if they lie in clusters of one size, dividing it by
    the number of items is. The network has to find out which of these holds.
    """
    total = budget.to(part.dtype)
    mine = first.to(part.dtype)
    cost = candidates.cost[chosen][owner] + 1e-30
    columns = [(mine - total * part).abs()]
    for power in _POWERS:
        weight = cost**power
        columns.append((mine - total * weight[:, 0] / weight.sum(1)).abs())
        fall = 1 / power - 1
        after = torch.log(cost[:, 0] * mine**-fall + cost[:, 1] * (total - mine) ** -fall)
        columns.append(after + segment_max(-after, owner, len(chosen))[owner])
    columns += [torch.log2(total) / 4, 1 / total]
    columns = [column.clamp(max=8) for column in columns]
    wide = candidates.spans(chosen)[:, 2:]
    off_centre = candidates.off_centre()[chosen][:, None]
    return torch.cat([torch.stack(columns, 1), wide[owner], off_centre[owner]], 1)
