"""A yes or no for every item, drawn all at once or in rounds that see what was decided before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.noise import mix, uniform
from diconet.core.segments import ragged_arange, segment_sort
from diconet.core.sets import SetBatch
from diconet.nets.encoder import SetEncoder

_SALT = 11
"""Draws of one round differ from those of the next by this much in their salt."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Each item's decision, and how likely it and its opposite were: `logit` is of a yes."""

    yes: Bool[Tensor, "items"]
    logit: Float[Tensor, "items"]

    @property
    def log_prob(self) -> Float[Tensor, "items"]:
        """The log-probability of each decision, given those of earlier rounds."""
        return F.logsigmoid(torch.where(self.yes, self.logit, -self.logit))


class Decider(nn.Module):
    """Says yes or no to every item of a set, with `extra` numbers per item to go by.

    An encoder looks at each set once, however many answers are drawn for it. In every round, the
    items whose decision is surest are decided, an equal share each time. Later rounds see what was
    decided before through one more layer, in which an item is one thing to the others while it is
    open, another one when refused, and a third when accepted. One round is one independent coin
    per item.

    With `centred`, logits add up to 0 over a set: where yes and no mean the same, to say yes to
    all is no answer, but it is where a policy gradient easily ends.
    """

    def __init__(
        self, rounds: int = 1, extra: int = 0, centred: bool = False, **encoder: Any
    ) -> None:
        super().__init__()
        if rounds < 1:
            raise ValueError(f"rounds must be at least 1; got {rounds}.")
        self.encoder = SetEncoder(extra=extra, **encoder)
        self.rounds, self.centred = rounds, centred
        self.config = {**self.encoder.config, "rounds": rounds, "centred": centred}
        width = self.encoder.width
        if rounds > 1:
            self.kinds = nn.Linear(width, 3 * width)
            self.layer = self.encoder.layer()
            self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.bias)

    def forward(
        self,
        sets: SetBatch,
        seeds: Int[Tensor, "draws"] | None,
        extra: Float[Tensor, "items extra"] | None = None,
        copies: int = 1,
    ) -> Decided:
        """Decides at random by the seeds, `copies` for each set; the likelier way without seeds."""
        first = seeds if seeds is None or copies == 1 else seeds[::copies].contiguous()
        sets = self.encoder.related(sets)
        look = self.encoder(sets, first, extra)
        if self.rounds > 1:
            look = self.kinds(look).reshape(-1, look.shape[1])
        logit = self._logits(sets, look)
        rows = torch.arange(sets.num_items, device=logit.device)
        if copies > 1:
            which = torch.arange(len(sets), device=rows.device).repeat_interleave(copies)
            rows = ragged_arange(sets.offsets[:-1][which], sets.sizes[which])
            sets, logit = sets.take(which).as_roots(), logit.index_select(0, rows)
        if self.rounds == 1:
            return Decided(self._drawn(sets, logit, seeds, 0), logit)
        kind = torch.zeros_like(rows)
        final = logit
        for number in range(self.rounds):
            if number:
                logit = self._logits(sets, look, 3 * rows + kind)
            now = self._surest(sets, logit, kind > 0, number)
            choice = 1 + self._drawn(sets, logit, seeds, number).long()
            kind = torch.where(now, choice, kind)
            final = torch.where(now, logit, final)
        return Decided(kind > 1, final)

    def _logits(
        self,
        sets: SetBatch,
        look: Float[Tensor, "rows width"],
        rows: Int[Tensor, "items"] | None = None,
    ) -> Float[Tensor, "items"]:
        """How strongly each item leans to a yes, given what it is to the others by now."""
        if self.rounds > 1:
            look = look[::3] if rows is None else look.index_select(0, rows)
            look = self.norm(self.layer(look, sets, self.encoder.ends(sets)))
        logits = self.head(look).squeeze(1)
        return logits - sets.mean(logits)[sets.owner] if self.centred else logits

    def _surest(
        self,
        sets: SetBatch,
        logit: Float[Tensor, "items"],
        done: Bool[Tensor, "items"],
        number: int,
    ) -> Bool[Tensor, "items"]:
        """The undecided items that this round decides."""
        sure = torch.where(done, torch.inf, logit.detach().abs())
        rank = torch.empty_like(sets.position)
        rank[segment_sort(-sure, sets.owner)] = sets.position
        upto = (sets.sizes * (number + 1) + self.rounds - 1) // self.rounds
        return (rank < upto[sets.owner]) & ~done

    def _drawn(
        self,
        sets: SetBatch,
        logit: Float[Tensor, "items"],
        seeds: Int[Tensor, "sets"] | None,
        number: int,
    ) -> Bool[Tensor, "items"]:
        if seeds is None:
            return logit > 0
        mixed = mix(seeds, _SALT * number) if number else seeds
        return uniform(mix(mixed[sets.owner], sets.position)) < torch.sigmoid(logit.detach())
