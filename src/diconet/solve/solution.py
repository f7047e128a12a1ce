"""What a solver gives back, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diconet.tree import PartitionTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels = np.ndarray
"""For each item, the number of the node it is in."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """An answer: always valid, with its `value` and the `tree` it came from.

    `tree[j]` numbers, for every item, the node it was in after j cuts. Each task adds what was
    asked for (`indices`, `labels`, `chosen`, `tour`) and what is known of its quality.
    """

    value: float
    tree: tuple[Labels, ...]

    def quality(self) -> str:
        """What is known of how good the answer is, in a few words."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the answer."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value:.6g}, {self.quality()})"


def labels_of(tree: PartitionTree) -> list[tuple[Labels, ...]]:
    """For each example of a tree, the partition at every depth from the root down."""
    sizes = tree.roots.sizes.tolist()
    levels = [tree.nodes_at(depth).split(sizes) for depth in range(tree.depth + 1)]
    return [tuple(level[i].cpu().numpy() for level in levels) for i in range(len(sizes))]
