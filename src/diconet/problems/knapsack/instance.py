"""One knapsack of a user's own: as given, and exactly, as whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diconet.problems.inputs import as_array
from diconet.problems.knapsack.whole import (
    SUM_BITS,
    common_unit,
    exact_total,
    spare_bits,
    whole_numbers,
    without,
)

_HAIR = 1e-12
"""What rounding may add to a bound, relative to it."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """Values, weights and capacity of the useful items in int64.

    Where numbers are too long, values are rounded up by some bits and `exact` is false; weights and
    capacity so that all that fits here fits in truth, or so that all that fits in truth fits here.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: int
    value_bits: int
    exact: bool


@dataclass(frozen=True, eq=False)
class Instance:
    """A knapsack; `useful` are the items of some value and weight that fit on their own.

    What weighs nothing and is worth something is `free`: it is always taken.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: float
    whole_values: list[int]
    value_unit: int
    whole_weights: list[int]
    whole_capacity: int
    useful: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, values: Any, weights: Any, capacity: Any) -> Instance:
        """Checks what a user gave."""
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
        fits = np.fromiter((0 < w <= room[0] for w in whole), dtype=bool, count=len(whole))
        useful = np.flatnonzero(fits & (value > 0))
        free = np.flatnonzero((weight == 0) & (value > 0))
        _check_sum(value[useful])
        worth, unit = whole_numbers(values, value)
        return cls(
            value, weight, float(limit.reshape(())), worth, unit, whole, room[0], useful, free
        )

    def rounded(self, *, safe: bool, sum_bits: int = SUM_BITS) -> Rounded:
        """The useful items in int64; `safe` says that what fits there must fit in truth."""
        items = self.useful.tolist()
        values = [self.whole_values[i] for i in items]
        weights = [self.whole_weights[i] for i in items]
        value_bits, bits = spare_bits(values, sum_bits), spare_bits(weights, sum_bits)
        capacity = min(self.whole_capacity, sum(weights))
        room = capacity >> bits if safe else -(-capacity >> bits)
        coarse = without(weights, bits, up=safe)
        # What rounds to nothing weighs 1, and the room grows with it: still no choice is lost.
        nothing = coarse == 0
        return Rounded(
            without(values, value_bits, up=True),
            np.where(nothing, 1, coarse),
            room + int(nothing.sum()),
            value_bits,
            value_bits == 0 and bits == 0,
        )

    def fits(self, chosen: np.ndarray) -> bool:
        """Whether a choice of useful items fits in truth."""
        return self._room_beside(chosen) >= 0

    def _room_beside(self, chosen: np.ndarray) -> int:
        items = self.useful[chosen].tolist()
        return self.whole_capacity - sum(self.whole_weights[i] for i in items)

    def topped_up(self, chosen: np.ndarray) -> np.ndarray:
        """The choice, and what fits beside it after all where weights had been rounded up."""
        chosen = chosen.copy()
        room = self._room_beside(chosen)
        for i in np.argsort(-self.values[self.useful], kind="stable").tolist():
            weight = self.whole_weights[self.useful[i]]
            if not chosen[i] and weight <= room:
                room -= weight
                chosen[i] = True
        return chosen

    def total(self, items: np.ndarray) -> float:
        """The value of some items, rounded once."""
        return exact_total(self.values[items])

    def bound(self, rounded: Rounded, limit: int, chosen: np.ndarray) -> float:
        """What no choice can be worth more than, given a bound on the rounded values.

        It is the value of the chosen items itself if that is proven the best.
        """
        value = self.total(np.append(self.useful[chosen], self.free))
        if rounded.exact and int(rounded.values[chosen].sum()) >= limit:
            return value
        most = float(np.ldexp(float(limit), self.value_unit + rounded.value_bits))
        return max((most + self.total(self.free)) * (1 + _HAIR), value)


def _check_sum(values: np.ndarray) -> None:
    """Refuses values whose sum, or a bound on it, float64 might not hold."""
    with np.errstate(over="ignore"):
        most = values.sum() * (1 + 2 * _HAIR)
    if not np.isfinite(most):
        largest = np.finfo(np.float64).max
        raise ValueError(f"values must add up to less than {largest:.3g}; got a larger sum.")
