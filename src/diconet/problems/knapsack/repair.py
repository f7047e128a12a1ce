"""A knapsack's halves, and what is exchanged across them: a split with a budget, an exact merge.

The relaxation (`prices`) says which items to take, and what it would lose to flip one. The first
cut sets aside the items that no better choice flips; the others, the *core*, are dealt out into
halves until a part is small. A part's answer is the list of its choices (`frontier_kernels`). The
merge joins two lists: what one half leaves over, the other may use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.answers import Sequences
from diconet.core.host import from_host, to_host
from diconet.core.noise import mix, uniform
from diconet.core.segments import index_of, inverse, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, Level
from diconet.problems.knapsack.frontier_kernels import (
    DEFERRED,
    FIXED,
    JOINED,
    LEAF,
    best_pair,
    level_lists,
)

VALUE, WEIGHT, TAKEN, LOSS, KEPT, FLIPPED = range(6)
"""The columns of an item: value and weight; whether the first price's relaxation takes it, and what
flipping it loses there; what keeping it as it is, and flipping it, loses at the second price."""

ROOM, CORE, BUDGET, BUDGET_2, MOST, COVERED = range(6)
"""The columns of a context: the room beside what is taken, half of it for each half; how many items
the core may have; what a choice may lose at the first price and at the second; how many pairs a
node may look at. Below the root also whether the core has all that a better choice could flip."""

_ROOT_COLUMNS = COVERED

_LEFT, _RIGHT = 4, 5
"""Where lists hold the places of a choice's two parts."""

CORE_GROWTH = Growth(depth=12, leaf_size=8)
"""Leaves of the core have at most eight items: 256 choices."""

LARGEST_LEAF = 62
"""A choice of a leaf is a number with one bit per item."""

Deal = Literal["even", "random"]


class CoreSplit(nn.Module):
    """Sets aside what is certain, then deals out the core in halves.

    The core is made of the items that lose least when flipped, which are dealt out in that order,
    one to each side in turn, so both halves have as much to choose from. With a `network`, they are
    dealt out by its score; if it is to `choose`, so is the core. With `deal` "random", each item
    goes to a random side.
    """

    def __init__(
        self, network: nn.Module | None = None, deal: Deal = "even", choose: bool = False
    ) -> None:
        super().__init__()
        if deal not in ("even", "random"):
            raise ValueError(f"deal must be even or random; got {deal!r}.")
        self.config = {"network": network, "deal": deal, "choose": choose}
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
        """Each item's place in its set by how likely it is to be flipped; ties fall by chance."""
        by_chance = segment_sort(uniform(mix(seeds[sets.owner], sets.position)), sets.owner)
        key = sets.items[:, LOSS] if network is None else -network(sets).double()
        order = by_chance[segment_sort(key[by_chance], sets.owner)]
        return sets.position[inverse(order)]

    def _set_aside(self, sets: SetBatch, seeds: Int[Tensor, "sets"]) -> Cut:
        """The first cut: items that stay as they are, and the core."""
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
        # What was set aside without need must not use up the second budget.
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


@dataclass(frozen=True, eq=False)
class Frontiers:
    """The lists of all nodes of a level, and those below that they were made from."""

    level: Level
    below: Frontiers | None
    lists: tuple[np.ndarray, ...]
    offsets: np.ndarray
    whole: np.ndarray
    log_prob: None = None

    def flips(self, choice: np.ndarray) -> Bool[Tensor, "items"]:
        """The items of the roots that are flipped, given a choice of every node (-1: none)."""
        flipped = torch.zeros_like(self.level.roots.index, dtype=torch.bool)
        answer: Frontiers | None = self
        while answer is not None and (choice >= 0).any():
            here = np.where(choice >= 0, answer.offsets[:-1] + choice, -1)
            leaves = index_of(answer.level.is_leaf & from_host(here >= 0, flipped))
            sets = answer.level.sets.take(leaves)
            bits = from_host(answer.lists[_LEFT][here[to_host(leaves)]], flipped)[sets.owner]
            flipped[sets.index[(bits >> sets.position.clamp(max=62)) & 1 == 1]] = True
            pair = here[to_host(answer.level.inner)]
            children = [
                np.where(pair >= 0, answer.lists[part][pair], -1) for part in (_LEFT, _RIGHT)
            ]
            choice = np.stack(children, 1).flatten()
            answer = answer.below
        return flipped


@dataclass(frozen=True, eq=False)
class Repaired:
    """The best choice of every root: what to flip, and whether it is the best within the budget."""

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
        """The choice as places within each set, in the order of the items."""
        chosen = self.chosen
        sizes = self.roots.sum(chosen.double()).long()
        return Sequences(self.roots.position[index_of(chosen)], sizes)


class FrontierMerge(nn.Module):
    """Joins the lists of two halves; at the root, finds the best pair that fits.

    The two halves of the core are never joined into one list: of their pairs only the best counts,
    and one walk along both finds it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, object] = {}

    def forward(self, level: Level, below: Frontiers | None, target: None) -> Frontiers | Repaired:
        answer = _lists_of(level, below)
        return _best(answer) if level.number == 0 else answer


def _lists_of(level: Level, below: Frontiers | None) -> Frontiers:
    """The lists of a level's nodes; those of the root and of the core are left out if cut."""
    sets = level.sets
    items, context = to_host(sets.items), to_host(sets.context)
    kind = np.full(len(sets), DEFERRED if level.number <= 1 else JOINED)
    kind[to_host(level.is_leaf)] = LEAF
    kind[(kind == LEAF) & (context[:, CORE] == 0)] = FIXED
    largest = int(to_host(sets.sizes)[kind == LEAF].max(initial=0))
    if largest > LARGEST_LEAF:
        raise ValueError(f"a leaf must have at most {LARGEST_LEAF} items; got {largest}.")
    child = np.zeros(len(sets), dtype=np.int64)
    child[to_host(level.inner)] = 2 * np.arange(len(level.inner))
    sign = np.where(items[:, TAKEN] > 0, -1, 1)
    flips = [sign * items[:, column].astype(np.int64) for column in (WEIGHT, VALUE)]
    losses = [np.ascontiguousarray(items[:, column]) for column in (LOSS, KEPT, FLIPPED)]
    budgets = [np.ascontiguousarray(context[:, column]) for column in (BUDGET, BUDGET_2)]
    lists, offsets, whole = level_lists(
        (*flips, *losses),
        to_host(sets.offsets),
        kind,
        child,
        (*budgets, context[:, MOST].astype(np.int64), np.ascontiguousarray(context[:, ROOM])),
        _NO_LISTS if below is None else below.lists,
        np.zeros(1, dtype=np.int64) if below is None else below.offsets,
    )
    if below is not None:
        whole[to_host(level.inner)] &= below.whole.reshape(-1, 2).all(1)
    return Frontiers(level, below, lists, offsets, whole)


_NONE, _NO_LOSS = np.zeros(0, dtype=np.int64), np.zeros(0)
_NO_LISTS = (_NONE, _NONE, _NO_LOSS, _NO_LOSS, _NONE, _NONE)


def _best(root: Frontiers) -> Repaired:
    """The best choice of every root: in its own list, its core's, or across the core's halves."""
    parts, roots = _chain(root), root.level.roots
    choices = [np.full(len(part.level.sets), -1) for part in parts]
    found, covered = np.zeros(len(roots), dtype=bool), np.ones(len(roots), dtype=bool)
    budget = roots.context[:, BUDGET].clone()
    core = {e: 2 * i + 1 for i, e in enumerate(root.level.inner.tolist())}
    halves = {}
    if len(parts) > 1:
        halves = {node: 2 * i for i, node in enumerate(parts[1].level.inner.tolist())}
        contexts = parts[1].level.sets.context[1::2]
        covered[to_host(root.level.inner)] = to_host(contexts[:, COVERED] > 0)
        budget[root.level.inner] = contexts[:, BUDGET]
    for example, room in enumerate(roots.context[:, ROOM].long().tolist()):
        depth, node = (1, core[example]) if example in core else (0, example)
        if node in halves and depth == 1:
            first = halves[node]
            a, b = (_list(parts[2], half) for half in (first, first + 1))
            _, *places = best_pair(*a, *b, room)
            choices[2][first : first + 2] = places
        else:
            _, *places = best_pair(*_list(parts[depth], node), *_NOTHING_FLIPPED, room)
            choices[depth][node] = places[0]
        found[example] = places[0] >= 0
    flipped = torch.zeros_like(roots.index, dtype=torch.bool)
    for part, choice in zip(parts, choices, strict=True):
        flipped |= part.flips(choice)
    best, whole, all_covered = (from_host(each, flipped) for each in (found, root.whole, covered))
    return Repaired(roots, flipped, best, whole, all_covered, budget)


def _chain(root: Frontiers) -> list[Frontiers]:
    """The root's, the core's and its halves' lists, as far as they go."""
    parts = [root]
    while len(parts) < 3 and parts[-1].below is not None:
        parts.append(parts[-1].below)
    return parts


_NOTHING_FLIPPED = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))


def _list(parts: Frontiers, node: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and values of a node's list."""
    here = slice(parts.offsets[node], parts.offsets[node + 1])
    return parts.lists[0][here], parts.lists[1][here]
