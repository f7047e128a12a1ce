"""What dividing and learning do for knapsacks, all at equal CPU time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.problems.knapsack.classes import CLASSES, draw
from diconet.problems.knapsack.fill import RandomOrder
from diconet.problems.knapsack.problem import PROBLEM
from diconet.problems.knapsack.recipe import with_splits
from diconet.problems.knapsack.repair import CORE_GROWTH, LARGEST_LEAF, CoreSplit, FrontierMerge
from diconet.problems.knapsack.search import LARGEST_CORE, Hunt, run
from diconet.problems.networks import as_network
from diconet.problems.table import standard_error

SIZES = (50, 1_000, 10_000)
LARGEST = 10**9


def ablate(
    seconds: float = 0.1, sizes: Sequence[int] = SIZES, seed: int = 0, num_sets: int = 20
) -> list[dict[str, Any]]:
    """One record per way of dividing, size and metric; each has `seconds` of CPU per knapsack.

    The knapsacks are of five classes with numbers up to 1e9. "gap_ppm" is the distance of the value
    from the best that any way found, in millionths, "proven" the percentage proven optimal, and
    "seconds" the CPU time used; "error" is the standard error over the knapsacks.
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0; got {seconds}.")
    ways = _ways()
    small = Hunt.of(*draw("weakly", 50, 100, np.random.default_rng(0)))
    run([small], ways[_HAND], torch.tensor([0]))  # compiles
    records = []
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        kinds = [CLASSES[i * len(CLASSES) // num_sets] for i in range(num_sets)]
        given = [draw(kind, size, LARGEST, rng) for kind in kinds]
        found = {name: _measured(given, model, seconds, seed) for name, model in ways.items()}
        best = np.max([values for values, _, _ in found.values()], axis=0)
        for name, (values, proven, took) in found.items():
            figures = {"gap_ppm": 1e6 * (best - values) / best, "proven": 100 * proven}
            for metric, each in (figures | {"seconds": took}).items():
                record = {"row": name, "size": size, "metric": metric, "value": float(each.mean())}
                records.append({**record, "error": standard_error(each)})
    return records


_HAND = "hand-made division"


def _ways() -> dict[str, DiCoNet]:
    """No, random, hand-made and learned division; and learned division with a learned core."""
    network = as_network(PROBLEM, None).split.network
    splits = {
        "no division": CoreSplit(),
        "random division": CoreSplit(deal="random"),
        _HAND: CoreSplit(),
        "learned division": CoreSplit(network),  # type: ignore[arg-type]
        "learned division and core": CoreSplit(network, choose=True),  # type: ignore[arg-type]
    }
    growths = {"no division": Growth(depth=1)}
    return {
        name: DiCoNet(split, FrontierMerge(), growths.get(name, CORE_GROWTH)).eval()
        for name, split in splits.items()
    }


def divided(model: Any, division: Literal["random", "none"]) -> DiCoNet:
    """A network whose items are divided, or taken, at random; or in one part or call."""
    network = as_network(PROBLEM, model)
    split = network.split
    if isinstance(split, CoreSplit):
        other = CoreSplit(deal="random") if division == "random" else split
        growth = CORE_GROWTH if division == "random" else Growth(depth=1)
        return DiCoNet(other, network.merge, growth)
    if division == "random":
        return with_splits(network, int(network.growth.depth or 1) - 1, RandomOrder())
    return with_splits(network, 0)


def _measured(
    given: list[tuple[np.ndarray, np.ndarray, int]], model: DiCoNet, seconds: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The value, whether it is proven, and the CPU time of each knapsack."""
    values, proven, took = [], [], []
    undivided = model.growth.depth == 1
    for one in given:
        start = time.process_time()
        hunt = Hunt.of(*one)
        hunt.largest_core = LARGEST_LEAF if undivided else LARGEST_CORE
        run([hunt], model, torch.tensor([seed]), seconds=seconds)
        took.append(time.process_time() - start)
        values.append(float(hunt.prices.best))
        proven.append(float(hunt.prices.proven))
    return np.array(values), np.array(proven), np.array(took)
