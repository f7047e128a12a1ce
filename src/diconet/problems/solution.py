"""What a solver gives back, in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.tree import PartitionTree
from diconet.plot.stages import Labels, Stage, chosen_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Model = str | Path | DiCoNet | None
"""A network as it is asked for: a shipped name, a file or run folder, one that is built, or None
for the default."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """An answer: always valid, with its `value` and the `tree` it came from.

    `tree[j]` numbers, for every item, the node it was in after j cuts, and `model` is the network
    that was asked. Each problem adds what was asked for (`indices`, `labels`, `chosen`, `tour`) and
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

    def rows(self) -> Iterator[Sequence[Any]]:
        """The answer as a table: its header, then its rows."""
        raise NotImplementedError

    def write(self, path: Path, name: str) -> None:
        """Writes the answer in a format of its own, if the problem has one."""
        raise NotImplementedError

    # How it is drawn.

    def title(self) -> str:
        """What the answer is called."""
        return type(self).__name__.lower()

    def plane(self) -> np.ndarray:
        """The items as points of a plane."""
        raise NotImplementedError

    def answer_stage(self) -> Stage:
        """The answer alone."""
        raise NotImplementedError

    def part_stage(self, title: str, parts: np.ndarray) -> Stage:
        """What is known once the items are in these parts; the parts themselves, as a rule."""
        return Stage(title, parts)

    def stages(self, most: int = 6) -> list[Stage]:
        """The steps from all items down to the parts and back, at most `most` levels each way."""
        levels = chosen_levels(self.tree, most)
        down = [Stage(name, parts) for name, parts in levels]
        up = [self.part_stage(name, parts) for name, parts in reversed(levels)]
        return [*down[1:], *up] if len(down) > 1 else up

    def draw(self, ax: Axes, stage: Stage, *, final: bool = False) -> None:
        """Draws one step, or the answer in the end."""
        from diconet.plot.levels import draw_stage

        ax.set_aspect("equal")
        draw_stage(ax, self.plane(), stage)

    def finish(self, figure: Figure, axes: Sequence[Axes]) -> None:
        """Adds to a figure of all steps what its panels share."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the answer, on axes of your own or on the current ones."""
        from diconet.plot.levels import draw_answer

        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.gca()
        draw_answer(ax, self)
        return ax

    def plot_levels(self) -> Figure:
        """Draws how the answer came about, one panel per level."""
        from diconet.plot.levels import levels_figure

        return levels_figure(self)

    def save_levels(self, path: Path) -> Path:
        """Writes the picture of how the answer came about."""
        from diconet.plot.levels import save_levels

        return save_levels(self, path)

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

    def among(self, rows: np.ndarray) -> Partitions:
        """The partitions of more items: a first cut puts all but these rows (a mask) aside."""
        sides = np.zeros((len(self), len(rows)), dtype=bool)
        sides[0] = rows
        sides[1:, rows] = self._sides
        return Partitions(sides)


def labels_of(tree: PartitionTree) -> list[Partitions]:
    """For each example of a tree, the partition at every depth from the root down."""
    parts = tree.sides.split(tree.roots.sizes.tolist(), dim=1)
    return [Partitions(to_host(part)) for part in parts]
