"""A user's knapsack: as given, and exactly, as whole multiples of a common unit.

Every float64, fraction or decimal is a ratio of integers, so a list of them has a unit in which all
are whole. Whether items fit is then a question about integers, free of rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.problems.inputs import as_array

ITEM_BITS, SUM_BITS = 53, 61
"""Bits up to which whole numbers are exact in float64, and up to which sums are safe in int64."""

_MARGIN = 1e-12
"""The largest relative rounding error of a bound."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """Values, weights and capacity of the useful items in int64.

    If numbers are too long, values are rounded up by some bits and `exact` is false; weights and
    capacity are rounded so that whatever fits here really fits, or that whatever really fits fits
    here.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: int
    value_bits: int
    exact: bool


@dataclass(frozen=True, eq=False)
class Instance:
    """A knapsack; `useful` are the items of some value and weight that fit on their own.

    Items of some value and no weight are `free`: they are always taken.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: float
    whole_values: list[int]
    value_unit: Fraction
    whole_weights: list[int]
    whole_capacity: int
    useful: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, values: Any, weights: Any, capacity: Any) -> Instance:
        """An instance from a user's input, checked."""
        value, weight = as_array(values, "values"), as_array(weights, "weights")
        limit = as_array(capacity, "capacity")
        for array, name in ((value, "values"), (weight, "weights")):
            if array.ndim != 1:
                raise ValueError(f"{name} must have shape (n,); got {array.shape}.")
        if len(weight) != len(value):
            raise ValueError(f"weights must be as many as values, {len(value)}; got {len(weight)}.")
        if limit.size != 1 or not limit.reshape(()) >= 0:
            got = " ".join(repr(capacity).split())
            raise ValueError(f"capacity must be one number of at least 0; got {got}.")
        if bool((weight < 0).any()):
            place = int(np.flatnonzero(weight < 0)[0])
            raise ValueError(f"weights must be at least 0; got {weight[place]} at {place}.")
        (*whole, room), _ = whole_numbers([*_exact(weights), *_exact(capacity)])
        worth, unit = whole_numbers(_exact(values))
        fits = np.fromiter((0 < w <= room for w in whole), dtype=bool, count=len(whole))
        weightless = np.fromiter((w == 0 for w in whole), dtype=bool, count=len(whole))
        useful, free = np.flatnonzero(fits & (value > 0)), np.flatnonzero(weightless & (value > 0))
        _check_sum(value[useful])
        return cls(value, weight, float(limit.reshape(())), worth, unit, whole, room, useful, free)

    def rounded(self, *, safe: bool, sum_bits: int = SUM_BITS) -> Rounded:
        """The useful items in int64; `safe` means that whatever fits there must really fit."""
        items = self.useful.tolist()
        values = [self.whole_values[i] for i in items]
        weights = [self.whole_weights[i] for i in items]
        value_bits, bits = spare_bits(values, sum_bits), spare_bits(weights, sum_bits)
        capacity = min(self.whole_capacity, sum(weights))
        room = capacity >> bits if safe else -(-capacity >> bits)
        coarse = without(weights, bits, up=safe)
        # A weight that rounds to zero becomes 1, and the room grows with it: no choice is lost.
        nothing = coarse == 0
        return Rounded(
            without(values, value_bits, up=True),
            np.where(nothing, 1, coarse),
            room + int(nothing.sum()),
            value_bits,
            value_bits == 0 and bits == 0,
        )

    def room_beside(self, chosen: np.ndarray) -> int:
        """The true room that a choice of useful items leaves, in units; negative if too heavy."""
        items = self.useful[chosen].tolist()
        return self.whole_capacity - sum(self.whole_weights[i] for i in items)

    def topped_up(self, chosen: np.ndarray) -> np.ndarray:
        """The choice, and what still fits in addition if weights had been rounded up."""
        chosen = chosen.copy()
        room = self.room_beside(chosen)
        for i in np.argsort(-self.values[self.useful], kind="stable").tolist():
            weight = self.whole_weights[self.useful[i]]
            if not chosen[i] and weight <= room:
                room -= weight
                chosen[i] = True
        return chosen

    def total(self, items: np.ndarray) -> float:
        """The value of some items, rounded once."""
        return math.fsum(self.values[items].tolist())

    def bound(self, rounded: Rounded, limit: int, chosen: np.ndarray) -> float:
        """An upper bound on the value of any choice, given a bound on the rounded values.

        It is the value of the chosen items itself if that is proven optimal.
        """
        value = self.total(np.append(self.useful[chosen], self.free))
        if rounded.exact and int(rounded.values[chosen].sum()) >= limit:
            return value
        most = float((limit << rounded.value_bits) * self.value_unit)
        return max((most + self.total(self.free)) * (1 + _MARGIN), value)


def _exact(given: Any) -> list[Any]:
    """The numbers as Python objects, exactly as given."""
    if isinstance(given, torch.Tensor):
        given = to_host(given)
    array = np.asarray(given).ravel()
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8 and not (abs(array) >= 2**53).any():
        return array.tolist()
    if array.dtype.kind in "biu":
        return array.astype(object).tolist()
    # What float64 would not hold: integers mixed with floats, fractions, decimals.
    return [float(x) if isinstance(x, str) else x for x in np.asarray(given, object).ravel()]


def whole_numbers(numbers: list[Any]) -> tuple[list[int], Fraction]:
    """The numbers as Python's integers, in units of the second result."""
    if all(isinstance(x, int) for x in numbers):
        return [int(x) for x in numbers], Fraction(1)
    ratios = [(int(x), 1) if isinstance(x, np.integer) else x.as_integer_ratio() for x in numbers]
    common = math.lcm(*{below for _, below in ratios})
    whole = [above * (common // below) for above, below in ratios]
    shared = math.gcd(*whole) or 1
    return [x // shared for x in whole], Fraction(shared, common)


def spare_bits(numbers: list[int], sum_bits: int) -> int:
    """How many bits to drop so that every number fits float64, and their sum `sum_bits` bits."""
    longest = max(numbers, default=0).bit_length()
    shift = max(longest - ITEM_BITS, sum(numbers).bit_length() - sum_bits, 0)
    return shift + int(shift > 0)  # rounding up may add one per number


def without(numbers: list[int], bits: int, *, up: bool) -> np.ndarray:
    """The numbers as int64 without their last bits, rounded up or down."""
    return np.array([-(-x >> bits) if up else x >> bits for x in numbers], dtype=np.int64)


def _check_sum(values: np.ndarray) -> None:
    """Rejects values whose sum, or a bound on it, might exceed float64."""
    with np.errstate(over="ignore"):
        most = values.sum() * (1 + 2 * _MARGIN)
    if not np.isfinite(most):
        largest = np.finfo(np.float64).max
        raise ValueError(f"values must add up to less than {largest:.3g}; got a larger sum.")
