"""The sieve: discards points that cannot be corners, by the learned judge, before dividing.

A rule chooses the extreme points in a few directions, and the network finds their hull. A point
that the judge sees clearly on the inner side of the edge in front of it is not a corner (Akl and
Toussaint, 1978, with a learned test). Of uniform points hardly one in a thousand is left for the
tree; of points on a circle, all are.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.problems.hull.calipers import Edges
from diconet.problems.hull.triples import TripleMerge, whiten

FEWEST = 2_000
"""Smaller sets are not sieved."""

DIRECTIONS = 32

_CLEAR = math.asinh(10.0)
"""The score of an edge that holds by ten times the judge's resolution."""


@torch.inference_mode()
def may_be_corners(
    network: DiCoNet, cloud: Float[Tensor, "points 2"]
) -> Bool[np.ndarray, "points"]:
    """Which points the judge does not see inside the hull of some others."""
    merge = network.merge
    if len(cloud) < FEWEST or not isinstance(merge, TripleMerge):
        return np.ones(len(cloud), dtype=bool)
    points = whiten(SetBatch.of([cloud]))
    angle = torch.arange(DIRECTIONS, device=points.device) * (2 * torch.pi / DIRECTIONS)
    ways = torch.stack([angle.cos(), angle.sin()], 1).to(points.dtype)
    far = torch.stack([(points @ way).argmax() for way in ways]).unique()
    corners = far[network(SetBatch.of([points[far]])).solution.places]
    if len(corners) < 3:
        return np.ones(len(cloud), dtype=bool)
    edges = _facing(points, corners)
    kept = merge.scores(points, edges) < _CLEAR
    kept[corners] = True
    return to_host(kept)


def _facing(points: Float[Tensor, "points 2"], corners: Tensor) -> Edges:
    """For every point the hull edge in its direction, seen from the middle of the corners."""
    polygon = points[corners]
    middle = polygon.mean(0)

    def bearing(some: Tensor) -> Tensor:
        x, y = (some - middle).unbind(1)
        return torch.atan2(y, x)

    by_bearing = bearing(polygon).sort()
    corners = corners[by_bearing.indices]
    edge = torch.searchsorted(by_bearing.values, bearing(points)) - 1
    rows = torch.arange(len(points), device=points.device)
    return Edges(corners[edge], corners.roll(-1)[edge], rows[:, None])
