"""Grows trees on knapsacks, with larger and larger cores, until the best choice is proven."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.noise import mix
from diconet.core.sets import SetBatch
from diconet.problems.knapsack.prices import Prices
from diconet.problems.knapsack.repair import Repaired

PAIRS = (2**12, 2**16, 2**16, 2**18, 2**18, 2**20)
"""The maximum number of pairs per node; the next entry after each round in which it was too low."""

FIRST_CORE = 32
LARGEST_CORE = 1_024
"""The initial and the maximum size of the core; it doubles while its trees are complete."""


@dataclass(eq=False)
class Hunt:
    """A knapsack of whole, positive values and weights, the best choice so far and its bound."""

    prices: Prices
    chosen: np.ndarray
    core: int = FIRST_CORE
    round: int = 0
    price: int = 0
    largest_core: int = LARGEST_CORE

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray, room: int) -> Hunt:
        """Starts from the greedy choice by value per weight."""
        chosen = np.zeros(len(values), dtype=bool)
        left = room
        for item in np.argsort(-(values / weights), kind="stable").tolist():
            if weights[item] <= left:
                left -= int(weights[item])
                chosen[item] = True
        best = int(values[chosen].sum())
        return cls(Prices(values, weights, room, best), chosen)

    def columns(self) -> tuple[np.ndarray, list[float]]:
        """The items and the context for the split and the merge."""
        prices = self.prices
        tight, sure = prices.chosen()
        self.price = tight.price
        budget, budget_2 = prices.budget_at(tight.price), prices.budget_at(sure.price)
        should = prices.values - sure.price - sure.rate * prices.weights > 0
        taken = np.where(sure.losses > budget_2, should, tight.taken)
        wrong = taken != should
        items = np.column_stack(
            [
                prices.values,
                prices.weights,
                taken,
                tight.losses,
                np.where(wrong, sure.losses, 0.0),
                np.where(wrong, 0.0, sure.losses),
            ]
        )
        room = _down(prices.room - int(prices.weights[taken].sum()))
        return items, [room, self.core, budget, budget_2, PAIRS[self.round]]

    def learn(self, answer: Repaired, example: int, chosen: np.ndarray) -> None:
        """Records a better choice and what the tree proved; sets the limits of the next tree."""
        prices = self.prices
        if bool(answer.found[example]):
            value = int(prices.values[chosen].sum())
            if value > prices.best and int(prices.weights[chosen].sum()) <= prices.room:
                prices.best, self.chosen = value, chosen
        if not bool(answer.whole[example]):
            self.round += 1
            if self.round < len(PAIRS):
                prices.search()
        elif bool(answer.covered[example]):
            prices.bound = prices.best
        else:
            prices.lower(self.price, float(answer.budget[example]))
            self.core *= 2
        prices.tighten()

    @property
    def over(self) -> bool:
        """Whether nothing is left to prove or to try."""
        return self.prices.proven or self.round >= len(PAIRS) or self.core > self.largest_core


def _down(whole: int) -> float:
    """The largest float64 that is at most a whole number."""
    near = float(whole)
    return float(np.nextafter(near, -np.inf)) if int(near) > whole else near


def batch_of(hunts: Sequence[Hunt], device: str | torch.device = "cpu") -> SetBatch:
    """Several knapsacks as a batch for the split and the merge, on a device."""
    columns = [hunt.columns() for hunt in hunts]
    return SetBatch.of(
        [torch.from_numpy(items) for items, _ in columns],
        torch.tensor([context for _, context in columns], dtype=torch.float64, device="cpu"),
    ).to(device)


@torch.no_grad()
def run(
    hunts: Sequence[Hunt], model: DiCoNet, seeds: torch.Tensor, *, seconds: float = math.inf
) -> None:
    """Grows and folds trees on all open knapsacks, until none is open.

    No tree is started after that many `seconds` of CPU time.
    """
    step, start = 0, time.process_time()
    while time.process_time() - start < seconds and (
        active := [i for i, hunt in enumerate(hunts) if not hunt.over]
    ):
        sets = batch_of([hunts[i] for i in active], seeds.device)
        outcome = model(sets, mix(seeds[torch.tensor(active, device=seeds.device)], step))
        chosen = outcome.answer.chosen
        for example, (i, mine) in enumerate(zip(active, sets.unpack(chosen), strict=True)):
            hunts[i].learn(outcome.answer, example, to_host(mine))
        step += 1
