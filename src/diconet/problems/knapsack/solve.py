"""A user's knapsacks: what to take, never over capacity, with a bound on the best value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import torch

from diconet.core.host import one_thread, to_host
from diconet.core.model import DiCoNet
from diconet.core.noise import mix
from diconet.core.sets import SetBatch
from diconet.problems.inputs import Asked, ManyNumbers, Numbers, check_seed, is_many, tree_seeds
from diconet.problems.knapsack.answer import Packing
from diconet.problems.knapsack.greedy import ROOM, by_ratio, greedy_fill, used
from diconet.problems.knapsack.instance import ITEM_BITS, Instance, Rounded
from diconet.problems.knapsack.prices import Prices
from diconet.problems.knapsack.problem import PROBLEM
from diconet.problems.knapsack.repair import CoreSplit
from diconet.problems.knapsack.search import Hunt, run
from diconet.problems.networks import as_network
from diconet.problems.progress import tell
from diconet.problems.solution import Partitions, handed_back

__all__ = ["Packing", "knapsack"]

_DENSE_LIMIT = 5_000
"""The maximum number of items for a network of quadratic cost."""

_INSTANCES_AT_ONCE = 1_024

_KEPT, _FLIPPED, _LEFT = range(3)
"""Whether the relaxation took an item and the answer keeps it, the tree put it in, or neither."""


@overload
def knapsack(
    values: Numbers, weights: Numbers, capacity: float, **options: Unpack[Asked]
) -> Packing: ...
@overload
def knapsack(
    values: ManyNumbers,
    weights: ManyNumbers,
    capacity: float | Numbers,
    **options: Unpack[Asked],
) -> list[Packing]: ...
@one_thread()
def knapsack(
    values: Any,
    weights: Any,
    capacity: Any,
    *,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Packing | list[Packing]:
    """The most valuable items that weigh at most `capacity` together.

    Sums are exact for the numbers given, whether floats, integers of any size, fractions or
    decimals, so the capacity is never exceeded, not even by rounding.

    Args:
        values: The values of the items: n numbers; or a list of such, solved as one batch.
        weights: The weights of the items: as many numbers as values.
        capacity: The maximum total weight; for a list, one number or one each.
        model: The network: a shipped name, a weights file, a run folder or a `DiCoNet`; None for
            the default.
        seed: Decides how equal items are divided; most answers are proven optimal for any seed.
        device: Where to run the network, such as "cuda".

    Returns:
        The packing, or a list of packings for a list of knapsacks.

    >>> knapsack([10, 6, 8, 1], [4, 2, 4, 1], 7).chosen.tolist()
    [0, 1, 3]
    """
    many = is_many(values, dims=1)
    instances = (
        _read_many(values, weights, capacity) if many else [Instance.of(values, weights, capacity)]
    )
    # Lists are sorted and joined on the CPU: the network is too small to gain from a GPU.
    network = as_network(PROBLEM, model, device)
    seed = check_seed(seed)
    packings: list[Packing] = []
    for first in range(0, len(instances), _INSTANCES_AT_ONCE):
        tell(f"dividing and merging: {first} of {len(instances)} packed")
        part = instances[first : first + _INSTANCES_AT_ONCE]
        packings += _solve(part, network, seed, device)
    packings = [replace(packing, model=model) for packing in packings]
    return handed_back(packings, values, many)


def _read_many(values: Any, weights: Any, capacity: Any) -> list[Instance]:
    several = isinstance(capacity, Sequence | np.ndarray | torch.Tensor)
    capacities = list(capacity) if several and np.ndim(capacity) else [capacity] * len(values)
    for given, name in ((weights, "weights"), (capacities, "capacity")):
        if len(given) != len(values):
            raise ValueError(f"{name} must be one per instance, {len(values)}; got {len(given)}.")
    return [Instance.of(*one) for one in zip(values, weights, capacities, strict=True)]


def _solve(
    instances: list[Instance], network: DiCoNet, seed: int | None, device: str | torch.device
) -> list[Packing]:
    if not isinstance(network.split, CoreSplit):
        return _by_tree(instances, network, seed, device)
    seeds = mix(torch.full((len(instances),), seed or 0, device=device), 0)
    loose = [instance.rounded(safe=False) for instance in instances]
    bounds = _hunts(loose, network, seeds)
    # If numbers had to be rounded, the best choice may not fit: then solve again, rounding safely.
    over = [i for i, one in enumerate(instances) if one.room_beside(bounds[i].chosen) < 0]
    again = [instances[i].rounded(safe=True) for i in over]
    hunts = list(bounds)
    which = torch.tensor(over, dtype=torch.long, device=device)
    for i, hunt in zip(over, _hunts(again, network, seeds[which]), strict=True):
        hunts[i] = hunt
    packings = []
    for instance, rounded, bound, hunt in zip(instances, loose, bounds, hunts, strict=True):
        chosen = hunt.chosen if rounded.exact else instance.topped_up(hunt.chosen)
        kept = hunt.prices.at(0).taken & chosen
        how = np.where(kept, _KEPT, np.where(chosen, _FLIPPED, _LEFT))
        packings.append(_packing(instance, rounded, how, _LEFT, bound.prices.bound))
    return packings


def _hunts(several: list[Rounded], network: DiCoNet, seeds: torch.Tensor) -> list[Hunt]:
    hunts = [Hunt.of(one.values, one.weights, one.capacity) for one in several]
    run(hunts, network, seeds)
    return hunts


def _packing(
    instance: Instance, rounded: Rounded, how: np.ndarray, left: int, limit: int
) -> Packing:
    """The answer, given a bound and the cut that took each useful item (`left` if none)."""
    at = np.full(len(instance.values), left)
    at[instance.useful] = how
    at[instance.free] = 0
    chosen = np.flatnonzero(at < left)
    tree = Partitions(at[None] > np.arange(left)[:, None])
    given = instance.values, instance.weights, instance.capacity
    weight = math.fsum(instance.weights[chosen].tolist())
    bound = instance.bound(rounded, limit, how < left)
    return Packing(instance.total(chosen), tree, *given, chosen, weight, bound)


def _by_tree(
    instances: list[Instance], network: DiCoNet, seed: int | None, device: str | torch.device
) -> list[Packing]:
    """The answers of any other network, such as the paper's: its tree, then greedy."""
    coarse = [one.rounded(safe=True, sum_bits=ITEM_BITS) for one in instances]
    sets = SetBatch.of(
        [torch.from_numpy(np.column_stack([c.values, c.weights]).astype(float)) for c in coarse],
        torch.tensor([[float(c.capacity)] for c in coarse], dtype=torch.float64, device="cpu"),
    ).to(device)
    if int(sets.sizes.max()) > _DENSE_LIMIT:
        raise ValueError(
            f"values must be at most {_DENSE_LIMIT} for this model, whose cost is"
            f" quadratic; got {int(sets.sizes.max())}."
        )
    with torch.inference_mode():
        outcome = network(sets, tree_seeds(seed, len(sets), device))
    sides = outcome.tree.sides
    taken_at = sides.long().cumprod(0).sum(0)  # the first cut that puts an item on the first side
    chosen = outcome.solution.mask(sets)
    fits = used(sets, chosen) <= sets.context[:, ROOM]  # false if a split took too much
    chosen = chosen & fits[sets.owner]
    filled = greedy_fill(sets, by_ratio(sets), chosen=chosen)
    left = len(sides) + 1
    stage = torch.where(chosen, taken_at, torch.where(filled, left - 1, left))
    packings = []
    for instance, part in zip(instances, sets.unpack(stage), strict=True):
        loose = instance.rounded(safe=False)
        fractional = Prices(loose.values, loose.weights, loose.capacity, 0)
        packings.append(_packing(instance, loose, to_host(part), left, fractional.bound))
    return packings
