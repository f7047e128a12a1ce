"""What dividing does for hulls: one merge over several divisions, at equal processor time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.host import from_host
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.nets.axes import AcrossSplit
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.sieve import FEWEST, may_be_corners
from diconet.problems.hull.task import HullTask, exact
from diconet.problems.networks import as_network
from diconet.problems.table import standard_error

_UNDIVIDED = 500
"""The largest set solved in one piece: more pairs times third points do not fit in memory."""


def ablate(
    seconds: float = 2.0,
    sizes: Sequence[int] = (200, 2_000, 20_000),
    seed: int = 0,
    num_sets: int = 3,
) -> list[dict[str, Any]]:
    """How many sets each division solves in `seconds` of processor time, and how many exactly.

    All rows use the default network's merge and have at least `num_sets`; "none" is one leaf, for
    small sets only. In the last row, the judge first discards points that cannot be corners.
    "error" is the standard error of "seconds per set".
    """
    model = as_network(PROBLEM, None)
    ways = {
        "none": (model.split, Growth(depth=0), False),
        "random": (RandomSplit(), model.growth, False),
        "hand-made (median)": (AcrossSplit(), model.growth, False),
        "learned": (model.split, model.growth, False),
        "learned, after the sieve": (model.split, model.growth, True),
    }
    records = []
    for size in sizes:
        for name, (split, growth, sieved) in ways.items():
            if (name == "none" and size > _UNDIVIDED) or (sieved and size < FEWEST):
                continue
            network = DiCoNet(split, model.merge, growth).eval()
            figures = _run(network, sieved, size, seconds, seed, num_sets)
            records.append({"size": size, "division": name, **figures})
    return records


def _run(
    network: DiCoNet, sieved: bool, size: int, seconds: float, seed: int, fewest: int
) -> dict[str, float]:
    """Solves fresh sets until the time is up; a small one before that, which compiles."""
    small = HullTask().sample(1, 50, rng=phase_generator("ablate", seed))
    _solved(network, sieved, small.items.double())
    times: list[float] = []
    right = 0.0
    while len(times) < fewest or sum(times) < seconds:
        rng = phase_generator("ablate", seed, size, len(times))
        points = HullTask().sample(1, size, rng=rng).items.double()
        start = time.process_time()
        found = _solved(network, sieved, points)
        times.append(time.process_time() - start)
        right += exact(found, HullTask().oracle(SetBatch.of([points]))).double().sum().item()
    return {
        "sets": len(times),
        "exact": 100 * right / len(times),
        "seconds per set": float(np.mean(times)),
        "error": standard_error(np.array(times)),
    }


def _solved(network: DiCoNet, sieved: bool, points: Tensor) -> Sequences:
    """The hull of one set, with or without the sieve."""
    kept = torch.arange(len(points))
    if sieved:
        kept = kept[from_host(may_be_corners(network, points), kept)]
    with torch.inference_mode():
        found = network(SetBatch.of([points[kept]])).solution
    return Sequences.of([kept[found.places]])
