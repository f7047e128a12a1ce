"""The Divide and Conquer Network: a split, an optional merge, and how deep trees grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, Merge, PartitionTree, fold, grow


@dataclass(frozen=True, eq=False)
class Outcome:
    """A network's output for a batch: its trees and, with a merge, the answers at the roots."""

    tree: PartitionTree
    answer: Any = None

    @property
    def solution(self) -> Any:
        """What a task rewards: the merged solution or, without a merge, the tree itself."""
        return self.tree if self.answer is None else self.answer.solution

    @property
    def log_prob(self) -> Float[Tensor, "sets"] | None:
        """log p(Y | tree) of the target, if one was given."""
        return cast("Float[Tensor, 'sets'] | None", getattr(self.answer, "log_prob", None))


class Part(nn.Module):
    """A module that records its constructor's arguments in `config`, for saving to a file.

    Any module with a `config` of its constructor's arguments works as well.
    """

    config: dict[str, Any]
    general = False
    """Whether a network with this split is trained by `general_loss` by default."""
    many = False
    """Whether this split draws several cuts of a set from one forward pass, given several seeds."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]
        else:
            cls.config = {}


def _remembering(make: Callable[..., None]) -> Callable[..., None]:
    """A constructor that first records its arguments."""
    form = signature(make)

    @wraps(make)
    def made(self: Part, *given: Any, **named: Any) -> None:
        bound = form.bind(self, *given, **named)
        bound.apply_defaults()
        _, *rest = bound.arguments.items()
        self.config = {}
        for name, value in rest:
            several = form.parameters[name].kind is Parameter.VAR_KEYWORD
            self.config |= value if several else {name: value}
        make(self, *given, **named)

    return made


class DiCoNet(nn.Module):
    """Splits sets recursively into trees and merges partial answers back up them.

    Without a merge, the partition at the leaves is the answer. `depth=j` is short for
    `growth=Growth(depth=j)`.
    """

    def __init__(
        self,
        split: nn.Module,
        merge: nn.Module | None = None,
        growth: Growth | None = None,
        *,
        depth: int | None = None,
    ) -> None:
        super().__init__()
        if (growth is None) == (depth is None):
            raise ValueError(f"give one of growth and depth; got {growth} and {depth}.")
        self.split = split
        self.merge = merge
        self.growth = Growth(depth=depth) if growth is None else growth

    @property
    def device(self) -> torch.device:
        """The device of the weights; the CPU if there are none."""
        return next((weights.device for weights in self.parameters()), torch.device("cpu"))

    def forward(
        self,
        sets: SetBatch,
        seeds: Int[Tensor, "sets"] | None = None,
        target: Any | None = None,
        growth: Growth | None = None,
    ) -> Outcome:
        """Grows a tree on every set and folds it; cuts are random with seeds, likeliest without."""
        tree = grow(self.split, sets, growth or self.growth, seeds)
        if self.merge is None:
            return Outcome(tree)
        return Outcome(tree, fold(cast(Merge, self.merge), tree, target))
