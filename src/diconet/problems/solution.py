"""The result of a solver, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.tree import PartitionTree
from diconet.plot import levels
from diconet.plot.stages import Labels, Stage, chosen_levels, level_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Model = str | Path | DiCoNet | None
"""How a network can be specified: a shipped name, a file or run folder, a built network, or None
for the default."""

Found = TypeVar("Found", bound="Solution")

_LEVELS, _PARTS = 8, 12
"""The maximum number of levels, and of parts per level, in the text form of a tree."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """An answer: always valid, with its `value` and the `tree` it came from.

    `tree[j]` is, for every item, the number of its node after j cuts. `model` is the requested
    network, and `source` the pandas table of the items, if there was one. Each problem adds
    its answer (`indices`, `labels`, `chosen`, `tour`) and what is known of its quality.
    """

    value: float
    tree: Sequence[Labels]
    model: Model = field(default=None, kw_only=True)
    source: Any = field(default=None, kw_only=True)

    def quality(self) -> str:
        """What is known of the answer's quality, in a few words."""
        raise NotImplementedError

    def note(self) -> str | None:
        """Why something about the quality is unknown, if so."""
        return None

    def record(self) -> dict[str, Any]:
        """A flat record in plain Python; the answer itself comes last, as a list."""
        raise NotImplementedError

    def item_columns(self) -> dict[str, np.ndarray]:
        """The items as named columns."""
        raise NotImplementedError

    def answer_columns(self) -> dict[str, Any]:
        """The answer as named columns, with one cell per item."""
        raise NotImplementedError

    def frame(self, rows: pd.DataFrame | None = None) -> pd.DataFrame:
        """The answer beside the items, as a pandas table with one row per item.

        The rows are those given, or else the table that was solved, with its index and all of its
        columns; for arrays, new columns are made.

        >>> import pandas as pd, diconet
        >>> towns = pd.DataFrame({"x": [0, 9, 1, 8], "y": [0, 9, 1, 8]}, index=list("abcd"))
        >>> diconet.kmeans(towns, 2).frame()["label"].to_dict()
        {'a': 0, 'b': 1, 'c': 0, 'd': 1}
        """
        import pandas as pd

        rows = self.source if rows is None else rows
        if not isinstance(rows, pd.DataFrame):
            rows = pd.DataFrame(self.item_columns(), index=getattr(rows, "index", None))
        answers = {
            name if name not in rows.columns else f"diconet_{name}": pd.Series(cells, rows.index)
            for name, cells in self.answer_columns().items()
        }
        return rows.assign(**answers)

    def more_tables(self) -> dict[str, pd.DataFrame]:
        """Further tables to write, by name; their columns are those of the items."""
        return {}

    def write(self, path: Path, name: str) -> None:
        """Writes the answer in the problem's own format, if it has one."""
        raise NotImplementedError

    # Drawing.

    def title(self) -> str:
        """The title of the answer."""
        return type(self).__name__.lower()

    def plane(self) -> np.ndarray:
        """The items as points in the plane."""
        raise NotImplementedError

    def answer_stage(self) -> Stage:
        """The answer alone."""
        raise NotImplementedError

    def part_stage(self, title: str, parts: np.ndarray) -> Stage:
        """The stage with items in these parts; by default, just the parts."""
        return Stage(title, parts)

    def stages(self, most: int = 6) -> list[Stage]:
        """The stages from all items down to the parts and back, at most `most` levels each way."""
        levels = chosen_levels(self.tree, most)
        down = [Stage(name, parts) for name, parts in levels]
        up = [self.part_stage(name, parts) for name, parts in reversed(levels)]
        return [*down[1:], *up] if len(down) > 1 else up

    def draw(self, ax: Axes, stage: Stage, *, final: bool = False) -> None:
        """Draws one stage, or the final answer."""
        ax.set_aspect("equal")
        levels.draw_stage(ax, self.plane(), stage)

    def finish(self, figure: Figure, axes: Sequence[Axes]) -> None:
        """Adds to a figure of all stages what its panels share."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the answer, on the given axes or the current ones."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.gca()
        levels.draw_answer(ax, self)
        return ax

    def plot_levels(self) -> Figure:
        """Draws how the answer was found, one panel per level."""
        return levels.levels_figure(self)

    def save_levels(self, path: Path) -> Path:
        """Writes a picture of how the answer was found."""
        return levels.save(levels.levels_figure(self), path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value:.6g}, {self.quality()})"

    def _repr_html_(self) -> str:
        """The answer in a notebook: a picture, and what is known of its quality."""
        return levels.answer_html(self)


def handed_back(found: list[Found], given: Any, many: bool) -> Found | list[Found]:
    """One answer for one instance, a list for a list; each keeps its source table."""
    tables = given if many else [given]
    kept = [
        replace(one, source=table) if hasattr(table, "iloc") else one
        for one, table in zip(found, tables, strict=True)
    ]
    return kept if many else kept[0]


def numbered(places: np.ndarray, count: int) -> pd.Series:
    """For each of `count` items, its index in a list of `places`; missing if it is not there."""
    import pandas as pd

    return pd.Series(range(len(places)), index=places).reindex(range(count)).astype("Int64").array


class Partitions(Sequence[Labels]):
    """The partition of an example's items after 0, 1, 2, ... cuts, each computed on demand.

    Made from each item's side of every cut on its path, (cuts, items).
    """

    def __init__(self, sides: np.ndarray) -> None:
        self.sides = sides

    @classmethod
    def uncut(cls, items: int) -> Partitions:
        """All items in one part."""
        return cls(np.zeros((0, items), dtype=bool))

    def __len__(self) -> int:
        return len(self.sides) + 1

    @overload
    def __getitem__(self, depth: int) -> Labels: ...
    @overload
    def __getitem__(self, depth: slice) -> list[Labels]: ...
    def __getitem__(self, depth: int | slice) -> Labels | list[Labels]:
        if isinstance(depth, slice):
            return [self[j] for j in range(len(self))[depth]]
        labels = np.zeros(self.sides.shape[1], dtype=np.int64)
        for cuts, side in enumerate(self.sides[: range(len(self))[depth]]):
            labels = 2 * labels + side
            if cuts % 32 == 31:  # before the numbers exceed 64 bits
                labels = np.unique(labels, return_inverse=True)[1]
        return np.unique(labels, return_inverse=True)[1]

    def __repr__(self) -> str:
        """The sizes of the parts at every level, largest first."""
        shown = range(len(self)) if len(self) <= _LEVELS else [*range(_LEVELS - 1), len(self) - 1]
        lines = [f"{level_name(j, len(self) - 1):9}{_sizes(self[j])}" for j in shown]
        if len(self) > _LEVELS:
            lines.insert(-1, "...")
        return "\n".join(lines)

    def of_items(self, rows: np.ndarray) -> Partitions:
        """The partitions of other items, each of which follows item `rows[i]`."""
        return Partitions(self.sides[:, rows])

    def among(self, rows: np.ndarray) -> Partitions:
        """The partitions of more items: a first cut separates all but these rows (a mask)."""
        sides = np.zeros((len(self), len(rows)), dtype=bool)
        sides[0] = rows
        sides[1:, rows] = self.sides
        return Partitions(sides)


def _sizes(labels: Labels) -> str:
    sizes = sorted(np.bincount(labels).tolist(), reverse=True)
    text = f"{len(sizes)} part{'s' * (len(sizes) > 1)}: {' '.join(map(str, sizes[:_PARTS]))}"
    return text if len(sizes) <= _PARTS else f"{text} ..."


def labels_of(tree: PartitionTree) -> list[Partitions]:
    """For each example of a tree, the partition at every depth from the root down."""
    parts = tree.sides.split(tree.roots.sizes.tolist(), dim=1)
    return [Partitions(to_host(part)) for part in parts]
