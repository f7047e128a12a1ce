from __future__ import annotations

import torch

from diconet.answers import Sequences
from diconet.sets import SetBatch
from diconet.symmetries import best_cycle, reversed_cycles, symmetries
from diconet.tasks.hull import HullTask, exact, signed_area


def test_eight_different_views_of_the_same_shape(rng: torch.Generator) -> None:
    sets = HullTask().sample(1, 5, rng=rng)
    views = [seen.items for seen, _ in symmetries(sets)]
    assert len({tuple(v.flatten().round(decimals=5).tolist()) for v in views}) == 8
    distance = torch.cdist(sets.items, sets.items)
    assert all(torch.allclose(torch.cdist(v, v), distance, atol=1e-6) for v in views)


def test_hulls_from_every_side_run_counter_clockwise(rng: torch.Generator) -> None:
    sets = HullTask().sample(20, 9, rng=rng)
    for seen, mirrored in symmetries(sets):
        cycles = HullTask().oracle(seen)
        back = reversed_cycles(cycles) if mirrored else cycles
        assert exact(back, HullTask().oracle(sets)).all()


def test_the_best_view_wins(rng: torch.Generator) -> None:
    """A solver that is right only when it sees the points mirrored, and else drops a corner."""
    sets = HullTask().sample(10, 9, rng=rng)
    calls = []

    def solve(seen: SetBatch) -> Sequences:
        right = HullTask().oracle(seen)
        calls.append(1)
        if len(calls) == 6:
            return right
        return Sequences.of([places[1:] for places in right.unpack()])

    best = best_cycle(sets, solve)
    assert exact(best, HullTask().oracle(sets)).all()
    assert torch.allclose(signed_area(sets, best), signed_area(sets, HullTask().oracle(sets)))
