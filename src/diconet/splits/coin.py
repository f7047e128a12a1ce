"""A coin for every item: the split of section 4.1 of the paper, and one that learns nothing."""

from __future__ import annotations

from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.noise import mix, uniform
from diconet.sets import SetBatch, standardise
from diconet.tree import Cut


def coin_cut(
    sets: SetBatch, logits: Float[Tensor, "items"], seeds: Int[Tensor, "sets"] | None
) -> Cut:
    """One independent coin an item: drawn with seeds, the likelier side without."""
    prob = torch.sigmoid(logits)
    if seeds is None:
        side = logits > 0
    else:
        draws = uniform(mix(seeds[sets.owner], sets.position))
        side = draws < prob.detach()
    log_prob = sets.sum(F.logsigmoid(torch.where(side, logits, -logits)))
    return Cut(side, log_prob, prob)


class SetSplit(nn.Module):
    """A coin for every item, from a network over the set (eq. fr2).

    Each layer mixes an item's own features with the mean over its set, and sees the input again.
    Items are standardised per node; the node's mean and variance enter the first layer. Sigmoids
    one on top of the other nearly level out what differs between items; tanh does not.

    With tanh it mostly begins with firm cuts of some direction: its own weights keep signals at
    their size (Glorot and Bengio 2010), and are larger at the end. A policy gradient has little to
    begin with where all coins are nearly fair, as no single item makes a difference then.
    """

    def __init__(
        self,
        num_features: int,
        width: int = 15,
        num_layers: int = 5,
        activation: Literal["sigmoid", "tanh"] = "sigmoid",
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        if activation not in ("sigmoid", "tanh"):
            raise ValueError(f"activation must be sigmoid or tanh; got {activation!r}.")
        self.config = {
            "num_features": num_features,
            "width": width,
            "num_layers": num_layers,
            "activation": activation,
        }
        self.activation = torch.tanh if activation == "tanh" else torch.sigmoid
        self.own = nn.ModuleList(
            nn.Linear(num_features + (width if r else 0), width) for r in range(num_layers)
        )
        self.shared = nn.ModuleList(
            nn.Linear(width if r else num_features + 1, width, bias=False)
            for r in range(num_layers)
        )
        self.head = nn.Linear(width, 1)
        if activation == "tanh":
            gain = nn.init.calculate_gain("tanh")
            for own in self.own:
                nn.init.xavier_normal_(cast(Tensor, own.weight), gain)
            nn.init.xavier_normal_(self.head.weight, 4 * gain)
            nn.init.zeros_(self.head.bias)

    def logits(self, sets: SetBatch) -> Float[Tensor, "items"]:
        """How strongly each item leans to the second side."""
        x, mean, spread = standardise(sets)
        x = x.to(self.head.weight.dtype)  # the items may be in double precision
        shared = torch.cat([mean, spread.square()], 1).to(x.dtype)
        hidden = x
        for r, (own, share) in enumerate(zip(self.own, self.shared, strict=True)):
            if r:
                shared = sets.mean(hidden)
                hidden = torch.cat([hidden, x], 1)
            hidden = self.activation(own(hidden) + share(shared)[sets.owner])
        return self.head(hidden).squeeze(1)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return coin_cut(sets, self.logits(sets), seeds)


class RandomSplit(nn.Module):
    """A fair coin for every item: the split that learns nothing."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.config = {"seed": seed}
        self.seed = seed

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        logits = sets.items.new_zeros(sets.num_items)
        if seeds is None:
            # There is no likelier side of a fair coin; the same for all sets of a size.
            seeds = mix(sets.sizes, self.seed)
        return coin_cut(sets, logits, seeds)
