"""What dividing does for hulls: one merge over several divisions, at equal processor time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

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

_UNDIVIDED = 500
"""The largest set solved in one piece: more pairs times third points do not fit in memory."""


def ablate(
    seconds: float = 2.0, sizes: Sequence[int] = (200, 2_000, 20_000), seed: int = 0
) -> list[dict[str, Any]]:
    """How many sets each division solves in `seconds` of processor time, and how many exactly.

    All rows use the default network's merge; "none" is one leaf, for small sets only. In the
    last row, the judge first discards points that cannot be corners.
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
            figures = _run(network, sieved, size, seconds, seed)
            records.append({"size": size, "division": name, **figures})
    return records


def _run(network: DiCoNet, sieved: bool, size: int, seconds: float, seed: int) -> dict[str, float]:
    """Solves fresh sets until the time is up, at least one."""
    task, solved, right = HullTask(), 0, 0.0
    spent = 0.0
    while solved == 0 or spent < seconds:
        points = task.sample(1, size, rng=phase_generator("ablate", seed, size, solved)).items
        points = points.double()
        start = time.process_time()
        kept = torch.arange(size)
        if sieved:
            kept = kept[from_host(may_be_corners(network, points), kept)]
        with torch.inference_mode():
            found = network(SetBatch.of([points[kept]])).solution
        spent += time.process_time() - start
        whole = Sequences.of([kept[found.places]])
        right += exact(whole, task.oracle(SetBatch.of([points]))).double().sum().item()
        solved += 1
    return {"sets": solved, "exact": 100 * right / solved, "seconds per set": spent / solved}
