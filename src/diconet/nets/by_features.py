"""Several networks in one: each set goes to the one made for its number of features."""

from __future__ import annotations

from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.model import Part
from diconet.core.sets import SetBatch


class ByFeatures(Part):
    """One network per number of features, named after it: `ByFeatures(d2=..., d10=...)`."""

    many = True

    def __init__(self, **networks: nn.Module) -> None:
        super().__init__()
        self.networks = nn.ModuleDict(networks)

    def of(self, num_features: int) -> nn.Module:
        """The network for sets with this many features."""
        name = f"d{num_features}"
        if name not in self.networks:
            known = ", ".join(one.removeprefix("d") for one in self.networks)
            raise ValueError(
                f"points must have one of {known} coordinates for this model; got {num_features}."
            )
        return self.networks[name]

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None = None) -> Any:
        return self.of(sets.num_features)(sets, seeds)
