"""Draws the items that each call of a packing took, by weight and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.plot.levels import FAINT, colour_of, point_size
from diconet.plot.stages import LEFT, Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from diconet.problems.knapsack.solve import Packing


def stages_of(solution: Packing) -> list[Stage]:
    """One stage per call: the items it took (part 1), those taken before (0) and those left."""
    taken_at = call_of(solution)
    stages = []
    names = ("fractional optimum", "exchanged")
    calls = len(solution.tree) - 1
    for call in range(1, calls + 1):
        parts = np.full(len(taken_at), LEFT)
        parts[(taken_at > 0) & (taken_at < call)] = 0
        parts[taken_at == call] = 1
        rows = parts >= 0
        full = solution.weights[rows].sum() / solution.capacity if solution.capacity else 1.0
        name = names[call - 1] if calls == len(names) else f"call {call}"
        count = int((parts == 1).sum())
        if count or call == calls:
            stages.append(Stage(f"{name}: +{count}, {100 * full:.1f}% full", parts))
    return stages


def call_of(solution: Packing) -> np.ndarray:
    """The call, from 1, at which each item was taken; 0 if it was left."""
    chosen = np.zeros(len(solution.values), dtype=bool)
    chosen[solution.chosen] = True
    call = np.zeros(len(chosen), dtype=np.int64)
    for depth in range(1, len(solution.tree)):
        labels = solution.tree[depth]
        for label in np.unique(labels).tolist():
            members = labels == label
            if chosen[members].all():
                call[members & (call == 0)] = depth
    call[chosen & (call == 0)] = len(solution.tree) - 1
    return call


def draw_packing(ax: Axes, solution: Packing, parts: np.ndarray, *, final: bool) -> None:
    """Draws items by weight and value: hollow if left, blue if taken before, orange if now."""
    looks: dict[int, dict[str, Any]] = {
        -1: {"facecolors": "none", "edgecolors": FAINT, "label": "left"},
        0: {"color": colour_of(0), "linewidths": 0, "label": "taken before"},
        1: {"color": colour_of(1), "linewidths": 0, "label": "taken now"},
    }
    size = point_size(len(parts))
    for part, look in looks.items():
        rows = parts == part
        ax.scatter(solution.weights[rows], solution.values[rows], s=size, **look)
    ax.set_aspect("auto")
    ax.set_xlabel("weight")
    if final:
        ax.set_ylabel("value")
        handles, _ = ax.get_legend_handles_labels()
        ax.legend(handles[:2], ("left", "taken"), framealpha=0.85, edgecolor="none")


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Adds a legend for the colours of a figure of all stages."""
    axes[0].set_ylabel("value")
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
