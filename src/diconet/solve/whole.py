"""Exact sums of a user's own numbers: as whole multiples of one common unit.

Every float64 is a whole number times a power of two, so a list of them (or of Python's integers,
however large) has a unit in which all are whole. "Fits" is then a question about integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

EXACT = 2**52
"""Whole numbers up to twice this, and their sums, are exact in float64."""


def whole_numbers(values: Any, given: np.ndarray) -> tuple[list[int], int]:
    """The numbers as Python integers, in units of two to the power of the second result.

    `given` are the same numbers as float64; integers that float64 cannot hold come from `values`.
    """
    if bool((np.abs(given) >= 2.0**53).any()):
        flat = np.asarray(values, dtype=object).ravel().tolist()
        if all(isinstance(x, int | np.integer) for x in flat):
            return [int(x) for x in flat], 0
    mantissa, exponent = np.frexp(given.ravel())
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    exponent = exponent.astype(np.int64) - 53
    zeros = _trailing_zeros(digits)
    digits, exponent = digits >> zeros, exponent + zeros
    unit = int(exponent[digits != 0].min(initial=0))
    return [
        d << max(e - unit, 0) for d, e in zip(digits.tolist(), exponent.tolist(), strict=True)
    ], unit


def in_float64(weights: list[int], capacity: int) -> tuple[np.ndarray, float, bool]:
    """Weights and capacity as whole float64 whose sums are exact, and whether they are the same.

    Where 53 bits cannot hold the sum of all weights, weights are rounded up and the capacity down
    to a coarser unit: what fits then, fits in truth.
    """
    capacity = min(capacity, sum(weights))
    shift = max(sum(weights).bit_length() - EXACT.bit_length(), 0)
    shift += int(shift > 0)  # rounding up may add as much as one an item
    coarse = [-(-w >> shift) for w in weights]
    same = all(c << shift == w for c, w in zip(coarse, weights, strict=True))
    return np.array(coarse, dtype=np.float64), float(capacity >> shift), same


def common_unit(
    first: tuple[list[int], int], second: tuple[list[int], int]
) -> tuple[list[int], ...]:
    """Two lists of whole numbers in the finer of their two units."""
    unit = min(first[1], second[1])
    return tuple([x << (own - unit) for x in numbers] for numbers, own in (first, second))


def _trailing_zeros(digits: np.ndarray) -> np.ndarray:
    lowest = np.where(digits == 0, 1, digits & -digits)
    return np.array(np.log2(lowest.astype(np.float64)), dtype=np.int64)


def exact_total(values: np.ndarray) -> float:
    """The sum, rounded once."""
    return math.fsum(values.tolist())
