"""A merge that applies the user's own solver to every leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from diconet.core.host import to_host
from diconet.core.tree import Level

_MOST_KEPT = 50_000
"""Answers cached for leaves that recur, as they do while a split converges."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The leaves of every example, as rows of the roots, and the solver's answer for each."""

    rows: list[list[torch.Tensor]]
    answers: list[list[Any]]

    @property
    def solution(self) -> Solved:
        """All leaves of all examples: `rows[i][j]` and `answers[i][j]` are leaf j of example i."""
        return self


class LeafSolver(nn.Module):
    """Calls `solver(items)` on each leaf's items, a NumPy array, and passes its answers up.

    Empty leaves are skipped. The solver must give the same answer for the same items.
    """

    def __init__(self, solver: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.solver = solver
        self._known: dict[bytes, Any] = {}

    def forward(self, level: Level, below: Solved | None, target: object) -> Solved:
        if self.solver is None:
            raise ValueError("a LeafSolver must be given its solver; weights do not hold one.")
        if below is None:
            many = range(len(level.roots))
            below = Solved([[] for _ in many], [[] for _ in many])
        sets, example, is_leaf = level.sets, level.example.tolist(), level.is_leaf.tolist()
        nodes = zip(sets.unpack(), sets.unpack(sets.index), example, is_leaf, strict=True)
        for items, index, root, solves in nodes:
            if solves and len(items):
                below.rows[root].append(index)
                below.answers[root].append(self._solved(items))
        return below

    def _solved(self, items: torch.Tensor) -> Any:
        assert self.solver is not None
        array = to_host(items)
        key = array.tobytes()
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = self.solver(array)
        return self._known[key]
