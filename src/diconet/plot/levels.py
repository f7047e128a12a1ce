"""Partitions and partial answers, level by level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from diconet.model import DiCoNet
from diconet.plot.canvas import (
    FAINT,
    INK,
    colour_of,
    draw_cycle,
    draw_parts,
    line_width,
    new_figure,
    point_size,
    save,
    square,
)
from diconet.sets import SetBatch
from diconet.solve.hull import Hull
from diconet.solve.kmeans import Clusters
from diconet.solve.knapsack import Packing
from diconet.solve.solution import Solution
from diconet.solve.tsp import Tour
from diconet.stages import Stage, conquer_stages, hull_stages
from diconet.tree import Merge, fold_levels, grow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_stage(ax: Axes, points: np.ndarray, stage: Stage) -> None:
    """Points in the colours of their parts, with each part's line; a line around all is ink."""
    draw_parts(ax, points, stage.parts)
    for part, rows in stage.cycles:
        colour = INK if len(stage.cycles) == 1 else colour_of(part)
        draw_cycle(ax, points[rows], colour, line_width(len(points)))
    if stage.marks is not None:
        ax.plot(*stage.marks.T, "+", color=INK, markersize=9, markeredgewidth=1.6, zorder=3)
    square(ax, points)
    ax.set_title(stage.title, fontsize=10)


def draw_packing(ax: Axes, solution: Packing, parts: np.ndarray) -> None:
    """Items by weight and value: hollow if left, blue if taken before, orange if taken now."""
    looks: dict[int, dict[str, Any]] = {
        -1: {"facecolors": "none", "edgecolors": FAINT, "label": "left"},
        0: {"color": colour_of(0), "linewidths": 0, "label": "taken before"},
        1: {"color": colour_of(1), "linewidths": 0, "label": "taken now"},
    }
    size = point_size(len(parts))
    for part, look in looks.items():
        rows = parts == part
        ax.scatter(solution.weights[rows], solution.values[rows], s=size, **look)
    ax.set_xlabel("weight")


def draw_answer(ax: Axes, solution: Solution) -> None:
    """The answer alone, with what is known of its quality."""
    points = points_of(solution)
    if isinstance(solution, Packing):
        chosen = np.full(len(points), -1)
        chosen[solution.chosen] = 0
        draw_packing(ax, solution, chosen)
        ax.set_ylabel("value")
        handles, _ = ax.get_legend_handles_labels()
        ax.legend(handles[:2], ("left", "taken"), framealpha=0.85, edgecolor="none")
    else:
        ax.set_aspect("equal")
        if isinstance(solution, Clusters):
            stage = Stage("", solution.labels, marks=solution.centers)
        else:
            assert isinstance(solution, Hull | Tour)
            line = solution.indices if isinstance(solution, Hull) else solution.tour
            stage = Stage("", np.zeros(len(points), dtype=np.int64), [(0, line)])
        draw_stage(ax, points, _flat(solution, stage))
    ax.set_title(f"{_name(solution)}\n{solution.quality()}", fontsize=10)


def levels_figure(solution: Solution, *, model: str | DiCoNet | None = None) -> Figure:
    """One panel a level, in the order in which the answer comes about."""
    stages = conquer_stages(solution, model=model)
    figure, axes = new_figure(len(stages))
    for ax, stage in zip(axes, stages, strict=True):
        if isinstance(solution, Packing):
            ax.set_aspect("auto")
            draw_packing(ax, solution, stage.parts)
            ax.set_title(stage.title, fontsize=10)
        else:
            draw_stage(ax, points_of(solution), _flat(solution, stage))
    if isinstance(solution, Packing):
        axes[0].set_ylabel("value")
        handles, labels = axes[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    between = ": " if len(stages) > 1 else "\n"
    figure.suptitle(f"{_name(solution)}{between}{solution.quality()}", fontsize=11)
    return figure


def _name(solution: Solution) -> str:
    if isinstance(solution, Tour):
        return f"tour of length {solution.value:.6g}"
    names = {Hull: "convex hull", Clusters: "k-means", Packing: "knapsack"}
    return names[type(solution)]


def save_levels(
    solution: Solution, path: str | Path, *, model: str | DiCoNet | None = None
) -> Path:
    """Writes the picture of an answer's levels."""
    return save(levels_figure(solution, model=model), path)


def points_of(solution: Solution) -> np.ndarray:
    """The items of an answer as points of a plane."""
    if isinstance(solution, Clusters):
        return planar(solution.points, solution.centers)[0]
    if isinstance(solution, Packing):
        return np.column_stack([solution.weights, solution.values])
    assert isinstance(solution, Hull | Tour)
    return solution.points if isinstance(solution, Hull) else solution.cities


def planar(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and centres along the two leading axes, where there are more than two."""
    if points.shape[1] == 2:
        return points, centers
    if points.shape[1] == 1:
        return np.pad(points, ((0, 0), (0, 1))), np.pad(centers, ((0, 0), (0, 1)))
    mean = points.mean(0)
    axes = np.linalg.eigh(np.cov(points.T))[1][:, -2:]
    return (points - mean) @ axes, (centers - mean) @ axes


def _flat(solution: Solution, stage: Stage) -> Stage:
    """Marks in the same plane as the points."""
    if stage.marks is None or not isinstance(solution, Clusters):
        return stage
    marks = planar(solution.points, stage.marks)[1]
    return Stage(stage.title, stage.parts, stage.cycles, marks)


@torch.no_grad()
def network_stages(model: DiCoNet, sets: SetBatch, seeds: torch.Tensor | None) -> list[Stage]:
    """The steps by which a network finds the hull of one set, right or wrong."""
    tree = grow(model.split, sets, model.growth, seeds)
    return hull_stages(tree, fold_levels(cast(Merge, model.merge), tree))


def save_hull_levels(
    model: DiCoNet,
    sets: SetBatch,
    path: str | Path,
    *,
    title: str,
    seeds: torch.Tensor | None = None,
) -> Path:
    """One panel a level, leaves first: the partition in colours and each node's partial hull."""
    stages = network_stages(model, sets, seeds)
    figure, axes = new_figure(len(stages))
    for ax, stage in zip(axes, stages, strict=True):
        draw_stage(ax, sets.items.numpy(), stage)
    figure.suptitle(title, fontsize=11)
    return save(figure, path)


@torch.no_grad()
def save_hull_outputs(models: dict[str, DiCoNet], sets: SetBatch, path: str | Path) -> Path:
    """What several networks say of the same sets: a row a network, a column a set."""
    figure, axes = new_figure(len(models) * len(sets), size=2.4, most_across=len(sets))
    panels = iter(axes)
    for title, model in models.items():
        outcome = model(sets)
        leaves = sets.unpack(outcome.tree.leaves)
        for number, (points, corners) in enumerate(
            zip(sets.unpack(), outcome.solution.unpack(), strict=True)
        ):
            stage = Stage(
                title if number == 0 else "", leaves[number].numpy(), [(0, corners.numpy())]
            )
            draw_stage(next(panels), points.numpy(), stage)
    return save(figure, path)
