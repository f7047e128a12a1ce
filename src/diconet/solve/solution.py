"""What a solver gives back, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from diconet.model import DiCoNet
from diconet.tree import PartitionTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Labels = np.ndarray
"""For each item, the number of the node it is in."""

Model = str | Path | DiCoNet | None
"""A network as it is asked for: a shipped name, a weights file, one that is built, or the usual."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """An answer: always valid, with its `value` and the `tree` it came from.

    `tree[j]` numbers, for every item, the node it was in after j cuts, and `model` is the network
    that was asked. Each task adds what was asked for (`indices`, `labels`, `chosen`, `tour`) and
    what is known of its quality.
    """

    value: float
    tree: Sequence[Labels]
    model: Model = field(default=None, kw_only=True)

    def quality(self) -> str:
        """What is known of how good the answer is, in a few words."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """All of it as one flat record in plain Python, the answer itself last, as a list."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the answer, on axes of your own or on the current ones."""
        from diconet.plot.levels import draw_answer

        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.gca()
        draw_answer(ax, self)
        return ax

    def plot_levels(self) -> Figure:
        """Draws how the answer came about, a panel a level."""
        from diconet.plot.levels import levels_figure

        return levels_figure(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value:.6g}, {self.quality()})"


class Partitions(Sequence[Labels]):
    """The partition of an example's items after 0, 1, 2, ... cuts, each numbered when asked for.

    Made from each item's side of every cut on its way down, (cuts, items).
    """

    def __init__(self, sides: np.ndarray) -> None:
        self._sides = sides

    def __len__(self) -> int:
        return len(self._sides) + 1

    @overload
    def __getitem__(self, depth: int) -> Labels: ...
    @overload
    def __getitem__(self, depth: slice) -> list[Labels]: ...
    def __getitem__(self, depth: int | slice) -> Labels | list[Labels]:
        if isinstance(depth, slice):
            return [self[j] for j in range(len(self))[depth]]
        labels = np.zeros(self._sides.shape[1], dtype=np.int64)
        for cuts, side in enumerate(self._sides[: range(len(self))[depth]]):
            labels = 2 * labels + side
            if cuts % 32 == 31:  # before the numbers outgrow 64 bits
                labels = np.unique(labels, return_inverse=True)[1]
        return np.unique(labels, return_inverse=True)[1]

    def of_items(self, rows: np.ndarray) -> Partitions:
        """The partitions of other items, each of which goes where item `rows[i]` goes."""
        return Partitions(self._sides[:, rows])


def labels_of(tree: PartitionTree) -> list[Partitions]:
    """For each example of a tree, the partition at every depth from the root down."""
    parts = tree.sides.split(tree.roots.sizes.tolist(), dim=1)
    return [Partitions(part.cpu().numpy()) for part in parts]
