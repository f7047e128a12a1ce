"""The eight symmetries of the square: looking at the same points again, turned and mirrored.

A network that is not invariant to them gives up to eight answers for one input. The one with the
best reward is at least as good as any of them, and no label is needed to choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.answers import Sequences
from diconet.sets import SetBatch
from diconet.tasks.hull import signed_area


def symmetries(sets: SetBatch) -> Iterator[tuple[SetBatch, bool]]:
    """The sets from eight sides, about the middle of the unit square, and whether mirrored."""
    centred = sets.items - 0.5
    for mirrored in (False, True):
        seen = centred.flip(1) if mirrored else centred
        for _ in range(4):
            yield sets.with_items(seen + 0.5), mirrored
            seen = torch.stack([-seen[:, 1], seen[:, 0]], 1)


def best_cycle(sets: SetBatch, solve: Callable[[SetBatch], Sequences]) -> Sequences:
    """Of the cycles found from eight sides, for every set the one that encloses most."""
    found: list[Sequences] = []
    for seen, mirrored in symmetries(sets):
        cycles = solve(seen)
        found.append(reversed_cycles(cycles) if mirrored else cycles)
    areas: Float[Tensor, "views sets"] = torch.stack([signed_area(sets, c) for c in found])
    everything = Sequences(
        torch.cat([c.places for c in found]), torch.cat([c.sizes for c in found])
    )
    return everything.take(areas.argmax(0) * len(sets) + torch.arange(len(sets)))


def reversed_cycles(cycles: Sequences) -> Sequences:
    """Every cycle the other way round."""
    order = torch.arange(len(cycles.places)).flip(0)
    backwards = Sequences(cycles.places[order], cycles.sizes.flip(0))
    return backwards.take(torch.arange(len(cycles)).flip(0))
