"""The split for anyone's task: a coin for every item, from the general network over its set."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.coin import coin_cut
from diconet.core.model import Part
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.encoder import SetEncoder


class GeneralSplit(Part):
    """A coin for every item, from one look at the set; `many` draws several cuts from it.

    With `centred`, the log-odds add up to 0 over a set: where the two sides mean the same, to put
    all on one is no answer, but it is where a policy gradient easily ends. The other arguments are
    those of a `SetEncoder`.
    """

    general = True

    def __init__(self, centred: bool = False, **encoder: Any) -> None:
        super().__init__()
        self.centred = centred
        self.encoder = SetEncoder(**encoder)
        self.head = nn.Linear(self.encoder.width, 1)
        nn.init.zeros_(self.head.bias)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return coin_cut(sets, self._logits(sets, seeds), seeds)

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)`, where there are `times` seeds per set."""
        times = len(seeds) // len(sets)
        logits = self._logits(sets, seeds[::times].contiguous())
        return coin_cut(sets.repeat(times), sets.repeated(logits, times), seeds)

    def _logits(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Float[Tensor, "items"]:
        logits: Tensor = self.head(self.encoder(sets, seeds)).squeeze(1)
        return logits - sets.mean(logits)[sets.owner] if self.centred else logits
