"""The stages of an answer, which level pictures, the animation and the page draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Labels = np.ndarray
"""The node number of each item."""

LEFT = -1
"""The part of items that belong to no part (yet)."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One step: the part of every item, closed lines through items, and marks at positions.

    Parts keep their number from one step to the next if possible. A line has the number of the
    part it goes through.
    """

    title: str
    parts: np.ndarray
    cycles: list[tuple[int, np.ndarray]] = field(default_factory=list)
    marks: np.ndarray | None = None


def level_name(depth: int, deepest: int) -> str:
    """The name of a level."""
    if depth == 0:
        return "root"
    return "leaves" if depth == deepest else f"level {depth}"


def chosen_levels(tree: Sequence[Labels], most: int) -> list[tuple[str, np.ndarray]]:
    """Root, leaves and some levels between, each with its name and parts, from the root down."""
    deepest = len(tree) - 1
    keep = np.unique(np.linspace(0, deepest, min(most, deepest + 1)).round().astype(int))
    parts = stable_parts([tree[depth] for depth in keep.tolist()])
    names = [level_name(depth, deepest) for depth in keep.tolist()]
    return list(zip(names, parts, strict=True))


def stable_parts(levels: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Successively finer partitions, renumbered so that one child keeps its parent's number."""
    current = np.zeros(len(levels[0]), dtype=np.int64)
    unused = 1
    found = []
    for labels in levels:
        renamed = np.empty_like(current)
        heirs: set[int] = set()
        for label in np.unique(labels).tolist():
            members = labels == label
            parent = int(current[members][0])
            number = parent
            if parent in heirs:
                number, unused = unused, unused + 1
            heirs.add(parent)
            renamed[members] = number
        found.append(renamed)
        current = renamed
    return found


def relabelled(labels: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Labels renumbered to match the parts that they share most items with."""
    taken: set[int] = set()
    renamed = np.empty_like(parts)
    for label in np.unique(labels).tolist():
        members = labels == label
        numbers, counts = np.unique(parts[members], return_counts=True)
        best = next((n for n in numbers[np.argsort(-counts)].tolist() if n not in taken), None)
        number = max([*taken, int(parts.max())]) + 1 if best is None else best
        taken.add(number)
        renamed[members] = number
    return renamed
