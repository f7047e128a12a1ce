"""How the merge of k-means learns which exchanges pay: from what trying them gives."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from diconet.core.host import from_host, to_host
from diconet.core.model import DiCoNet
from diconet.core.task import Task
from diconet.core.tree import grow
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.problems.kmeans.exchange import ExchangeMerge, arrays_of, as_array
from diconet.problems.kmeans.exchange_kernels import COST, FEATURES
from diconet.problems.kmeans.exchange_search import exchange_node, survey

_LARGEST = 3.0
"""Bound on the log of what an exchange realises over what was seen of it."""


def exchange_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """How far the merge's estimates of exchanges are from what trying them gives.

    Every cluster of the likeliest trees is tried, as cut and as given up; of half the sets before
    any exchange was made, of the others after as many as pay, where most of the search is spent.
    """
    merge = cast(ExchangeMerge, model.merge)
    with torch.no_grad():
        leaves = grow(model.split, batch.sets, model.growth).leaves
    features, ratios = [], []
    parts = zip(batch.sets.unpack(), batch.sets.unpack(leaves), strict=True)
    for number, (points, labels) in enumerate(parts):
        x, at = as_array(points.float()), to_host(labels).copy()
        k, w = int(at.max()) + 1, np.ones(len(x), np.float32)
        if k < 3:
            continue
        known = arrays_of(x, at, k)
        tries = int(merge.tries * k) if number % 2 else 0
        exchange_node(x, w, *known, merge.rounds, tries, *merge.network())
        about, found = np.empty((k, FEATURES)), np.empty((2, k))
        survey(x, w, *known, about, found)
        features.append(about)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(np.log(found / known[6][:COST]).T)
    if not features:
        return batch.sets.items.new_zeros(()), {"loss": 0.0, "score": 0.0}
    target = from_host(np.concatenate(ratios), leaves).float().nan_to_num(0.0, _LARGEST, -_LARGEST)
    guess = merge.choice(from_host(np.concatenate(features), leaves).float())
    loss = F.smooth_l1_loss(guess, target.clamp(-_LARGEST, _LARGEST))
    return loss, {"loss": loss.item(), "score": -loss.item()}
