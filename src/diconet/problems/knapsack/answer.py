"""The answer to a knapsack: items chosen call by call, drawn by weight and value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.plot.levels import FAINT, colour_of, point_size
from diconet.plot.stages import LEFT, Stage
from diconet.problems.solution import Partitions, Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class BoundedChoice(Solution):
    """A choice of items with a `bound`, an upper bound on the value of any choice."""

    weight: float
    capacity: float
    bound: float

    @property
    def gap(self) -> float:
        """How much better the best choice could be, relative to this one; 0 if proven optimal."""
        if self.bound <= self.value:
            return 0.0
        return self.bound / self.value - 1 if self.value > 0 else math.inf

    def proof(self) -> str:
        """The gap in words."""
        if self.gap == 0:
            return "proven optimal"
        return f"at most {100 * self.gap:.3g}% below the best"

    def record(self) -> dict[str, Any]:
        """Value, weight, capacity and what is proven of the value."""
        return {
            "value": self.value,
            "weight": self.weight,
            "capacity": self.capacity,
            "bound": self.bound,
            "gap": self.gap if math.isfinite(self.gap) else None,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Packing(BoundedChoice):
    """A choice of items: `chosen`, their indices in order, of total `weight` and `value`.

    `bound` is an upper bound on the value of any choice, and `gap` bounds the relative distance of
    the answer from the best: 0 if it is proven optimal. The tree's first cut takes what the
    fractional optimum takes and the answer keeps, its second what the answer takes in addition.
    """

    values: np.ndarray
    weights: np.ndarray
    capacity: float
    chosen: np.ndarray
    weight: float
    bound: float

    def quality(self) -> str:
        """The number of items, and a bound on the distance to the best choice."""
        return f"{len(self.chosen)} of {len(self.values)} items, {self.proof()}"

    def record(self) -> dict[str, Any]:
        """Items, value, weight, capacity, what is proven of the value, and the choice."""
        items = {"items": len(self.values)}
        return items | super().record() | {"chosen": self.chosen.tolist()}

    def item_columns(self) -> dict[str, np.ndarray]:
        return {"value": self.values, "weight": self.weights}

    def answer_columns(self) -> dict[str, Any]:
        """1 for every chosen item, 0 for the others."""
        return {"chosen": np.isin(np.arange(len(self.values)), self.chosen).astype(int)}

    def title(self) -> str:
        return "knapsack"

    def plane(self) -> np.ndarray:
        return np.column_stack([self.weights, self.values])

    def calls(self) -> np.ndarray:
        """The call, from 1, at which each item was taken; 0 if it was left."""
        assert isinstance(self.tree, Partitions)
        chosen = np.isin(np.arange(len(self.values)), self.chosen)
        return np.where(chosen, self.tree.sides.sum(0) + 1, 0)

    def answer_stage(self) -> Stage:
        parts = np.full(len(self.values), LEFT)
        parts[self.chosen] = 0
        return Stage("", parts)

    def stages(self, most: int = 6) -> list[Stage]:
        """One stage per call: the items it took (part 1), those taken before (0) and those left."""
        taken_at, calls = self.calls(), len(self.tree) - 1
        names = ("fractional optimum", "exchanged")
        stages = []
        for call in range(1, calls + 1):
            parts = np.full(len(taken_at), LEFT)
            parts[(taken_at > 0) & (taken_at < call)] = 0
            parts[taken_at == call] = 1
            full = self.weights[parts >= 0].sum() / self.capacity if self.capacity else 1.0
            name = names[call - 1] if calls == len(names) else f"call {call}"
            count = int((parts == 1).sum())
            if count or call == calls:
                stages.append(Stage(f"{name}: +{count}, {100 * full:.1f}% full", parts))
        return stages

    def draw(self, ax: Axes, stage: Stage, *, final: bool = False) -> None:
        """Draws items by weight and value: hollow if left, blue if taken before, orange if now."""
        looks: dict[int, dict[str, Any]] = {
            -1: {"facecolors": "none", "edgecolors": FAINT, "label": "left"},
            0: {"color": colour_of(0), "linewidths": 0, "label": "taken before"},
            1: {"color": colour_of(1), "linewidths": 0, "label": "taken now"},
        }
        for part, look in looks.items():
            rows = stage.parts == part
            size = point_size(len(rows))
            ax.scatter(self.weights[rows], self.values[rows], s=size, **look)
        ax.set_aspect("auto")
        ax.set_xlabel("weight")
        if final:
            ax.set_ylabel("value")
            handles, _ = ax.get_legend_handles_labels()
            ax.legend(handles[:2], ("left", "taken"), framealpha=0.85, edgecolor="none")

    def finish(self, figure: Figure, axes: Sequence[Axes]) -> None:
        """Adds a legend for the colours of a figure of all stages."""
        axes[0].set_ylabel("value")
        handles, labels = axes[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
