"""The core of a knapsack in halves: a split with a budget, and an exact merge.

The relaxation (`prices`) says which items to take, and what flipping one would lose. The first
cut fixes the items that no better choice flips; the others, the *core*, are divided into
halves until a part is small. A part's answer is the list of its choices (`frontier_kernels`). The
merge joins two lists: one half may use the room that the other leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.model import Part
from diconet.core.noise import mix, uniform
from diconet.core.segments import index_of, inverse, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, Level
from diconet.problems.knapsack.frontier_kernels import best_pair, join

VALUE, WEIGHT, TAKEN, LOSS, KEPT, FLIPPED = range(6)
"""The columns of an item: value and weight; whether the first price's relaxation takes it, and what
flipping it loses there; what keeping it, and flipping it, loses at the second price."""

ROOM, CORE, BUDGET, BUDGET_2, MOST, COVERED = range(6)
"""The columns of a context: the room beside what is taken, half of it for each half; the maximum
size of the core; what a choice may lose at the first price and at the second; the maximum number of
pairs per node. Below the root also whether the core has all that a better choice could flip."""

_ROOT_COLUMNS = COVERED

CORE_GROWTH = Growth(depth=12, leaf_size=8)
"""Leaves of the core have at most eight items: 256 choices."""

LARGEST_LEAF = 62
"""A choice in a leaf is an integer with one bit per item."""

Deal = Literal["even", "random"]


class CoreSplit(Part):
    """Fixes what is certain, then divides the core into halves.

    The core consists of the items with the smallest losses when flipped, which are dealt out in
    that order, one to each side in turn, so that both halves have as much to choose from. With a
    `network`, they are dealt out by its score; with `choose`, it also selects the core. With `deal`
    "random", each item goes to a random side.
    """

    def __init__(
        self, network: nn.Module | None = None, deal: Deal = "even", choose: bool = False
    ) -> None:
        super().__init__()
        if deal not in ("even", "random"):
            raise ValueError(f"deal must be even or random; got {deal!r}.")
        self.network = network
        self.deal = deal
        self.choose = choose

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        if seeds is None:
            seeds = torch.zeros_like(sets.sizes)
        if sets.context.shape[1] == _ROOT_COLUMNS:
            return self._set_aside(sets, seeds)
        if self.deal == "random":
            side = uniform(mix(seeds[sets.owner], sets.position)) < 0.5
        else:
            side = self._rank(sets, seeds, self.network) % 2 == 1
        half = sets.context.clone()
        half[:, ROOM] /= 2
        return Cut(
            side,
            torch.zeros_like(sets.sizes, dtype=torch.float32),
            contexts=torch.stack([half, half], 1),
        )

    def _rank(
        self, sets: SetBatch, seeds: Int[Tensor, "sets"], network: nn.Module | None
    ) -> Int[Tensor, "items"]:
        """Each item's rank in its set by how likely it is to be flipped, with random ties."""
        by_chance = segment_sort(uniform(mix(seeds[sets.owner], sets.position)), sets.owner)
        key = sets.items[:, LOSS] if network is None else -network(sets).double()
        order = by_chance[segment_sort(key[by_chance], sets.owner)]
        return sets.position[inverse(order)]

    def _set_aside(self, sets: SetBatch, seeds: Int[Tensor, "sets"]) -> Cut:
        """The first cut: fixed items, and the core."""
        loss, context = sets.items[:, LOSS], sets.context
        possible = open_items(sets)
        some = sets.select(index_of(possible), sets.sum(possible.double()).long())
        core = possible.clone()
        rank = self._rank(some, seeds, self.network if self.choose else None)
        core[possible] = rank < context[some.owner, CORE]
        left_out = possible & ~core
        least = torch.full_like(sets.sizes, torch.inf, dtype=torch.float64)
        least = least.scatter_reduce(0, sets.owner[left_out], loss[left_out], "amin")
        covered = torch.isinf(least)
        off = sets.sum(torch.where(core, 0.0, sets.items[:, KEPT]))
        budget_2 = context[:, BUDGET_2] - off
        # Items fixed without need must not use up the second budget.
        loose = ~covered & (off > 0.5 * context[:, BUDGET_2])
        child = torch.cat([context, covered.double()[:, None]], 1)
        child[:, BUDGET] = torch.minimum(context[:, BUDGET], least)
        child[:, BUDGET_2] = torch.where(loose, torch.inf, budget_2)
        contexts = torch.stack([child, child], 1)
        contexts[:, 0, CORE] = 0
        closed = torch.tensor([True, False], device=core.device).expand(len(sets), 2)
        return Cut(
            core,
            torch.zeros_like(sets.sizes, dtype=torch.float32),
            contexts=contexts,
            closed=closed,
        )


def open_items(sets: SetBatch) -> Bool[Tensor, "items"]:
    """The items that a choice within both budgets may flip."""
    items, context = sets.items, sets.context[sets.owner]
    wrong = torch.maximum(items[:, KEPT], items[:, FLIPPED])
    return (items[:, LOSS] <= context[:, BUDGET]) & (wrong <= context[:, BUDGET_2])


class Choices(NamedTuple):
    """The choices of a node by ascending weight and value: changes, and losses at both prices.

    `left` and `right` are the indices of a choice's two parts in the lists of the node's halves; at
    a leaf, bit i of `left` says whether item i is flipped.
    """

    weight: np.ndarray
    value: np.ndarray
    loss: np.ndarray
    loss_2: np.ndarray
    left: np.ndarray
    right: np.ndarray


_NOTHING, _NO_LOSS = np.zeros(1, dtype=np.int64), np.zeros(1)
_AS_IT_IS = Choices(_NOTHING, _NOTHING, _NO_LOSS, _NO_LOSS, _NOTHING, _NOTHING)


@dataclass(frozen=True, eq=False)
class Frontiers:
    """The lists of all nodes of a level, and those below."""

    level: Level
    below: Frontiers | None
    lists: list[Choices]
    whole: np.ndarray
    log_prob: None = None

    def flips(self, places: list[int]) -> list[int]:
        """The items of the roots that are flipped, given the choice of every node (-1: none)."""
        rows: list[int] = []
        answer: Frontiers | None = self
        while answer is not None and max(places) >= 0:
            level = answer.level
            index, starts = to_host(level.sets.index), to_host(level.sets.offsets)
            below = [-1] * (2 * len(level.inner))
            half = {node: 2 * i for i, node in enumerate(level.inner.tolist())}
            for node, place in enumerate(places):
                choices = answer.lists[node]
                if place < 0:
                    continue
                if node in half:
                    below[half[node]] = int(choices.left[place])
                    below[half[node] + 1] = int(choices.right[place])
                else:
                    bits = int(choices.left[place])
                    ones = [i for i in range(bits.bit_length()) if bits >> i & 1]
                    rows += [int(index[starts[node] + one]) for one in ones]
            places, answer = below, answer.below
        return rows


@dataclass(frozen=True, eq=False)
class Repaired:
    """The best choice of every root: what to flip, and whether it is optimal within the budget."""

    roots: SetBatch
    flipped: Bool[Tensor, "items"]
    found: Bool[Tensor, "sets"]
    whole: Bool[Tensor, "sets"]
    covered: Bool[Tensor, "sets"]
    budget: Float[Tensor, "sets"]
    log_prob: None = None

    @property
    def chosen(self) -> Bool[Tensor, "items"]:
        """The items taken."""
        return (self.roots.items[:, TAKEN] > 0) ^ self.flipped

    @property
    def solution(self) -> Sequences:
        """The choice as positions within each set, in the order of the items."""
        return Sequences.where(self.roots, self.chosen)


class FrontierMerge(Part):
    """Joins the lists of two halves; of the whole core, only the best pair that fits matters."""

    def forward(self, level: Level, below: Frontiers | None, target: None) -> Frontiers | Repaired:
        answer = _lists_of(level, below)
        return _repaired(answer) if level.number == 0 else answer


def _lists_of(level: Level, below: Frontiers | None) -> Frontiers:
    """The lists of a level's nodes; of the core and the root, only the best choice that fits."""
    context, starts = to_host(level.sets.context), level.sets.offsets.tolist()
    items = to_host(level.sets.items)
    half = {node: 2 * i for i, node in enumerate(level.inner.tolist())}
    whole = np.ones(len(context), dtype=bool)
    lists: list[Choices] = []
    for node, numbers in enumerate(context):
        budget, budget_2, room = numbers[[BUDGET, BUDGET_2, ROOM]].tolist()
        limits = budget, budget_2, int(numbers[MOST]), room
        if node in half:
            assert below is not None
            one, other = half[node], half[node] + 1
            pair = below.lists[one], below.lists[other]
            choices, complete = _joined(*pair, limits) if level.number > 1 else _best(*pair, room)
            complete = complete and below.whole[one] and below.whole[other]
        elif numbers[CORE] == 0:
            choices, complete = _AS_IT_IS, True
        else:
            choices, complete = _leaf(_flips(items[starts[node] : starts[node + 1]]), limits)
        lists.append(choices)
        whole[node] = complete
    return Frontiers(level, below, lists, whole)


def _flips(items: np.ndarray) -> list[Choices]:
    """For every item a list of two choices: to keep it, and to flip it."""
    sign = np.where(items[:, TAKEN] > 0, -1, 1)
    added = [sign * items[:, column].astype(np.int64) for column in (WEIGHT, VALUE)]
    nothing, same, bit = np.zeros_like(sign), np.zeros(len(items)), np.array([0, 1])
    weight, value = (np.stack([nothing, one], 1) for one in added)
    loss = np.stack([same, items[:, LOSS]], 1)
    loss_2 = np.stack([items[:, KEPT], items[:, FLIPPED]], 1)
    return [Choices(*one, bit, _NOTHING) for one in zip(weight, value, loss, loss_2, strict=True)]


def _joined(
    one: Choices, other: Choices, limits: tuple[float, float, int, float]
) -> tuple[Choices, bool]:
    *columns, whole = join(*one[:4], *other[:4], *limits)
    return Choices(*columns), whole


def _best(one: Choices, other: Choices, room: float) -> tuple[Choices, bool]:
    """The most valuable pair that fits, if there is one, as a list."""
    value, left, right = best_pair(*one[:2], *other[:2], int(room))
    if left < 0:
        return Choices(*(column[:0] for column in _AS_IT_IS)), True
    columns = one.weight[left] + other.weight[right], value, 0.0, 0.0, left, right
    return Choices(*(np.array([column]) for column in columns)), True


def _leaf(flips: list[Choices], limits: tuple[float, float, int, float]) -> tuple[Choices, bool]:
    """The list of a leaf, built item by item, and whether nothing was thinned out."""
    if len(flips) > LARGEST_LEAF:
        raise ValueError(f"a leaf must have at most {LARGEST_LEAF} items; got {len(flips)}.")
    choices, whole = _AS_IT_IS, True
    for item, flip in enumerate(flips):
        longer, complete = _joined(choices, flip, limits)
        bits = choices.left[longer.left] | (longer.right << item)
        choices, whole = longer._replace(left=bits), whole and complete
    return choices, whole


def _repaired(root: Frontiers) -> Repaired:
    """The best choice of every root."""
    roots, inner = root.level.roots, root.level.inner
    found = [
        _best(choices, _AS_IT_IS, room)[0].left.tolist()
        for choices, room in zip(root.lists, roots.context[:, ROOM].tolist(), strict=True)
    ]
    covered, budget = torch.ones_like(roots.sizes, dtype=torch.bool), roots.context[:, BUDGET]
    if root.below is not None:
        core = root.below.level.sets.context[1::2]
        covered[inner] = core[:, COVERED] > 0
        budget = budget.index_copy(0, inner, core[:, BUDGET])
    flipped = torch.zeros_like(roots.index, dtype=torch.bool)
    rows = root.flips([place for one in found for place in one or [-1]])
    flipped[torch.tensor(rows, dtype=torch.long, device=flipped.device)] = True
    fits = from_host(np.array([bool(one) for one in found]), flipped)
    return Repaired(roots, flipped, fits, from_host(root.whole, flipped), covered, budget)
