"""Items picked one by one: a subset that is learned from a reward, or one side of a cut."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import count
from diconet.core.noise import gumbel, mix
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Level
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed, Look
from diconet.nets.judge import PairJudge

_RANK = 8
"""Numbers by which what was picked so far and an item that may be next are compared."""


class Picker(nn.Module):
    """Picks items of a set one after the other, until it stops.

    Whether an item is next depends on the item, on what each one picked before is to it, and on
    what all of them together leave room for. So few of many, conflicts and budgets are all learned
    from draws that are no more than the items picked. A set of n items costs n^2.
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

        Drawn by the seeds, the likeliest picks without; with `member`, only items of a target.
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
    """The slot of each node's next pick (the last one stops), and its log-probability.

    With a target, any of its items that is left is right, and to stop when none is.
    """
    drawn = chances.detach()
    if member is not None:
        right = F.pad(member[rows], (0, 1)) & torch.isfinite(drawn)
        right[:, -1] = ~right.any(1)
        drawn = drawn.masked_fill(~right, -torch.inf)
    if seeds is not None:
        slots = torch.arange(drawn.shape[1], device=rows.device)
        each = mix(seeds, step)[:, None].expand(-1, len(slots))
        drawn = drawn + gumbel(mix(each, slots.expand_as(each)))
    pick = drawn.argmax(1)
    if member is not None:
        return pick, torch.logsumexp(chances.masked_fill(~right, -torch.inf), 1)
    return pick, chances.gather(1, pick[:, None]).squeeze(1)


class PickMerge(nn.Module):
    """A subset of what a node's halves handed up, picked item by item."""

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        encoder.pop("extra", None)
        self.encoder = SetEncoder(extra=HAND_FEATURES, **encoder)
        self.config = self.encoder.config
        self.picker = Picker(self.encoder)

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, None if below is None else below.sets)
        member = None if target is None else target.mask(level.roots)[handed.sets.index]
        look = handed.looked_at(level, self.encoder)
        picked, log_prob = self.picker(handed.sets, look, handed.seeds, member)
        answer = handed.kept(level, picked)
        return Chosen.by_steps(level, below, answer, log_prob, target)


class PickSplit(nn.Module):
    """A cut whose second side is picked item by item, for loads and conflicts."""

    general = True
    """Networks with this split are trained by `general_loss` unless told otherwise."""

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        encoder.pop("extra", None)
        self.encoder = SetEncoder(**encoder)
        self.config = {
            name: value for name, value in self.encoder.config.items() if name != "extra"
        }
        self.picker = Picker(self.encoder)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        look = Look(sets, self.encoder(sets, seeds), 1)
        return Cut(*self.picker(sets, look, seeds))

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)`, where there are `times` seeds per set."""
        times = len(seeds) // len(sets)
        look = Look(sets, self.encoder(sets, seeds[::times].contiguous()), times)
        return Cut(*self.picker(sets.repeat(times), look, seeds))
