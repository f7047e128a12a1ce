"""One decision a set: which of many parallel cuts to make (a "sweep"), not a coin for every item.

A policy gradient over one draw a set has far less variance than over one draw an item, and finding
the candidates takes O(n log n). Every cut is by a line (a hyperplane), at any size and scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.noise import gumbel, mix
from diconet.segments import (
    offsets_of,
    owner_of,
    ragged_arange,
    segment_argmax,
    segment_logsumexp,
    segment_max,
)
from diconet.sets import SetBatch
from diconet.splits.sweep_kernels import CUT_FEATURES, REGRETS, sweep_sets
from diconet.tree import Cut

SHARE_FEATURES = 12
"""Numbers that describe one way to share a budget between the two sides of a cut."""

_POWERS = (1 / 3, 1 / 2, 2 / 3)
"""d / (d + 2) for points of intrinsic dimension d = 1, 2, 4: see `_share_features`."""


_SHARPNESS = 8.0
"""Scale of what is learned: thousands of cuts compete, and the best must soon stand out."""

_START = 50.0
"""How strongly an untrained split prefers cuts that cost little, per unit of log cost."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The cuts each set may choose from, packed set after set.

    A candidate puts the first `position` items of an order along its direction on the first side;
    `cost` holds the squared distances to the mean within each of the two sides.
    """

    features: Float[Tensor, "cuts features"]
    sizes: Int[Tensor, "sets"]
    position: Int[Tensor, "cuts"]
    direction: Int[Tensor, "cuts"]
    cost: Float[Tensor, "cuts 2"]
    order: Int[Tensor, "items directions"]
    start: Int[Tensor, "sets"]

    @cached_property
    def owner(self) -> Int[Tensor, "cuts"]:
        """The set of each candidate."""
        return owner_of(self.sizes, len(self.features))


def candidates_of(
    sets: SetBatch, budget: Float[Tensor, "sets"], *, max_positions: int = 512
) -> Candidates:
    """All cuts between neighbours along a few directions of each set.

    In the plane: ten fixed angles; otherwise differences of far-apart points; and always the
    principal axes and the normals of cuts that lower the squared distances most. Sets of more than
    `max_positions` items offer the widest gap in each of that many stretches.
    """
    found = sweep_sets(
        sets.items.detach().cpu().numpy(),
        sets.offsets.cpu().numpy(),
        budget.cpu().numpy(),
        max_positions,
    )
    features, sizes, position, direction, cost, order = (
        torch.from_numpy(part).to(sets.items.device) for part in found
    )
    return Candidates(features, sizes, position, direction, cost, order, sets.offsets[:-1])


class SweepSplit(nn.Module):
    """Chooses one cut a set, and how the set's budget of leaves is shared between its sides.

    The first number of a set's context is its budget: the leaves it may still become. `share` says
    who divides it: a second, small network ("learned"), the number of items ("proportional"), or
    nobody ("halved"). A set without context has no budget and is cut for as long as trees grow.
    """

    def __init__(
        self,
        width: int = 64,
        share: Literal["learned", "proportional", "halved"] = "learned",
        max_positions: int = 512,
    ) -> None:
        super().__init__()
        if share not in ("learned", "proportional", "halved"):
            raise ValueError(f"share must be learned, proportional or halved; got {share!r}.")
        if max_positions < 2:
            raise ValueError(f"max_positions must be at least 2; got {max_positions}.")
        self.config = {"width": width, "share": share, "max_positions": max_positions}
        self.share = share
        self.max_positions = max_positions
        self.score = _mlp(CUT_FEATURES, width)
        self.lean = nn.Parameter(torch.tensor([_START, 0.0, 0.0, 0.0]))
        self.shares = _mlp(SHARE_FEATURES, width // 2) if share == "learned" else None
        self.share_lean = nn.Parameter(torch.ones(2)) if share == "learned" else None

    def candidates(self, sets: SetBatch) -> Candidates:
        """The cuts to choose from; nothing here is learned."""
        return candidates_of(sets, _budget(sets), max_positions=self.max_positions)

    def logits(self, candidates: Candidates) -> Float[Tensor, "cuts"]:
        """How much each candidate is preferred: at first the cheaper it is, then as learned."""
        lean = candidates.features[:, REGRETS] @ self.lean
        return _SHARPNESS * self.score(candidates.features).squeeze(1) - lean

    def lean_to(self, lean: float) -> None:
        """Sets how strongly cuts that cost little now are preferred, per unit of log cost."""
        with torch.no_grad():
            self.lean[0] = lean

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return self._cut(sets, seeds, 1)

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)` from one look at each set; `times` seeds a set in a row."""
        return self._cut(sets, seeds, len(seeds) // len(sets))

    def _cut(self, sets: SetBatch, seeds: Int[Tensor, "samples"] | None, times: int) -> Cut:
        candidates = self.candidates(sets)
        logits = self.logits(candidates)
        chosen, log_prob = _draw(logits, candidates.sizes, times, seeds)
        if times > 1:
            sets = sets.repeat(times)
        side = sides_of(sets, candidates, chosen)
        if sets.context.shape[1] == 0:
            return Cut(side, log_prob)
        first, share_log_prob = self._divide(sets, candidates, chosen, seeds)
        both = torch.stack([first, _budget(sets).long() - first], 1)
        contexts = sets.context[:, None].expand(-1, 2, -1).clone()
        contexts[:, :, 0] = both.to(contexts.dtype)
        return Cut(side, log_prob + share_log_prob, contexts=contexts, closed=both <= 1)

    def _divide(
        self,
        sets: SetBatch,
        candidates: Candidates,
        chosen: Int[Tensor, "sets"],
        seeds: Int[Tensor, "sets"] | None,
    ) -> tuple[Int[Tensor, "sets"], Float[Tensor, "sets"]]:
        """The first side's leaves, with what choosing them adds to the log-probability."""
        budget = _budget(sets).long()
        items = candidates.position[chosen]
        # a side never gets more leaves than it has items
        least = (budget - (sets.sizes - items)).clamp(min=1)
        most = torch.maximum(torch.minimum(budget - 1, items), least)
        if self.shares is None:
            wanted = budget // 2
            if self.share == "proportional":
                wanted = (budget * items / sets.sizes).round().long()
            first = torch.minimum(torch.maximum(wanted, least), most)
            return first, sets.items.new_zeros(len(sets))
        width = most - least + 1
        owner = owner_of(width)
        first = ragged_arange(least, width)
        part = (items / sets.sizes)[owner]
        features = _share_features(first, budget[owner], part, candidates, chosen[owner], owner)
        assert self.share_lean is not None
        logits = self.shares(features).squeeze(1) - features[:, [0, 3]] @ self.share_lean
        pick, log_prob = _draw(logits, width, 1, None if seeds is None else mix(seeds, 7))
        return first[pick], log_prob


def sides_of(sets: SetBatch, candidates: Candidates, chosen: Int[Tensor, "sets"]) -> Tensor:
    """Which items lie beyond the chosen cut of their set."""
    direction = candidates.direction[chosen][sets.owner]
    row = candidates.start[candidates.owner[chosen]][sets.owner] + sets.position
    order = candidates.order[row, direction]
    beyond = sets.position >= candidates.position[chosen][sets.owner]
    side = torch.empty_like(beyond)
    side[sets.offsets[:-1][sets.owner] + order] = beyond
    return side


def _mlp(inputs: int, width: int) -> nn.Sequential:
    """Two hidden layers; zero until it has learned something."""
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last
    )


def _budget(sets: SetBatch) -> Float[Tensor, "sets"]:
    """Leaves that each set may become; two where nobody said."""
    if sets.context.shape[1] == 0:
        return torch.full_like(sets.sizes, 2, dtype=torch.float32)
    # whoever asks for a cut has two leaves in mind at least
    return torch.minimum(sets.context[:, 0], sets.sizes.float()).clamp(min=2)


def _draw(
    logits: Float[Tensor, "rows"],
    sizes: Int[Tensor, "sets"],
    times: int,
    seeds: Int[Tensor, "samples"] | None,
) -> tuple[Int[Tensor, "samples"], Float[Tensor, "samples"]]:
    """Rows drawn by softmax with seeds, so many times a segment; the likeliest one without.

    With the log-probability of each.
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
    chosen: Int[Tensor, "shares"],
    owner: Int[Tensor, "shares"],
) -> Float[Tensor, "shares features"]:
    """What is known of giving `first` leaves of the budget to the first side.

    Where points fill d dimensions, the cost of a side with m leaves falls as m^(-2/d), and sharing
    the budget as cost^(d / (d + 2)) is best; where they lie in clusters of one size, sharing it as
    the number of items is. Which of these holds is for the network to find out.
    """
    total = budget.to(part.dtype)
    mine = first.to(part.dtype)
    cost = candidates.cost[chosen] + 1e-30
    columns = [(mine - total * part).abs()]
    num = int(owner[-1]) + 1 if len(owner) else 0
    for power in _POWERS:
        weight = cost**power
        columns.append((mine - total * weight[:, 0] / weight.sum(1)).abs())
        fall = 1 / power - 1
        after = torch.log(cost[:, 0] * mine**-fall + cost[:, 1] * (total - mine) ** -fall)
        columns.append(after + segment_max(-after, owner, num)[owner])
    columns += [torch.log2(total) / 4, 1 / total]
    columns = [column.clamp(max=8) for column in columns]
    picked = candidates.features[chosen][:, [2, 3, 4]]
    return torch.cat([torch.stack(columns, 1), picked], 1)
