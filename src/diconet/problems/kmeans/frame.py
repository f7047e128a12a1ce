"""Points normalised to centre zero and size one, and cluster costs in their own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diconet.plot.stages import Labels
from diconet.problems.kmeans.distances import TINY

_FINE = 1e-5
"""Points typically closer than this, with the farthest at one, need double precision."""

_ROUNDING = 4 * float(np.finfo(np.float64).eps)

_NEIGHBOURHOOD, _COLUMNS = 128, 16
"""The number of points, and of their columns, used to estimate how close points lie."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Points normalised to centre zero and size one: `points = (x * reach + mean) * largest`.

    In this order nothing overflows, however large the coordinates. `weights` have a mean of one;
    `given` are the user's.
    """

    points: np.ndarray
    given: np.ndarray
    weights: np.ndarray
    x: np.ndarray
    mean: np.ndarray
    reach: float
    largest: float

    @classmethod
    def of(cls, points: np.ndarray, given: np.ndarray) -> Frame:
        largest = float(np.abs(points).max(initial=0.0)) or 1.0
        small = points / largest
        mean = small.mean(0)
        small -= mean
        reach = float(np.abs(small).max(initial=0.0)) or 1.0
        small /= reach
        weights = given / given.max()  # a sum of the largest doubles would be infinite
        return cls(points, given, weights / weights.mean(), small, mean, reach, largest)

    @property
    def is_fine(self) -> bool:
        """Whether points lie so close that single precision would not separate them."""
        some = self.x[:: max(1, len(self.x) // _NEIGHBOURHOOD)][:_NEIGHBOURHOOD]
        far = np.square(some[:, None, :_COLUMNS] - some[None, :, :_COLUMNS]).sum(2)
        far[far == 0] = np.inf
        near = far.min(1, initial=np.inf)
        near = near[np.isfinite(near)]
        return bool(len(near)) and float(np.sqrt(np.median(near))) < _FINE

    def cost(self, labels: Labels, k: int) -> float:
        """The weighted sum of squared distances to the means, in the points' own units."""
        root = np.sqrt(self.apart(labels, k)) * self.reach * self.largest
        with np.errstate(over="ignore"):
            heaviest = self.given.max() / self.weights.max()
            return float(np.square(root * np.sqrt(heaviest)))

    def apart(self, labels: Labels, k: int) -> float:
        """The same cost for the normalised points."""
        gaps = self.x - self.means(labels, k)[labels]
        gaps[np.abs(gaps) < _ROUNDING] = 0  # so that equal points cost nothing, at any magnitude
        return float(np.einsum("ij,ij,i->", gaps, gaps, self.weights))

    def means(self, labels: Labels, k: int) -> np.ndarray:
        """The means of clusters."""
        return means_of(self.x, self.weights, labels, k)


def means_of(x: np.ndarray, weights: np.ndarray, labels: Labels, k: int) -> np.ndarray:
    """The means of clusters; unweighted if all weights of a cluster are zero."""
    weights = weights.astype(np.float64)
    mass = np.bincount(labels, weights, minlength=k)
    if (mass == 0).any():
        weights = np.where(mass[labels] == 0, 1.0, weights)
        mass = np.maximum(np.bincount(labels, weights, minlength=k), TINY)
    columns = (np.bincount(labels, weights * column, minlength=k) for column in x.T)
    return np.stack([column / mass for column in columns], 1)
