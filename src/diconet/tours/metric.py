"""Distances between cities, computed when asked for: never a matrix of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, no_type_check

import numpy as np
from numba import njit

Kind = Literal["euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO"]
_CODES: dict[str, int | None] = {"euclidean": None, "EUC_2D": 1, "CEIL_2D": 2, "ATT": 3, "GEO": 4}
_FRAGMENTS = 5
_HELD = 10.0  # ends of fragments lie in the unit square: no exchange gains as much


@dataclass(frozen=True, eq=False)
class Metric:
    """Cities and how far apart they are: Euclidean, or whole numbers by the rules of TSPLIB.

    For ends of fragments, `mate` is the other end of each; the edge between mates costs so little
    that no shortest tour is without it.
    """

    x: np.ndarray
    y: np.ndarray
    code: int | None
    mate: np.ndarray

    @classmethod
    def of(cls, cities: np.ndarray, kind: str = "euclidean") -> Metric:
        """The metric of a kind on (n, 2) cities."""
        if kind not in _CODES:
            known = ", ".join(_CODES)
            raise ValueError(f"metric must be one of {known}; got {kind!r}.")
        cities = np.asarray(cities, dtype=np.float64)
        if kind == "GEO":
            cities = _radians(cities)
        x, y = (np.ascontiguousarray(cities[:, axis]) for axis in (0, 1))
        return cls(x, y, _CODES[kind], np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.x)

    def ends(self, cities: np.ndarray, mate: np.ndarray) -> Metric:
        """Distances among ends of fragments, with mates held together.

        Between others it is Euclidean whatever the metric, as it is only to find a good order,
        and in units of the whole extent.
        """
        x, y = self.x[cities], self.y[cities]
        extent = max(float(np.ptp(x)), float(np.ptp(y)), 1e-300)
        x, y = (x - x.min()) / extent, (y - y.min()) / extent
        return Metric(x, y, _FRAGMENTS, mate.astype(np.int32))

    def length(self, tour: np.ndarray) -> float:
        """The length of a round trip."""
        return float(tour_length(self.x, self.y, self.code, self.mate, tour))


def _radians(cities: np.ndarray) -> np.ndarray:
    """Latitude and longitude from degrees and minutes (DDD.MM), with TSPLIB's own pi."""
    degrees = np.trunc(cities)
    return 3.141592 * (degrees + 5.0 * (cities - degrees) / 3.0) / 180.0


@njit(cache=True)
@no_type_check
def distance(x, y, code, mate, i, j):
    """The distance between two cities.

    Local search does little else. As None is a type, plain Euclidean kernels are compiled on their
    own, without the other rules, and run at several times the speed.
    """
    dx = x[i] - x[j]
    dy = y[i] - y[j]
    if code is None:
        return math.sqrt(dx * dx + dy * dy)
    return _by_rule(dx, dy, code, mate, x, i, j)


@njit(cache=True)
@no_type_check
def _by_rule(dx, dy, code, mate, x, i, j):
    """Between ends of fragments, or by a rule of TSPLIB's."""
    if code == 5:
        if mate[i] == j:
            return -_HELD
        return math.sqrt(dx * dx + dy * dy)
    if code == 1:
        return math.floor(math.sqrt(dx * dx + dy * dy) + 0.5)
    if code == 2:
        return math.ceil(math.sqrt(dx * dx + dy * dy))
    if code == 3:
        exact = math.sqrt((dx * dx + dy * dy) / 10.0)
        whole = math.floor(exact + 0.5)
        return whole + 1.0 if whole < exact else whole
    if i == j:
        return 0.0
    q1 = math.cos(dy)
    q2 = math.cos(dx)
    q3 = math.cos(x[i] + x[j])
    return math.floor(6378.388 * math.acos(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)) + 1.0)


@njit(cache=True)
@no_type_check
def tour_length(x, y, code, mate, tour):
    """The length of a round trip."""
    total = 0.0
    for i in range(len(tour)):
        total += distance(x, y, code, mate, tour[i - 1], tour[i])
    return total
