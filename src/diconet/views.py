"""Asking a network about one set from several sides, and keeping the best answer.

A square looks the same from eight sides, but a network does not: seen from another side, it cuts
elsewhere, reads in another order and errs elsewhere. Where a better answer is known by its reward,
as a hull is by its area, the best of them is found without any label.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from diconet.answers import Sequences
from diconet.model import DiCoNet
from diconet.noise import mix
from diconet.polygons import once_around, polygon_area
from diconet.segments import offsets_of, owner_of
from diconet.sets import SetBatch

_TURN = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
_MIRROR = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
_HALF_TURN = _TURN @ _TURN
_AGAIN = torch.stack([torch.eye(2), _MIRROR])

SIDES = torch.cat([turn @ _AGAIN for turn in (torch.eye(2), _HALF_TURN, _TURN, _TURN.T)])
"""The symmetries of the square, every other one a mirror. They move digits, and change none."""


def from_sides(
    network: DiCoNet, sets: SetBatch, seeds: Int[Tensor, "sets"] | None = None, *, num_views: int
) -> Sequences:
    """The cycles that a network finds from each of so many sides, all sets' from one after another.

    With seeds, every view draws cuts of its own, and the first one draws what it would alone.
    """
    if not 1 <= num_views <= len(SIDES):
        raise ValueError(f"views must be from 1 to {len(SIDES)}; got {num_views}.")
    sides = SIDES[:num_views].to(sets.items)
    seen = SetBatch.cat([sets.with_items(sets.items @ side.T) for side in sides]).as_roots()
    drawn = None
    if seeds is not None:
        drawn = torch.cat([seeds, *(mix(seeds, view) for view in range(1, num_views))])
    cycles: Sequences = network(seen, drawn).solution
    view = torch.arange(num_views, device=sets.sizes.device).repeat_interleave(len(sets))
    return _backwards(cycles, view % 2 == 1)


def largest(sets: SetBatch, cycles: Sequences) -> Sequences:
    """For every set, the counter-clockwise cycle with the largest area of those from all sides."""
    num_views = len(cycles) // len(sets)
    start = sets.offsets[:-1].repeat(num_views)
    corners = sets.items[start[owner_of(cycles.sizes)] + cycles.places]
    area = polygon_area(corners, cycles.sizes)
    # A cycle that goes around twice would count its area twice.
    area = area.where(once_around(corners, cycles.sizes), -torch.inf).reshape(num_views, -1)
    # Among equals, as where two points span no area, the answer that keeps most.
    kept = cycles.sizes.reshape(area.shape).where(area == area.amax(0), -1)
    return cycles.take(kept.argmax(0) * len(sets) + torch.arange(len(sets), device=kept.device))


def _backwards(cycles: Sequences, which: Bool[Tensor, "cycles"]) -> Sequences:
    """The same cycles, with some of them read the other way round."""
    start = offsets_of(cycles.sizes)[:-1]
    owner = owner_of(cycles.sizes, len(cycles.places))
    rows = torch.arange(len(owner), device=owner.device)
    rows = torch.where(which[owner], (2 * start + cycles.sizes - 1)[owner] - rows, rows)
    return Sequences(cycles.places[rows], cycles.sizes)
