"""The public solvers: what is between a user's call and the solver itself."""

from __future__ import annotations

import pytest

from diconet.problems.beyond import or_beyond_memory

resource = pytest.importorskip("resource")
CALLS = 500


def faults(depth: int) -> int:
    """The page faults of many calls from a given depth of calls."""
    if depth:
        return faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        _nothing()
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


def _nothing() -> None:
    pass


def test_no_depth_of_calls_allocates_at_every_call() -> None:
    """At the end of a piece of Python's stack, every call would allocate the next and free it."""
    solve = or_beyond_memory(faults)
    assert max(solve(depth) for depth in range(300)) < CALLS // 2
