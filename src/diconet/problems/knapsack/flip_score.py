"""A score of how likely each item is to be flipped, learned from the network's own answers."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.host import from_host
from diconet.core.model import DiCoNet, Part
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.problems.knapsack.greedy import whole_instances
from diconet.problems.knapsack.repair import (
    BUDGET,
    BUDGET_2,
    FLIPPED,
    KEPT,
    LOSS,
    ROOM,
    TAKEN,
    WEIGHT,
    open_items,
)
from diconet.problems.knapsack.search import Hunt, batch_of, run

NUM_INPUTS = 7

_STEEP = 4.0
"""How fast the untrained score decreases with an item's loss, in units of the budget."""


class FlipScore(Part):
    """One score per item: the higher, the likelier a better choice flips it.

    Untrained, it follows the loss of flipping the item. All inputs are dimensionless.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1; got {width}.")
        self.body = nn.Sequential(
            nn.Linear(NUM_INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, sets: SetBatch) -> Float[Tensor, "items"]:
        inputs = score_inputs(sets)
        return self.head(self.body(inputs)).squeeze(1) - _STEEP * inputs[:, 0]


def score_inputs(sets: SetBatch) -> Float[Tensor, "items inputs"]:
    """Losses relative to the budgets, weights relative to the mean weight and to the room."""
    items, context = sets.items, sets.context[sets.owner]
    share = (items[:, LOSS] / context[:, BUDGET].clamp(min=1e-9)).clamp(max=2)
    second = items[:, KEPT : FLIPPED + 1] / context[:, BUDGET_2, None].clamp(min=1e-9)
    mean = sets.mean(items[:, WEIGHT]).clamp(min=1e-9)[sets.owner]
    weight, room = items[:, WEIGHT] / mean, context[:, ROOM] / mean
    columns = [
        share,
        second[:, 0].clamp(max=2),
        second[:, 1].clamp(max=2),
        items[:, TAKEN],
        weight.clamp(max=5),
        room.clamp(-5, 5),
        torch.where(items[:, TAKEN] > 0, 0.0, (weight - room).abs().clamp(max=5)),
    ]
    return torch.stack(columns, 1).float()


def flip_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Cross-entropy of the scores against the items that the best answer found flips.

    The answers come from the same trees, grown until they are proven, not from a solver's labels.
    """
    hunts = [Hunt.of(*one) for one in whole_instances(batch.sets)]
    sets = batch_of(hunts, batch.seeds.device)
    run(hunts, model, batch.seeds[:: config.tree_samples])
    best = from_host(np.concatenate([hunt.chosen for hunt in hunts]), sets.items)
    target = best != (sets.items[:, TAKEN] > 0)
    possible = open_items(sets)
    scores = model.split.network(sets)[possible]  # type: ignore[operator]
    loss = F.binary_cross_entropy_with_logits(scores, target[possible].float())
    value = sum(hunt.prices.best for hunt in hunts) / len(hunts)
    return loss, {"loss": loss.item(), "score": float(value)}
