"""The answer to a user's task, of any kind: as a record, a table, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.plot.levels import FAINT, INK, draw_parts, line_width, planar, point_size
from diconet.plot.stages import LEFT, Stage
from diconet.problems.solution import Solution, numbered

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NAMES = {
    "partition": "labels",
    "subset": "chosen",
    "order": "order",
    "path": "order",
    "number": "value",
    "label": "value",
}
"""The name of the answer, by kind; one number or label per item is called values."""


@dataclass(frozen=True, eq=False, repr=False)
class TaskSolution(Solution):
    """The answer to a user's own task; `value` is its reward.

    `kind` is the task's `answer`. The answer is the part of every item ("partition"), the indices
    of the chosen items ("subset"), the indices of the items in order ("order", "path"), or a number
    or label: one for the set, or one per item. `labels` are the leaves of the tree, `edges` the
    pairs of connected items, and `oracle` the reward of the right answer, if known.
    """

    items: np.ndarray
    labels: np.ndarray
    kind: str
    answer: np.ndarray
    edges: np.ndarray | None = None
    oracle: float | None = None

    @property
    def name(self) -> str:
        """The name of the answer in records."""
        return f"{NAMES[self.kind]}s" if self._has_values else NAMES[self.kind]

    @property
    def _has_values(self) -> bool:
        """Whether there is a number or label for every item."""
        return NAMES[self.kind] == "value" and self.answer.ndim == 1

    def title(self) -> str:
        """A short description of the answer."""
        count = len(self.items)
        if self.kind == "partition":
            return f"{count} items in {len(np.unique(self.answer))} parts"
        if self.kind == "subset":
            return f"{len(self.answer)} of {count} items"
        if NAMES[self.kind] == "order":
            return f"{len(self.answer)} items in order"
        if self._has_values:
            return f"a {self.kind} for each of {count} items"
        return f"{self.kind} {self.answer.item():.6g}"

    def quality(self) -> str:
        """The reward and, if known, the reward of the right answer."""
        best = "" if self.oracle is None else f", oracle {self.oracle:.6g}"
        return f"reward {self.value:.6g}{best}"

    def record(self) -> dict[str, Any]:
        """Items, rewards, the number of parts, and the answer."""
        record: dict[str, Any] = {"items": len(self.items), "reward": self.value}
        if self.oracle is not None:
            record["oracle"] = self.oracle
        if self.kind == "partition":
            record["parts"] = len(np.unique(self.answer))
        return {**record, self.name: self.answer.tolist()}

    def frame(self, rows: pd.DataFrame | None = None) -> pd.DataFrame:
        """The answer beside the items; a single row if the set has one value."""
        if self.name != "value":
            return super().frame(rows)
        import pandas as pd

        return pd.DataFrame({"value": [self.answer.item()]})

    def item_columns(self) -> dict[str, np.ndarray]:
        return {f"x{i + 1}": column for i, column in enumerate(self.items.T)}

    def answer_columns(self) -> dict[str, Any]:
        """For every item its part, value or position; 1 if it is chosen."""
        if self.kind == "subset":
            return {"chosen": np.isin(np.arange(len(self.items)), self.answer).astype(int)}
        if NAMES[self.kind] == "order":
            return {"place": numbered(self.answer, len(self.items))}
        return {self.name.removesuffix("s"): self.answer}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title()}, {self.quality()})"

    # Drawing.

    def plane(self) -> np.ndarray:
        """The items along two axes; ordered numbers by their positions, each at its height."""
        if self.kind == "order" and self.items.shape[1] == 1:
            places = np.full(len(self.items), np.nan)
            places[self.answer] = np.linspace(0, max(np.ptp(self.items), 1e-9), len(self.answer))
            return np.column_stack([np.nan_to_num(places), self.items])
        return planar(self.items)[0]

    def answer_stage(self) -> Stage:
        if self.kind == "partition":
            return Stage("", self.answer)
        if self.kind == "subset":
            parts = np.full(len(self.items), LEFT)
            parts[self.answer] = 0
            return Stage("", parts)
        if self.kind == "label" and self._has_values:
            return Stage("", self.answer)
        return Stage("", self.labels)

    def draw(self, ax: Axes, stage: Stage, *, final: bool = False) -> None:
        """Draws one stage, or the answer: parts in colours, a path as a line, numbers as shades."""
        points = self.plane()
        if self.edges is not None:
            _draw_edges(ax, points, self.edges, stage.parts)
        if final and self.kind == "number" and self._has_values:
            draw_shades(ax, points, self.answer)
            return
        super().draw(ax, stage, final=final)
        if final and NAMES[self.kind] == "order" and len(self.answer):
            ax.plot(*points[self.answer].T, color=INK, linewidth=line_width(len(points)), zorder=1)
            draw_parts(ax, points[self.answer[:1]], np.zeros(1, dtype=int), size=60)


def _draw_edges(ax: Axes, points: np.ndarray, edges: np.ndarray, parts: np.ndarray) -> None:
    """Draws the edges as faint lines, dotted between two parts."""
    from matplotlib.collections import LineCollection

    pairs = np.unique(np.sort(edges, axis=1), axis=0)
    within = parts[pairs[:, 0]] == parts[pairs[:, 1]]
    for some, style in ((pairs[within], "solid"), (pairs[~within], "dotted")):
        look: dict[str, Any] = {"colors": FAINT, "linewidths": 0.6, "linestyles": style}
        ax.add_collection(LineCollection(list(points[some]), zorder=0, **look))


def draw_shades(ax: Axes, points: np.ndarray, values: np.ndarray) -> None:
    """Draws points in shades by their values, with a colour scale."""
    from matplotlib.figure import Figure

    x, y = points.T
    shades = ax.scatter(x, y, c=values, cmap="viridis", s=point_size(len(points)), zorder=2)
    figure = ax.get_figure()
    if isinstance(figure, Figure):
        figure.colorbar(shades, ax=ax, shrink=0.7)
