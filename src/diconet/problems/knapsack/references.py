"""What a knapsack network is compared with: Dantzig's greedy, in two variants."""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor

from diconet.core.sets import SetBatch
from diconet.problems.knapsack.greedy import by_ratio, greedy_fill


def greedy_that_stops(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Items by falling value per weight, up to the first that does not fit: the paper's Greedy."""
    return greedy_fill(sets, by_ratio(sets), skip=False)


def greedy_that_skips(sets: SetBatch) -> Bool[Tensor, "items"]:
    """Items by falling value per weight, passing over what does not fit."""
    return greedy_fill(sets, by_ratio(sets))
