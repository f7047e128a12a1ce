"""The split of section 4.1 of the paper: one coin flip per item, from a network over its set."""

from __future__ import annotations

from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.coin import coin_cut
from diconet.core.model import Part
from diconet.core.sets import SetBatch, standardise
from diconet.core.tree import Cut


class SetSplit(Part):
    """One coin flip per item, with odds from a network over the set (eq. fr2).

    Each layer mixes an item's own features with the mean over its set, and sees the input again.
    Items are standardised per node, with `per_feature` each feature separately; the node's mean and
    variance enter the first layer.

    Stacked sigmoids nearly erase the differences between items: with the usual initialisation, the
    probabilities after five layers have a variance below 2e-4, which gives a policy gradient
    nothing to work with. With `gain`, weights preserve the size of signals (Glorot and Bengio 2010;
    4 is for sigmoids) and biases centre them, so that training begins with a cut in some direction.
    The same holds for tanh, whose weights are always drawn that way.
    """

    def __init__(
        self,
        num_features: int,
        width: int = 15,
        num_layers: int = 5,
        activation: Literal["sigmoid", "tanh"] = "sigmoid",
        gain: float | None = None,
        per_feature: bool = False,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        if activation not in ("sigmoid", "tanh"):
            raise ValueError(f"activation must be sigmoid or tanh; got {activation!r}.")
        if gain is not None and not gain > 0:
            raise ValueError(f"gain must be above 0; got {gain}.")
        self.per_feature = per_feature
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
            gain = nn.init.calculate_gain("tanh") if gain is None else gain
            self._begin(gain, last_gain=4 * gain, middle=0.0)
        elif gain is not None:
            self._begin(gain, last_gain=gain, middle=0.5)

    @torch.no_grad()
    def _begin(self, gain: float, last_gain: float, middle: float) -> None:
        """Draws the weights with `gain`; biases subtract `middle`, the centre of an activation."""
        for number, layer in enumerate((*self.own, self.head)):
            is_last = layer is self.head
            weight, bias = cast(Tensor, layer.weight), cast(Tensor, layer.bias)
            nn.init.xavier_normal_(weight, last_gain if is_last else gain)
            if number > 0 and (middle or is_last):
                bias.copy_(-middle * weight[:, : self.head.in_features].sum(1))

    def logits(self, sets: SetBatch) -> Float[Tensor, "items"]:
        """The log-odds of the second side, for each item."""
        x, mean, spread = standardise(sets, per_feature=self.per_feature)
        x = x.to(self.head.weight.dtype)  # the items may be in double precision
        shared = torch.cat([mean, spread.square().mean(1, keepdim=True)], 1).to(x.dtype)
        hidden = x
        for r, (own, share) in enumerate(zip(self.own, self.shared, strict=True)):
            if r:
                shared = sets.mean(hidden)
                hidden = torch.cat([hidden, x], 1)
            hidden = self.activation(own(hidden) + share(shared)[sets.owner])
        return self.head(hidden).squeeze(1)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return coin_cut(sets, self.logits(sets), seeds)
