"""Closed lines through points, packed end to end."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.segments import offsets_of, owner_of, segment_sum


def once_around(
    corners: Float[Tensor, "corners 2"], sizes: Int[Tensor, "polygons"]
) -> Bool[Tensor, "polygons"]:
    """Whether each polygon runs counter-clockwise around its middle, once and never back.

    Such a polygon does not cross itself, so its area is that of the points it encloses.
    """
    owner = owner_of(sizes, len(corners))
    count = sizes.clamp(min=1).double()[:, None]
    middle = segment_sum(corners.double(), owner, len(sizes)) / count
    here = corners.double() - middle[owner]
    there = here[_followers(sizes)]
    cross = here[:, 0] * there[:, 1] - here[:, 1] * there[:, 0]
    step = torch.atan2(cross, (here * there).sum(1))
    total = segment_sum(step, owner, len(sizes))
    backwards = segment_sum((step < 0).double(), owner, len(sizes))
    return (backwards == 0) & (total < 3 * torch.pi)


def _followers(sizes: Int[Tensor, "polygons"]) -> Int[Tensor, "corners"]:
    """For every corner, the row of the next one of its polygon."""
    owner = owner_of(sizes)
    start = offsets_of(sizes)[:-1]
    follower = torch.arange(len(owner), device=sizes.device) + 1
    return torch.where(follower == (start + sizes)[owner], start[owner], follower)


def polygon_area(
    corners: Float[Tensor, "corners 2"], sizes: Int[Tensor, "polygons"]
) -> Float[Tensor, "polygons"]:
    """Area inside each polygon, positive where it runs counter-clockwise; in double precision."""
    owner = owner_of(sizes, len(corners))
    start = offsets_of(sizes)[:-1]
    # Seen from its first corner, a small polygon far from the origin loses no digits.
    here = corners.double() - corners.double()[start.clamp(max=max(len(corners) - 1, 0))[owner]]
    there = here[_followers(sizes)]
    twice = here[:, 0] * there[:, 1] - here[:, 1] * there[:, 0]
    return segment_sum(twice, owner, len(sizes)) / 2
