"""Take or leave: a knapsack's items one by one in the order of value per weight, near the break.

The recursion of section 6.3 with one item a call: the network sees the items left and the room
left, takes or leaves the first that fits, and is called again on what remains. Only the *core* is
decided this way, the items around the one at which greedy runs out of room: what is far better than
that is taken, what is far worse is left to whatever room remains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.greedy import VALUE, WEIGHT, by_ratio
from diconet.noise import mix, uniform
from diconet.segments import segment_sum
from diconet.sets import SetBatch
from diconet.splits.core_kernels import LOOKAHEAD, NUM_INPUTS, breaks, upcoming
from diconet.tree import Cut


@dataclass(frozen=True, eq=False)
class Walk:
    """Knapsacks on their way through their items, which are sorted by value per weight.

    `values`, `weights` and `taken` have an entry an item, the others one a knapsack. Items before
    `position` are decided, those from `stops` on are not decided here.
    """

    values: np.ndarray
    weights: np.ndarray
    taken: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    stops: np.ndarray
    room: np.ndarray
    position: np.ndarray

    def look(self, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The knapsacks of `active` with an item to decide on, and what each of them looks at."""
        active = active.copy()
        inputs = np.empty((len(active), NUM_INPUTS), dtype=np.float32)
        count = upcoming(
            self.values,
            self.weights,
            self.ends,
            self.stops,
            self.room,
            self.position,
            active,
            inputs,
        )
        return active[:count], inputs[:count]

    def decide(self, active: np.ndarray, take: np.ndarray) -> None:
        """Takes or leaves the item that each active knapsack stands at, and steps on."""
        places = self.position[active]
        self.taken[places] = take
        self.room[active] -= np.where(take, self.weights[places], 0.0)
        self.position[active] += 1


class TakeLeave(nn.Module):
    """A network that takes or leaves the items of the core one after the other.

    The core begins `before` items ahead of the break item and is at most `core` items long. A cut
    makes up to `decisions` decisions: what was taken is the closed first side, the items left are
    the second. Its context is the room left, how many of its items were passed over, and how many
    of the core are still to come.
    """

    def __init__(
        self, width: int = 128, before: int = 14, core: int = 54, decisions: int = 64
    ) -> None:
        super().__init__()
        for name, number in (("before", before), ("core", core), ("decisions", decisions)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1; got {number}.")
        self.config = {"width": width, "before": before, "core": core, "decisions": decisions}
        self.before = before
        self.core = core
        self.decisions = decisions
        self.body = nn.Sequential(
            nn.Linear(NUM_INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.trust = nn.Parameter(torch.ones(()))

    def logits(self, inputs: Float[Tensor, "decisions inputs"]) -> Float[Tensor, "decisions"]:
        """How strongly each decision leans to taking.

        Untrained, it goes by which of the two leads to the better greedy completion.
        """
        return self.trust * inputs[:, LOOKAHEAD] + self.head(self.body(inputs)).squeeze(1)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        order = by_ratio(sets)
        walk = self.walk(sets, order)
        log_prob = self._run(walk, seeds)
        side = torch.empty(sets.num_items, dtype=torch.bool)
        side[order] = torch.from_numpy(~walk.taken)
        taken = sets.sum((~side).double())
        room, position, to_come = (
            torch.from_numpy(a).double()
            for a in (walk.room, walk.position - walk.starts, walk.stops - walk.position)
        )
        closed = torch.stack([torch.ones(len(sets), dtype=torch.bool), to_come <= 0], 1)
        contexts = torch.zeros(len(sets), 2, 3, dtype=torch.float64)
        contexts[:, 0, 0] = sets.context[:, 0] - room
        contexts[:, 1] = torch.stack([room, position - taken, to_come], 1)
        return Cut(side, log_prob, contexts=contexts, closed=closed)

    def walk(self, sets: SetBatch, order: Int[Tensor, "items"]) -> Walk:
        """The start: at the root everything ahead of the core is taken; below, it goes on."""
        items = sets.items[order].double()
        starts, ends = sets.offsets[:-1].numpy(), sets.offsets[1:].numpy()
        room = sets.context[:, 0].double().numpy().copy()
        gainful = starts + sets.sum((sets.items[:, VALUE] > 0).double()).long().numpy()
        walk = Walk(
            items[:, VALUE].numpy().copy(),
            items[:, WEIGHT].numpy().copy(),
            np.zeros(sets.num_items, dtype=np.bool_),
            starts,
            gainful,
            gainful,
            room,
            starts.copy(),
        )
        if sets.context.shape[1] > 1:
            walk.position[:] += sets.context[:, 1].long().numpy()
            to_come = sets.context[:, 2].long().numpy()
            return replace(walk, stops=np.minimum(walk.position + to_come, gainful))
        weightless = sets.sum((sets.items[:, WEIGHT] <= 0).double()).long().numpy()
        broken = breaks(walk.weights, starts, gainful, room)
        head = np.minimum(np.maximum(broken - self.before, starts + weightless), broken)
        walk.position[:] = head
        walk.taken[:] = np.arange(sets.num_items) < head[sets.owner.numpy()]
        running = np.append(0.0, np.cumsum(walk.weights))
        walk.room[:] -= running[head] - running[starts]
        return replace(walk, stops=np.minimum(head + self.core, gainful))

    def _run(self, walk: Walk, seeds: Int[Tensor, "sets"] | None) -> Float[Tensor, "sets"]:
        """Makes the decisions; the log-probability of all of them, each knapsack's together."""
        seen, who, took, leaning = [], [], [], []
        active = np.arange(len(walk.room))
        for _ in range(self.decisions):
            active, inputs = walk.look(active)
            if len(active) == 0:
                break
            seen.append(torch.from_numpy(inputs))
            with torch.no_grad():
                logits = self.logits(seen[-1])
            leaning.append(logits)
            if seeds is None:
                take = logits > 0
            else:
                which = torch.from_numpy(active)
                places = torch.from_numpy(walk.position[active] - walk.starts[active])
                take = uniform(mix(seeds[which], places)) < torch.sigmoid(logits)
            walk.decide(active, take.numpy())
            who.append(torch.from_numpy(active))
            took.append(take)
        if not seen:
            return self.head.weight.new_zeros(len(walk.room))
        # With a gradient, all decisions once more in one pass: far faster than step by step.
        logits = self.logits(torch.cat(seen)) if torch.is_grad_enabled() else torch.cat(leaning)
        log_prob = F.logsigmoid(torch.where(torch.cat(took), logits, -logits))
        return segment_sum(log_prob, torch.cat(who), len(walk.room))
