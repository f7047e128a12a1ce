"""Closed lines through points, packed end to end."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.segments import followers, offsets_of, owner_of, segment_sum


def polygon_area(
    corners: Float[Tensor, "corners 2"], sizes: Int[Tensor, "polygons"]
) -> Float[Tensor, "polygons"]:
    """Area inside each polygon, positive where it runs counter-clockwise; in double precision."""
    owner = owner_of(sizes, len(corners))
    start = offsets_of(sizes)[:-1]
    # Seen from its first corner, a small polygon far from the origin loses no digits.
    here = corners.double() - corners.double()[start.clamp(max=max(len(corners) - 1, 0))[owner]]
    there = here[followers(sizes)]
    twice = here[:, 0] * there[:, 1] - here[:, 1] * there[:, 0]
    return segment_sum(twice, owner, len(sizes)) / 2
