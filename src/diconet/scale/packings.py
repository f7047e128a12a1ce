"""Knapsacks of any number of items: all but a core are decided by a rate, found in a few passes.

The *rate* is the value of a unit of room. The *loss* of an item, if flipped, is the difference
between its value and its weight times the rate. Items with large losses are decided; the core,
with the smallest losses, goes up the tree and is solved. If no answer that flips an item outside
the core can be better (its loss exceeds the remaining gap), the answer is proven optimal. All sums
are exact, so the order of chunks cannot change anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd

from diconet.core.model import DiCoNet
from diconet.problems.inputs import check_amount
from diconet.problems.knapsack.answer import BoundedChoice
from diconet.problems.knapsack.solve import knapsack as knapsack_in_memory
from diconet.scale.chunks import Chunks
from diconet.scale.work import added, by_block, gathered, in_order, leaves, reduced

CORE = 4_096
"""The largest number of items that go up the tree."""

_DIGIT, _TOP = 16, 2**63 - 1
_MARGIN = 2.0**-50
_SUM_BITS = 52


@dataclass(frozen=True, eq=False, repr=False)
class LargePacking(BoundedChoice):
    """A choice among `size` items: `taken` says for each item, in order, whether it is taken.

    `taken` is a Dask array, computed on demand, and `chosen` the indices of the items taken.
    `bound` is an upper bound on the value of any choice.
    """

    size: int
    taken: da.Array
    weight: float
    capacity: float
    bound: float
    core: int

    @property
    def chosen(self) -> da.Array:
        """The indices of the items taken, in order."""
        return da.flatnonzero(self.taken)

    def quality(self) -> str:
        """A bound on the distance to the best choice."""
        return f"{self.size} items, {self.proof()}"

    def record(self) -> dict[str, Any]:
        """Items, value, weight, capacity and what is proven, without the choice itself."""
        return {"items": self.size} | super().record()

    def rows(self) -> Iterator[Sequence[Any]]:
        """The chosen items, one chunk at a time."""
        yield ("index",)
        for start, taken in by_block(self.taken):
            yield from ((start + int(i),) for i in np.flatnonzero(taken))


def knapsack(
    values: Any,
    weights: Any = None,
    capacity: float | None = None,
    *,
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    columns: Sequence[str] | None = None,
) -> LargePacking:
    """The best choice of items from two Dask columns, or one table with columns value, weight.

    The table may be a Dask dataframe, an array of two columns or a pattern of files; then `weights`
    is None, and `columns` selects the columns, by name or number from 1, if they have other names.
    Numbers are read as float64.
    """
    table = values if weights is None else _beside(values, weights)
    chunks = Chunks.of(table, "items", ("value", "weight"), columns)
    limit = check_amount(capacity, "capacity")
    room = Fraction(limit)
    census: _Census = reduced(_census, gathered, chunks, "items", room)
    offsets = np.cumsum(census.sizes) - census.sizes
    end = _Break(-1) if census.weight <= room else _break(chunks, census, room, offsets)
    core: _Core = reduced(_Core.of, _Core.merge, chunks, "core", room, end, offsets)
    picked, bound = _solved(core, room, end.rate, model, seed)
    inside = _numbers(core.items)[picked]
    total = core.value + exact_sum(inside[:, 0])
    weight = core.weight + exact_sum(inside[:, 1])
    decided = core.items.index.to_numpy(), picked
    taken = leaves(_taken, chunks, "taken", room, end, offsets, decided)
    return LargePacking(
        float(total), (), int(census.sizes.sum()), in_order(taken, census.sizes, bool),
        float(weight), limit, max(bound, float(total)), len(picked),
        model=model,
    )  # fmt: skip


def _beside(values: Any, weights: Any) -> da.Array:
    """Two columns as one array."""
    both = [x.to_dask_array() if hasattr(x, "to_dask_array") else x for x in (values, weights)]
    if not all(isinstance(x, da.Array) and x.ndim == 1 for x in both):
        raise ValueError("values and weights must both be Dask columns, or weights None.")
    if len({x.numblocks for x in both}) > 1:
        both = [both[0], both[1].rechunk(both[0].chunks)]
    return da.stack(both, axis=1, allow_unknown_chunksizes=True)


def exact_sum(numbers: np.ndarray) -> Fraction:
    """The exact sum of doubles."""
    mantissa, exponent = np.frexp(numbers)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    total = Fraction(0)
    for power in np.unique(exponent).tolist():
        some = digits[exponent == power]
        whole = (int((some >> 26).sum()) << 26) + int((some & (2**26 - 1)).sum())
        total += whole * Fraction(2) ** (power - 53)
    return total


def _useful(rows: np.ndarray, room: Fraction) -> np.ndarray:
    """Which items have some value and weight, and fit on their own."""
    return (rows[:, 0] > 0) & (rows[:, 1] > 0) & (rows[:, 1] <= float(room))


def _rate_bits(rows: np.ndarray) -> np.ndarray:
    """Value per weight as an integer of the same order: the bits of the double."""
    with np.errstate(over="ignore"):
        return (rows[:, 0] / rows[:, 1]).view(np.int64)


@dataclass(frozen=True, eq=False)
class _Census:
    """Sizes of leaves, and the weight of all useful items."""

    sizes: np.ndarray
    weight: Fraction


def _census(rows: np.ndarray, number: int, room: Fraction) -> _Census:
    if rows.shape[1] != 2:
        raise ValueError(f"items must have 2 columns, value and weight; got {rows.shape[1]}.")
    if (rows[:, 1] < 0).any():
        row = int(np.flatnonzero(rows[:, 1] < 0)[0])
        raise ValueError(
            f"weights must be at least 0; got {rows[row, 1]} in row {row} of leaf {number}."
        )
    return _Census(np.array([len(rows)]), exact_sum(rows[_useful(rows, room), 1]))


@dataclass(frozen=True)
class _Break:
    """Where the capacity ends, in descending order of rate: items of a higher rate are taken.

    Of items with exactly this rate (its bits), those with an index below `cut` are taken.
    """

    bits: int
    cut: int = 0

    @property
    def rate(self) -> float:
        """The value of a unit of room."""
        return float(np.array(self.bits).view(np.float64)) if self.bits > 0 else 0.0

    def is_before(self, bits: np.ndarray, index: np.ndarray) -> np.ndarray:
        return (bits > self.bits) | ((bits == self.bits) & (index < self.cut))

    def losses(self, rows: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """The losses of items if flipped; infinite if all items fit."""
        if self.bits < 0:
            return np.full(len(rows), np.inf)
        return np.where(bits == self.bits, 0.0, np.abs(rows[:, 0] - self.rate * rows[:, 1]))


def _break(chunks: Chunks, census: _Census, room: Fraction, offsets: np.ndarray) -> _Break:
    """The break, found digit by digit from histograms of weight by rate, then by index for ties."""
    above, below = census.weight.as_integer_ratio()  # the second is a power of two
    unit = above.bit_length() - below.bit_length() + 1 - _SUM_BITS
    limit, before, many = math.floor(room / Fraction(2) ** unit), 0.0, CORE

    def located(bits: int, enough: int, tied: int | None = None) -> int:
        """The key of so many bits at which the capacity ends, or the first of `enough` around."""
        nonlocal before, many
        low, shift = 0, bits
        while shift > 0 and many > enough:
            shift = max(0, shift - _DIGIT)
            how = room, offsets, unit, tied, low, shift
            weight, count = reduced(_histogram, added, chunks, "rates", *how)
            down = np.cumsum(weight) + before
            last = min(len(weight) - 1, (_TOP - low) >> shift)  # where rounding hides the end
            place = min(int(np.searchsorted(down, limit, side="right")), last)
            before, many = float(down[place - 1]) if place else before, int(count[place])
            low += place << shift
        return low

    least = _TOP - located(64, 1)  # an imprecise rate makes the bound loose
    return _Break(least, located(int(census.sizes.sum()).bit_length(), CORE // 4, least))


def _histogram(
    rows: np.ndarray,
    number: int,
    room: Fraction,
    offsets: np.ndarray,
    unit: int,
    tied: int | None,
    low: int,
    shift: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Weight, in whole units of 2**`unit`, and number of items by a digit of their key from `low`.

    The key descends with the rate; among items `tied` at a rate, it is the index.
    """
    place = np.flatnonzero(_useful(rows, room))
    bits, many = _rate_bits(rows[place]), 2**_DIGIT
    if tied is not None:
        place = place[bits == tied]
    digit = ((_TOP - bits if tied is None else offsets[number] + place) - low) >> shift
    here = (digit >= 0) & (digit < many)
    digit, whole = digit[here], np.floor(np.ldexp(rows[place[here], 1], -unit))
    return np.bincount(digit, whole, minlength=many), np.bincount(digit, minlength=many)


@dataclass(frozen=True, eq=False)
class _Core:
    """The items with the smallest losses, and the totals of those taken among all others.

    `items` are ordered by their number, the index: value, weight, loss, how far `apart` each is
    from the break, and whether it comes before it. `outside` is the smallest loss among the others,
    `doubt` the value of items whose rate is so close that rounding may have put them on the wrong
    side, `largest` the largest value, `whole` whether all values are whole.
    """

    items: pd.DataFrame
    value: Fraction
    weight: Fraction
    outside: float
    doubt: Fraction
    largest: float
    whole: bool

    @classmethod
    def of(
        cls, rows: np.ndarray, number: int, room: Fraction, end: _Break, offsets: np.ndarray
    ) -> _Core:
        free = exact_sum(rows[(rows[:, 0] > 0) & (rows[:, 1] == 0), 0])
        place = np.flatnonzero(_useful(rows, room))
        rows, index = rows[place], offsets[number] + place
        bits, away = _rate_bits(rows), index - end.cut
        columns = {
            "value": rows[:, 0],
            "weight": rows[:, 1],
            "loss": end.losses(rows, bits),
            "apart": np.where(away < 0, -2 * away - 1, 2 * away),
            "taken": end.is_before(bits, index),
        }
        doubt, largest = exact_sum(rows[bits == end.bits, 0]), float(rows[:, 0].max(initial=0))
        whole = bool((rows[:, 0] == np.floor(rows[:, 0])).all())
        items = pd.DataFrame(columns, index=index)
        return cls(items, free, Fraction(0), np.inf, doubt, largest, whole).smaller()

    def smaller(self) -> _Core:
        """The core reduced to its maximum size; the other items are decided."""
        found = self.items[np.isfinite(self.items["loss"])]
        found = found.nsmallest(CORE, ["loss", "apart"]).sort_index()
        others = self.items[~self.items.index.isin(found.index)]
        decided = _numbers(others[others["taken"]])
        return replace(
            self,
            items=found,
            value=self.value + exact_sum(decided[:, 0]),
            weight=self.weight + exact_sum(decided[:, 1]),
            outside=others["loss"].to_numpy().min(initial=self.outside),
        )

    @staticmethod
    def merge(parts: list[_Core]) -> _Core:
        return _Core(
            pd.concat([part.items for part in parts]),
            sum((part.value for part in parts), Fraction(0)),
            sum((part.weight for part in parts), Fraction(0)),
            min(part.outside for part in parts),
            sum((part.doubt for part in parts), Fraction(0)),
            max(part.largest for part in parts),
            all(part.whole for part in parts),
        ).smaller()


def _numbers(items: pd.DataFrame) -> np.ndarray:
    return items[["value", "weight"]].to_numpy()


def _solved(
    core: _Core, room: Fraction, rate: float, model: Any, seed: int | None
) -> tuple[np.ndarray, float]:
    """Which items of the core to take, and an upper bound on the value of any choice."""
    items = _numbers(core.items)
    if len(items) == 0:
        return np.zeros(0, dtype=bool), float(core.value)
    (values, weights), left = items.T, room - core.weight
    space = _rounded_up(left)
    found = best = knapsack_in_memory(values, weights, space, model=model, seed=seed)
    if exact_sum(weights[best.chosen]) > left:
        less = float(np.nextafter(space, 0))
        found = knapsack_in_memory(values, weights, less, model=model, seed=seed)
    picked = np.zeros(len(items), dtype=bool)
    picked[found.chosen] = True
    within = core.value + Fraction(best.bound)
    if math.isinf(core.outside):
        return picked, _rounded_up(within)
    # Flipping an item outside the core costs at least its loss, from what the rate allows.
    taken = items[core.items["taken"]]
    unused = left - exact_sum(taken[:, 1])
    most = core.value + exact_sum(taken[:, 0]) + Fraction(rate) * unused
    margin = Fraction(_MARGIN) * (core.doubt + Fraction(core.largest))
    flipped = most - Fraction(core.outside) + margin
    return picked, _rounded_up(max(within, math.floor(flipped) if core.whole else flipped))


def _rounded_up(number: Fraction | int) -> float:
    near = float(number)
    return near if Fraction(near) >= number else float(np.nextafter(near, np.inf))


def _taken(
    rows: np.ndarray,
    number: int,
    room: Fraction,
    end: _Break,
    offsets: np.ndarray,
    decided: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    useful = np.flatnonzero(_useful(rows, room))
    taken = (rows[:, 0] > 0) & (rows[:, 1] == 0)
    taken[useful] = end.is_before(_rate_bits(rows[useful]), offsets[number] + useful)
    index, picked = decided
    place = index - offsets[number]
    here = (place >= 0) & (place < len(rows))
    taken[place[here]] = picked[here]
    return taken
