"""The planar convex hull (section 6.1): the corners of a set of points, counter-clockwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.spatial import ConvexHull, QhullError
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.segments import followers, offsets_of, owner_of, segment_sum
from diconet.core.sets import SetBatch


def polygon_area(
    corners: Float[Tensor, "corners 2"], sizes: Int[Tensor, "polygons"]
) -> Float[Tensor, "polygons"]:
    """Area inside each polygon, positive if counter-clockwise, in double precision."""
    owner = owner_of(sizes, len(corners))
    start = offsets_of(sizes)[:-1]
    # Relative to its first corner, a small polygon far from the origin loses no digits.
    here = corners.double() - corners.double()[start.clamp(max=max(len(corners) - 1, 0))[owner]]
    there = here[followers(sizes)]
    twice = here[:, 0] * there[:, 1] - here[:, 1] * there[:, 0]
    return segment_sum(twice, owner, len(sizes)) / 2


@dataclass(frozen=True)
class HullTask:
    """Points uniform in the unit square; the answer is the cycle of hull corners."""

    num_features = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh sets of uniform points."""
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size, device=rng.device))

    def oracle(self, sets: SetBatch) -> Sequences:
        """Qhull's answer for every set."""
        return Sequences.each(sets, hull_of)

    def reward(self, sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
        """The area that the answer encloses, which is largest for the hull."""
        return signed_area(sets, solution).abs()


def hull_of(points: np.ndarray) -> np.ndarray:
    """Corners of the hull of (n, 2) points, counter-clockwise from the lowest index.

    If the points span no area, Qhull gives up; the hull is then the two extreme points (or one).
    """
    if len(points) >= 3:
        try:
            corners = ConvexHull(points).vertices.astype(np.int64)
            return np.roll(corners, -int(corners.argmin()))
        except QhullError:
            pass
    by_place = np.lexsort((points[:, 1], points[:, 0]))
    ends = np.unique(by_place[[0, -1]]) if len(points) else by_place
    if len(ends) == 2 and bool((points[ends[0]] == points[ends[1]]).all()):
        ends = ends[:1]
    return ends


def signed_area(sets: SetBatch, cycles: Sequences) -> Float[Tensor, "sets"]:
    """Area inside each cycle, positive if counter-clockwise."""
    return polygon_area(sets.items[cycles.rows(sets)], cycles.sizes).float()


def exact(found: Sequences, expected: Sequences) -> Bool[Tensor, "sets"]:
    """Whether each whole cycle equals the expected one, wherever they start."""
    same_size = found.sizes == expected.sizes
    a, b = found.rotated(found.places), expected.rotated(expected.places)
    keep_a, keep_b = same_size[owner_of(a.sizes)], same_size[owner_of(b.sizes)]
    wrong = (a.places[keep_a] != b.places[keep_b]).float()
    return same_size & (segment_sum(wrong, owner_of(a.sizes)[keep_a], len(a)) == 0)


def vertex_f1(sets: SetBatch, found: Sequences, expected: Sequences) -> Float[Tensor, "sets"]:
    """Harmonic mean of precision and recall of the corners, ignoring their order."""
    mark = torch.zeros(sets.num_items, device=sets.items.device)
    mark[expected.rows(sets)] = 1
    hits = segment_sum(mark[found.rows(sets)], owner_of(found.sizes), len(sets))
    return 2 * hits / (found.sizes + expected.sizes)


def metrics(sets: SetBatch, found: Sequences, expected: Sequences) -> dict[str, Tensor]:
    """Accuracy, area covered and vertex F1 of each set, in percent.

    An answer that goes around twice covers the hull once, not twice.
    """
    area = signed_area(sets, found) / signed_area(sets, expected)
    return {
        "accuracy": 100 * exact(found, expected).float(),
        "area": 100 * area.clamp(0, 1),
        "f1": 100 * vertex_f1(sets, found, expected),
    }
