"""A yes or no for every item, drawn all at once or in rounds that see what was decided before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.noise import mix, uniform
from diconet.core.segments import segment_sort
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

    In every round, the items whose decision is surest are decided, an equal share each time; what
    was decided is an input of the next round. One round is one independent coin per item.

    With `centred`, logits add up to 0 over a set: where yes and no mean the same, to say yes to
    all is no answer, but it is where a policy gradient easily ends.
    """

    def __init__(
        self, rounds: int = 1, extra: int = 0, centred: bool = False, **encoder: Any
    ) -> None:
        super().__init__()
        if rounds < 1:
            raise ValueError(f"rounds must be at least 1; got {rounds}.")
        self.rounds = rounds
        self.encoder = SetEncoder(extra=extra + (2 if rounds > 1 else 0), **encoder)
        self.centred = centred
        self.config = {**self.encoder.config, "rounds": rounds, "extra": extra}
        self.config["centred"] = centred
        self.head = nn.Linear(self.encoder.width, 1)
        nn.init.zeros_(self.head.bias)

    def forward(
        self,
        sets: SetBatch,
        seeds: Int[Tensor, "sets"] | None,
        extra: Float[Tensor, "items extra"] | None = None,
        given: Bool[Tensor, "items"] | None = None,
    ) -> Decided:
        """Decides at random by the seeds, the likelier way without, or as `given` says."""
        logit = self.logits(sets, seeds, self._with_state(sets, extra, None, None))
        if self.rounds == 1:
            return Decided(self._drawn(sets, logit, seeds, 0) if given is None else given, logit)
        done = torch.zeros(sets.num_items, dtype=torch.bool, device=logit.device)
        yes = done.clone()
        final = logit
        for number in range(self.rounds):
            if number:
                logit = self.logits(sets, seeds, self._with_state(sets, extra, done, yes))
            now = self._surest(sets, logit, done, number)
            choice = self._drawn(sets, logit, seeds, number) if given is None else given
            yes = torch.where(now, choice, yes)
            final = torch.where(now, logit, final)
            done = done | now
        return Decided(yes, final)

    def logits(
        self,
        sets: SetBatch,
        seeds: Int[Tensor, "sets"] | None,
        extra: Float[Tensor, "items extra"] | None,
    ) -> Float[Tensor, "items"]:
        """How strongly each item leans to a yes."""
        logits = self.head(self.encoder(sets, seeds, extra)).squeeze(1)
        return logits - sets.mean(logits)[sets.owner] if self.centred else logits

    def _with_state(
        self,
        sets: SetBatch,
        extra: Float[Tensor, "items extra"] | None,
        done: Bool[Tensor, "items"] | None,
        yes: Bool[Tensor, "items"] | None,
    ) -> Float[Tensor, "items both"] | None:
        if self.rounds == 1:
            return extra
        if done is None or yes is None:
            state = self.head.weight.new_zeros(sets.num_items, 2)
        else:
            sign = torch.where(yes, 1.0, -1.0) * done
            state = torch.stack([done.to(sign.dtype), sign], 1).to(self.head.weight.dtype)
        return state if extra is None else torch.cat([extra, state], 1)

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
