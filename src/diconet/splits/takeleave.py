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
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.greedy import PASSED, ROOM, TO_COME, VALUE, WEIGHT, by_ratio
from diconet.noise import mix, uniform
from diconet.segments import segment_sum
from diconet.sets import SetBatch
from diconet.splits.core_kernels import LOOKAHEAD, NUM_INPUTS, breaks, upcoming
from diconet.tree import Cut


@dataclass(frozen=True, eq=False)
class Walk:
    """Ways through the items of knapsacks, which are sorted by value per weight.

    A way has decided on the items from `first` to before `position`, will decide on those before
    `stops`, and has `room` left; its row of `taken` says what it took, counted from `first`. All
    items ahead of `first` that belong to it are in the knapsack. Several ways may share items.
    """

    values: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    first: np.ndarray
    stops: np.ndarray
    ends: np.ndarray
    position: np.ndarray
    room: np.ndarray
    taken: np.ndarray

    def __len__(self) -> int:
        return len(self.room)

    def take(self, which: np.ndarray) -> Walk:
        """Some of the ways, each as a copy of its own (one may be chosen more than once)."""
        names = ("starts", "first", "stops", "ends", "position", "room", "taken")
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def look(self, active: np.ndarray) -> tuple[np.ndarray, Float[Tensor, "active inputs"]]:
        """The ways of `active` that have an item to decide on, and what each of them looks at."""
        active = active.copy()
        inputs = np.empty((len(active), NUM_INPUTS), dtype=np.float32)
        sorted_items = self.values, self.weights
        state = self.ends, self.stops, self.room, self.position
        count = upcoming(*sorted_items, *state, active, inputs)
        return active[:count], torch.from_numpy(inputs[:count])

    def decide(self, active: np.ndarray, take: np.ndarray) -> None:
        """Takes or leaves the item that each active way stands at, and steps on."""
        places = self.position[active]
        self.taken[active, places - self.first[active]] = take
        self.room[active] -= np.where(take, self.weights[places], 0.0)
        self.position[active] += 1


class TakeLeave(nn.Module):
    """A network that takes or leaves the items of the core one after the other.

    The core begins `before` items ahead of the break item and is at most `core` items long. A cut
    makes up to `decisions` decisions: what was taken is the closed first side, the items left are
    the second. Its context is the room left, how many of its items (the best by ratio) were passed
    over, and how many of the core are still to come.
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
        self.trust = nn.Parameter(torch.tensor(5.0))

    def logits(self, inputs: Float[Tensor, "decisions inputs"]) -> Float[Tensor, "decisions"]:
        """How strongly each decision leans to taking.

        Untrained, it goes by which of the two leads to the better greedy completion.
        """
        return self.trust * inputs[:, LOOKAHEAD] + self.head(self.body(inputs)).squeeze(1)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        order = by_ratio(sets)
        walk = self.start(sets, order)
        log_prob, finished = self.run(walk, seeds)
        side = torch.empty(sets.num_items, dtype=torch.bool)
        side[order] = torch.from_numpy(~in_knapsack(walk, sets.num_items, self._at_root(sets)))
        took = sets.sum((~side).double())
        room, position, to_come = (
            torch.from_numpy(a).double()
            for a in (walk.room, walk.position - walk.starts, walk.stops - walk.position)
        )
        contexts = torch.zeros(len(sets), 2, 3, dtype=torch.float64)
        contexts[:, 0, ROOM] = sets.context[:, ROOM] - room
        contexts[:, 1] = torch.stack([room, position - took, to_come], 1)
        closed = torch.stack([torch.ones_like(finished), finished], 1)
        return Cut(side, log_prob, contexts=contexts, closed=closed)

    def start(self, sets: SetBatch, order: Int[Tensor, "items"]) -> Walk:
        """One way a set: at a root it begins at the core, below where the last cut left off."""
        items = sets.items[order].double().numpy()
        values, weights = items[:, VALUE].copy(), items[:, WEIGHT].copy()
        starts, ends = sets.offsets[:-1].numpy(), sets.offsets[1:].numpy()
        ends = ends - _count(sets, sets.items[:, VALUE] <= 0)  # they are last, and of no use
        room = sets.context[:, ROOM].double().numpy().copy()
        if self._at_root(sets):
            broken = breaks(weights, starts, ends, room)
            weightless = _count(sets, sets.items[:, WEIGHT] <= 0)
            first = np.minimum(np.maximum(broken - self.before, starts + weightless), broken)
            running = np.append(0.0, np.cumsum(weights))
            room -= running[first] - running[starts]
            to_come = np.full_like(first, self.core)
        else:
            first = starts + sets.context[:, PASSED].long().numpy()
            to_come = sets.context[:, TO_COME].long().numpy()
        stops = np.minimum(first + to_come, ends)
        taken = np.zeros((len(sets), self.core), dtype=np.bool_)
        return Walk(values, weights, starts, first, stops, ends, first.copy(), room, taken)

    def run(
        self, walk: Walk, seeds: Int[Tensor, "ways"] | None
    ) -> tuple[Float[Tensor, "ways"], Bool[Tensor, "ways"]]:
        """Makes the decisions; the log-probability of a way's, and whether it has no more."""
        seen, who, took, leaning = [], [], [], []
        active = np.arange(len(walk))
        for _ in range(self.decisions):
            active, inputs = walk.look(active)
            if len(active) == 0:
                break
            with torch.no_grad():
                logits = self.logits(inputs)
            if seeds is None:
                take = logits > 0
            else:
                places = torch.from_numpy(walk.position[active] - walk.starts[active])
                draws = uniform(mix(seeds[torch.from_numpy(active)], places))
                take = draws < torch.sigmoid(logits)
            walk.decide(active, take.numpy())
            seen.append(inputs)
            who.append(torch.from_numpy(active))
            took.append(take)
            leaning.append(logits)
        finished = torch.ones(len(walk), dtype=torch.bool)
        finished[torch.from_numpy(active)] = False
        if not seen:
            return self.head.weight.new_zeros(len(walk)), finished
        # With a gradient, all decisions once more in one pass: far faster than step by step.
        logits = self.logits(torch.cat(seen)) if torch.is_grad_enabled() else torch.cat(leaning)
        log_prob = F.logsigmoid(torch.where(torch.cat(took), logits, -logits))
        return segment_sum(log_prob, torch.cat(who), len(walk)), finished

    def _at_root(self, sets: SetBatch) -> bool:
        return sets.context.shape[1] == 1


def in_knapsack(walk: Walk, num_items: int, with_head: bool) -> np.ndarray:
    """Which of the sorted items are taken, by ways that share none; the head may count or not."""
    chosen = np.zeros(num_items, dtype=np.bool_)
    way, column = np.nonzero(walk.taken)
    chosen[walk.first[way] + column] = True
    if with_head:
        sizes = walk.first - walk.starts
        begins = np.repeat(walk.starts - np.cumsum(sizes) + sizes, sizes)
        chosen[begins + np.arange(len(begins))] = True
    return chosen


def _count(sets: SetBatch, mask: Tensor) -> np.ndarray:
    return sets.sum(mask.double()).long().numpy()
