"""From scores of edges to a tour."""

from __future__ import annotations

import numpy as np

from diconet.problems.tsp.search.fragments import greedy_fragments, join_nearest
from diconet.problems.tsp.search.metric import Metric


def greedy_tour(metric: Metric, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The tour that takes the best edges first and joins what is left at the nearest ends."""
    return join_nearest(metric, greedy_fragments(len(metric), edges, scores))
