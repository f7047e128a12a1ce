"""The interface of a task and of an oracle."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.core.sets import SetBatch


@runtime_checkable
class Task(Protocol):
    """A problem to learn: how to draw inputs, and how good a solution is."""

    @property
    def num_features(self) -> int:
        """The number of features per item."""

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh inputs; the same generator state gives the same inputs."""

    def reward(self, sets: SetBatch, solution: Any) -> Float[Tensor, "sets"]:
        """One number per set, higher is better.

        The solution is the output of the network's merge or, without a merge, the partition tree.
        """


@runtime_checkable
class Oracle(Protocol):
    """A trusted solver: returns the target for every set, with a `repeat` like that of the sets."""

    def __call__(self, sets: SetBatch) -> Any:
        """The right answers."""
