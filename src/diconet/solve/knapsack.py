"""Knapsacks of a user's own: what to take, never over capacity, and how good it is for certain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diconet.greedy import by_ratio, greedy_fill
from diconet.merges.pack import PackMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.solve.inputs import as_array, check_count, check_seed, is_many
from diconet.solve.networks import as_device, as_network
from diconet.solve.solution import Partitions, Solution
from diconet.solve.whole import common_unit, exact_total, in_float64, whole_numbers
from diconet.splits.takeleave import TakeLeave
from diconet.splits.walk_search import LEFT, beam_of_walks, best_of_walks

DEFAULT_MODEL = "knapsack"
"""The shipped network that answers where none is asked for."""

_HAIR = 1e-12
_TINY = 1e-60
_DENSE_LIMIT = 5_000
_INSTANCES_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False, repr=False)
class Packing(Solution):
    """A choice of items: `chosen`, their indices in order, of total `weight` and `value`.

    `bound` is a value that no choice can exceed (fractional relaxation; rounded down where all
    values are whole), and `gap` how far at most, relative to the value, the answer is from the
    best. The tree's first cut takes what is surely in, its second what the network takes, its third
    what greedy adds in the room left.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: float
    chosen: np.ndarray
    weight: float
    bound: float

    @property
    def gap(self) -> float:
        """How much better, relative to this, the best choice could be; 0 if this is proven it."""
        if self.bound <= self.value:
            return 0.0
        return self.bound / self.value - 1 if self.value > 0 else math.inf

    def quality(self) -> str:
        """The number of items, and how near to the best choice they certainly are."""
        items = f"{len(self.chosen)} of {len(self.values)} items"
        if self.gap == 0:
            return f"{items}, proven optimal"
        return f"{items}, at most {100 * self.gap:.3g}% below the best"

    def record(self) -> dict[str, Any]:
        """Items, value, weight, capacity, what is proven of the value, and what was chosen."""
        return {
            "items": len(self.values),
            "value": self.value,
            "weight": self.weight,
            "capacity": self.capacity,
            "bound": self.bound,
            "gap": self.gap if math.isfinite(self.gap) else None,
            "chosen": self.chosen.tolist(),
        }


def knapsack(
    values: Any,
    weights: Any,
    capacity: Any,
    *,
    beam: int = 16,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Packing | list[Packing]:
    """The items to take so that they are worth most and weigh at most `capacity` together.

    Or the items of each of several knapsacks (lists of arrays, and one capacity or one each),
    solved as one batch. Sums are exact on the numbers given (as float64; integers in its range as
    they are), so the capacity is never exceeded, not even by rounding. `beam` is how many ways are
    kept in view; with a `seed`, that many are drawn at random instead.
    """
    many = is_many(values, dims=1)
    instances = (
        _read_many(values, weights, capacity) if many else [_Instance.of(values, weights, capacity)]
    )
    beam = check_count(beam, "beam", least=1)
    as_device(device)
    # Sorting and walking are done in NumPy; the network is too small to gain from anything else.
    parts = (TakeLeave, PackMerge)
    network = as_network(model, default=DEFAULT_MODEL, task="knapsacks", parts=parts)
    seed = check_seed(seed)
    packings: list[Packing] = []
    for first in range(0, len(instances), _INSTANCES_AT_ONCE):
        part = instances[first : first + _INSTANCES_AT_ONCE]
        packings += _solve(part, network, beam, seed, first)
    packings = [replace(packing, model=model) for packing in packings]
    return packings if many else packings[0]


@dataclass(frozen=True, eq=False)
class _Instance:
    """A knapsack: as given, exactly as whole numbers, and `open` to choice (the useful items)."""

    values: np.ndarray
    weights: np.ndarray
    capacity: float
    whole_weights: list[int]
    whole_capacity: int
    open: np.ndarray
    rounded: tuple[np.ndarray, float, bool]

    @classmethod
    def of(cls, values: Any, weights: Any, capacity: Any) -> _Instance:
        value, weight = as_array(values, "values"), as_array(weights, "weights")
        limit = as_array(capacity, "capacity")
        for array, name in ((value, "values"), (weight, "weights")):
            if array.ndim != 1:
                raise ValueError(f"{name} must have shape (n,); got {array.shape}.")
        if len(weight) != len(value):
            raise ValueError(f"weights must be as many as values, {len(value)}; got {len(weight)}.")
        if limit.size != 1 or not limit.reshape(()) >= 0:
            raise ValueError(f"capacity must be one number of at least 0; got {capacity!r}.")
        if bool((weight < 0).any()):
            place = int(np.flatnonzero(weight < 0)[0])
            raise ValueError(f"weights must be at least 0; got {weight[place]} at {place}.")
        whole, room = common_unit(whole_numbers(weights, weight), whole_numbers([capacity], limit))
        fits = np.fromiter((w <= room[0] for w in whole), dtype=bool, count=len(whole))
        useful = np.flatnonzero(fits & (value > 0))
        _check_sum(value[useful])
        rounded = in_float64([whole[i] for i in useful.tolist()], room[0])
        return cls(value, weight, float(limit.reshape(())), whole, room[0], useful, rounded)

    def items(self) -> np.ndarray:
        """The open items as the network takes them: relative values, whole weights."""
        value = self.values[self.open]
        relative = np.maximum(value / (value.max(initial=0.0) or 1.0), _TINY)
        return np.column_stack([relative, self.rounded[0]])

    def packing(self, stage: np.ndarray, left: int) -> Packing:
        """The answer, given at which cut each open item was taken (`left` if at none)."""
        at = np.full(len(self.values), left)
        at[self.open] = stage
        if not self.rounded[2]:
            self._top_up(at, left)
        chosen = np.flatnonzero(at < left)
        value = exact_total(self.values[chosen])
        weight = exact_total(self.weights[chosen])
        tree = Partitions(at[None] > np.arange(left)[:, None])
        bound = max(self._bound(), value)
        return Packing(value, tree, self.values, self.weights, self.capacity, chosen, weight, bound)

    def _top_up(self, at: np.ndarray, left: int) -> None:
        """Takes what fits after all where weights had been rounded up."""
        room = self.whole_capacity - sum(self.whole_weights[i] for i in np.flatnonzero(at < left))
        rest = self.open[at[self.open] == left]
        for i in rest[np.argsort(-self.values[rest], kind="stable")].tolist():
            if self.whole_weights[i] <= room:
                room -= self.whole_weights[i]
                at[i] = left - 1

    def _bound(self) -> float:
        """Dantzig's bound with a hair's breadth for rounding; whole values have a whole optimum."""
        value = self.values[self.open]
        relative = self.weights[self.open] / (self.capacity or 1.0)
        with np.errstate(divide="ignore", over="ignore"):
            order = np.argsort(-(value / relative), kind="stable")
        room = self.whole_capacity
        for count, i in enumerate(order.tolist()):
            weight = self.whole_weights[self.open[i]]
            if weight > room:
                whole = exact_total(value[order[:count]])
                bound = (whole + value[i] * (room / weight)) * (1 + _HAIR)
                integral = bound < 2.0**40 and bool((value % 1 == 0).all())
                return float(math.floor(bound)) if integral else bound
            room -= weight
        return exact_total(value)


def _check_sum(values: np.ndarray) -> None:
    """Refuses values whose sum, or a bound on it, float64 might not hold."""
    with np.errstate(over="ignore"):
        most = values.sum() * (1 + 2 * _HAIR)
    if not np.isfinite(most):
        largest = np.finfo(np.float64).max
        raise ValueError(f"values must add up to less than {largest:.3g}; got a larger sum.")


def _read_many(values: Any, weights: Any, capacity: Any) -> list[_Instance]:
    several = isinstance(capacity, Sequence | np.ndarray | torch.Tensor)
    capacities = list(capacity) if several and np.ndim(capacity) else [capacity] * len(values)
    for given, name in ((weights, "weights"), (capacities, "capacity")):
        if len(given) != len(values):
            raise ValueError(f"{name} must be one an instance, {len(values)}; got {len(given)}.")
    return [_Instance.of(*one) for one in zip(values, weights, capacities, strict=True)]


def _solve(
    instances: list[_Instance], network: DiCoNet, beam: int, seed: int | None, first: int
) -> list[Packing]:
    items = [torch.from_numpy(instance.items()) for instance in instances]
    context = torch.tensor([[instance.rounded[1]] for instance in instances], dtype=torch.float64)
    sets = SetBatch.of(items, context)
    if isinstance(network.split, TakeLeave):
        if seed is None:
            stage = beam_of_walks(network.split, sets, beam)
        else:
            seeds = seeds_from(torch.Generator().manual_seed(seed + first), len(sets) * beam)
            stage = best_of_walks(network.split, sets, seeds.reshape(len(sets), beam))
        parts = stage.split(sets.sizes.tolist())
        return [
            instance.packing(part.numpy(), LEFT)
            for instance, part in zip(instances, parts, strict=True)
        ]
    return _by_tree(instances, sets, network, seed)


def _by_tree(
    instances: list[_Instance], sets: SetBatch, network: DiCoNet, seed: int | None
) -> list[Packing]:
    """The answers of any other network, such as the paper's: its tree, then greedy on top."""
    if int(sets.sizes.max()) > _DENSE_LIMIT:
        raise ValueError(
            f"values must be at most {_DENSE_LIMIT} for this model, whose cost grows with the"
            f" square; got {int(sets.sizes.max())}."
        )
    seeds = None
    if seed is not None:
        seeds = seeds_from(torch.Generator().manual_seed(seed), len(sets))
    with torch.inference_mode():
        outcome = network(sets, seeds)
    sides = outcome.tree.sides
    taken_at = sides.long().cumprod(0).sum(0)  # the first cut that puts an item on the first side
    chosen = torch.zeros(sets.num_items, dtype=torch.bool)
    chosen[outcome.solution.rows(sets)] = True
    filled = greedy_fill(sets, by_ratio(sets), chosen=chosen)
    left = len(sides) + 1
    stage = torch.where(chosen, taken_at, torch.where(filled, left - 1, left))
    return [
        instance.packing(part.numpy(), left)
        for instance, part in zip(instances, sets.unpack(stage), strict=True)
    ]
