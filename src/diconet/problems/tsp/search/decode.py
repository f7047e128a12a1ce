"""Tours from edge scores."""

from __future__ import annotations

import numpy as np

from diconet.problems.tsp.search.fragments import greedy_fragments, join_nearest
from diconet.problems.tsp.search.metric import Metric


def greedy_tour(metric: Metric, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The tour that takes the best edges first and joins the remaining paths at near ends."""
    return join_nearest(metric, greedy_fragments(len(metric), edges, scores))


def strip_tour(cities: np.ndarray) -> np.ndarray:
    """The tour up and down strips of the map, for when there is no time for anything else."""
    wide = max(float(np.ptp(cities[:, 0])), np.finfo(np.float64).tiny)
    many = max(1, round((len(cities) / 3) ** 0.5))
    strip = np.minimum((cities[:, 0] - cities[:, 0].min()) / wide * many, many - 1).astype(np.int64)
    return np.lexsort((np.where(strip % 2 == 0, cities[:, 1], -cities[:, 1]), strip))
