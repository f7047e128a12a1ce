"""Distances between cities, computed on demand, never as a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args, no_type_check

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL

Kind = Literal["euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO", "haversine"]
_CODES = {kind: code for code, kind in enumerate(get_args(Kind))}
_EARTH = 6371.0088
"""The mean radius of the Earth in kilometres."""


@dataclass(frozen=True, eq=False)
class Metric:
    """Cities and the distances between them.

    Euclidean, whole numbers by the rules of TSPLIB, or kilometres on the globe ("haversine", from
    latitude and longitude in degrees).

    `xy` is in units of `unit`, which is 1 unless squares would leave the range of doubles.
    """

    xy: np.ndarray
    code: int
    unit: float = 1.0

    @classmethod
    def of(cls, cities: np.ndarray, kind: str = "euclidean") -> Metric:
        """The metric of a kind on (n, 2) cities."""
        if kind not in _CODES:
            known = ", ".join(_CODES)
            raise ValueError(f"metric must be one of {known}; got {kind!r}.")
        cities = np.ascontiguousarray(cities, dtype=np.float64)
        if kind in ("GEO", "haversine"):
            cities = _radians(cities) if kind == "GEO" else np.radians(cities)
        unit = _unit(cities) if kind == "euclidean" else 1.0
        return cls(cities if unit == 1.0 else cities / unit, _CODES[kind], unit)

    @property
    def is_whole(self) -> bool:
        """Whether all distances are whole numbers."""
        return self.code not in (0, 5)

    def __len__(self) -> int:
        return len(self.xy)

    def length(self, tour: np.ndarray) -> float:
        """The length of a round trip."""
        return self.unit * float(tour_length(self.xy, self.code, np.asarray(tour, dtype=np.int32)))


def _unit(cities: np.ndarray) -> float:
    """1, or a power of two that makes very large or very small coordinates safe to square."""
    largest = float(np.abs(cities).max(initial=0.0))
    if largest == 0.0 or 1e-140 < largest < 1e140:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _radians(cities: np.ndarray) -> np.ndarray:
    """Latitude and longitude from degrees and minutes (DDD.MM), with TSPLIB's own pi."""
    degrees = np.trunc(cities)
    return 3.141592 * (degrees + 5.0 * (cities - degrees) / 3.0) / 180.0


@njit(**INNER)
@no_type_check
def distance(xy, code, i, j):
    """The distance between two cities."""
    dx = xy[i, 0] - xy[j, 0]
    dy = xy[i, 1] - xy[j, 1]
    if code == 0:
        return math.sqrt(dx * dx + dy * dy)
    return _by_rule(dx, dy, xy[i, 0], xy[j, 0], code)


@njit(**INNER)
@no_type_check
def _by_rule(dx, dy, here, there, code):
    """All other distances; `here` and `there` are latitudes if the rule needs them.

    NumPy's floor and ceil return floats here; those of `math` return integers, and overflow.
    """
    if code == 1:
        return np.floor(math.sqrt(dx * dx + dy * dy) + 0.5)
    if code == 2:
        return np.ceil(math.sqrt(dx * dx + dy * dy))
    if code == 3:
        exact = math.sqrt((dx * dx + dy * dy) / 10.0)
        whole = np.floor(exact + 0.5)
        return whole + 1.0 if whole < exact else whole
    if code == 5:
        h = math.sin(dx / 2) ** 2 + math.cos(here) * math.cos(there) * math.sin(dy / 2) ** 2
        return 2 * _EARTH * math.asin(min(1.0, math.sqrt(h)))
    if dx == 0.0 and dy == 0.0:
        return 0.0
    q1 = math.cos(dy)
    q2 = math.cos(dx)
    q3 = math.cos(here + there)
    cosine = min(max(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0), 1.0)
    return np.floor(6378.388 * math.acos(cosine) + 1.0)


@njit(**KERNEL)
@no_type_check
def tour_length(xy, code, tour):
    """The length of a round trip."""
    total = 0.0
    for i in range(len(tour)):
        total += distance(xy, code, tour[i - 1], tour[i])
    return total
