"""The split for user tasks: one coin flip per item, with odds from the set encoder."""

from __future__ import annotations

from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from diconet.core.coin import coin_cut
from diconet.core.model import Part
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.encoder import SetEncoder


class GeneralSplit(Part):
    """One coin flip per item, from one forward pass per set, which its cuts share.

    With `centred`, the log-odds add up to 0 over a set: if the two sides mean the same, putting all
    items on one is no answer, but a policy gradient easily ends there. The other arguments are
    those of a `SetEncoder`.
    """

    general = many = True

    def __init__(self, centred: bool = False, **encoder: Any) -> None:
        super().__init__()
        self.centred = centred
        self.encoder = SetEncoder(**encoder)
        self.head = nn.Linear(self.encoder.width, 1)
        nn.init.zeros_(self.head.bias)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        logits: Tensor = self.head(self.encoder(sets, seeds)).squeeze(1)
        if self.centred:
            logits = logits - sets.mean(logits)[sets.owner]
        return coin_cut(sets, logits, seeds)
