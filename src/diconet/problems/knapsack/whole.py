"""Exact sums of a user's own numbers: as whole multiples of one common unit.

Every float64 is a whole number times a power of two, so a list of them (or of Python's integers,
however large) has a unit in which all are whole. "Fits" is then a question about integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ITEM_BITS, SUM_BITS = 53, 61
"""Bits up to which whole numbers are exact in float64, and up to which sums are safe in int64."""


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


def spare_bits(numbers: list[int], sum_bits: int) -> int:
    """How many bits must go for every number to fit float64, and their sum `sum_bits` bits."""
    longest = max(numbers, default=0).bit_length()
    shift = max(longest - ITEM_BITS, sum(numbers).bit_length() - sum_bits, 0)
    return shift + int(shift > 0)  # rounding up may add as much as one per number


def without(numbers: list[int], bits: int, *, up: bool) -> np.ndarray:
    """The numbers as int64 without their last bits, rounded up or down."""
    return np.array([-(-x >> bits) if up else x >> bits for x in numbers], dtype=np.int64)


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
