"""What dividing and learning do for k-means, all at equal processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.tree import Growth
from diconet.problems.kmeans.exchange import ExchangeMerge, exchanged
from diconet.problems.kmeans.lloyd import lloyd
from diconet.problems.kmeans.references import best_start, min_cost
from diconet.problems.kmeans.solve import kmeans
from diconet.problems.kmeans.task import Gaussian, KMeansTask
from diconet.problems.networks import shipped
from diconet.problems.table import standard_error

_POINTS_EACH = 20
_SPREAD = 2e-3

Run = Callable[[np.ndarray, int, int], float]
"""The cost of k clusters of points in the n-th run of a method."""


def ablate(
    seconds: float = 1.0, sizes: Sequence[int] = (2_000,), seed: int = 0, num_sets: int = 5
) -> list[dict[str, Any]]:
    """Cost relative to the best of ten Lloyd starts; each method reruns until its time is up.

    Points are overlapping clusters in the plane, 20 points per cluster, k = n / 20. The best of a
    method's runs counts; the first takes the likeliest cuts, later ones draw. `error` is the
    standard error over the sets.
    """
    records = []
    for size in sizes:
        k = max(2, size // _POINTS_EACH)
        task = KMeansTask(Gaussian(2, variance=_SPREAD, uneven=0.5), (k,))
        sets = task.sample(num_sets, size, rng=phase_generator("ablate", seed, size))
        arrays = [points.double().numpy() for points in sets.unpack()]
        bars = [_cost(x, best_start(x, k)) for x in arrays]
        for (division, exchange), run in _methods().items():
            run(arrays[0][: 4 * k], k, 0)  # compiles
            found = [_best(run, x, k, seconds) for x in arrays]
            ratios = np.array([cost / bar for (cost, _), bar in zip(found, bars, strict=True)])
            records.append(
                {
                    "size": size,
                    "division": division,
                    "exchanges": exchange,
                    "cost / Lloyd": float(ratios.mean()),
                    "error": standard_error(ratios),
                    "runs": float(np.mean([runs for _, runs in found])),
                }
            )
    return records


def _methods() -> dict[tuple[str, bool], Run]:
    """The methods, by division and whether clusters are exchanged."""
    learned, hand_made = shipped("kmeans").split, min_cost("proportional").split
    splits = {"random": RandomSplit(), "hand-made": hand_made, "learned": learned}
    found: dict[tuple[str, bool], Run] = {
        ("none", exchange): partial(_undivided, exchange=exchange) for exchange in (False, True)
    }
    for name, split in splits.items():
        found[name, True] = partial(_divided, DiCoNet(split, ExchangeMerge(), Growth()))
    plain = DiCoNet(learned, growth=Growth())
    found["learned", False] = partial(_divided, plain, exchange=False)
    return found


def _best(run: Run, x: np.ndarray, k: int, seconds: float) -> tuple[float, int]:
    """The lowest cost within the time, and the number of runs; the first run always finishes."""
    start, best, runs = time.process_time(), np.inf, 0
    while runs == 0 or time.process_time() - start < seconds * (1 - 0.5 / runs):
        best = min(best, run(x, k, runs))
        runs += 1
    return best, runs


def _divided(
    network: DiCoNet, x: np.ndarray, k: int, number: int, *, exchange: bool = True
) -> float:
    return kmeans(x, k, model=network, seed=number or None, exchange=exchange).value


def _undivided(x: np.ndarray, k: int, number: int, *, exchange: bool) -> float:
    """One k-means++ start, followed by the same exchanges and the same Lloyd."""
    labels = KMeans(k, n_init=1, random_state=number).fit(x).labels_.astype(np.int64)
    if exchange:
        points, ones = torch.from_numpy(x).float(), torch.ones(len(x))
        at, size = torch.from_numpy(labels), torch.tensor([len(x)])
        count = torch.tensor([k])
        labels = exchanged(points, ones, size, at, count, ExchangeMerge(), kicks=True).numpy()
    means = np.stack([x[labels == c].mean(0) for c in range(k)])
    weights = np.ones(len(x), np.float32)
    return _cost(x, lloyd(x.astype(np.float32), weights, means, rounds=300).labels)


def _cost(x: np.ndarray, labels: np.ndarray) -> float:
    parts = [x[labels == c] for c in np.unique(labels)]
    return float(sum(np.square(part - part.mean(0)).sum() for part in parts))
