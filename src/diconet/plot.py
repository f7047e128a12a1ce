"""Pictures: partitions and partial answers level by level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from diconet.model import DiCoNet
from diconet.sets import SetBatch
from diconet.tree import Merge, PartitionTree, fold_levels, grow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    *("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5"),
    *("#9c6b4e", "#9498a0", "#1f4e79", "#7f6000", "#833c0b", "#385723", "#5b2c83", "#b03a5b"),
)
"""Colours of the parts of a partition, well apart for as many as a picture can hold."""


def new_figure(panels: int, size: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A row of square panels, drawn without a screen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size * panels, size + 0.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for ax in axes:
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
    return figure, list(axes)


def save(figure: Figure, path: str | Path) -> None:
    """Writes a picture whole or not at all; the format follows from the name."""
    path = Path(path)
    partial = path.with_name(f".partial-{path.name}")
    figure.savefig(partial, dpi=120)
    partial.replace(path)


def draw_parts(ax: Axes, points: np.ndarray, labels: np.ndarray, size: float = 18) -> None:
    """Points in the colours of their parts."""
    colours = np.array(COLOURS)[labels % len(COLOURS)]
    ax.scatter(points[:, 0], points[:, 1], c=colours.tolist(), s=size, linewidths=0, zorder=2)


def draw_cycle(ax: Axes, points: np.ndarray, colour: str = "#222222", width: float = 1.6) -> None:
    """A closed line through points in order."""
    around = np.concatenate([points, points[:1]])
    ax.plot(around[:, 0], around[:, 1], color=colour, linewidth=width, zorder=1)


@torch.no_grad()
def save_hull_levels(model: DiCoNet, sets: SetBatch, path: Path, *, title: str) -> None:
    """One panel a level, leaves first: the partition in colours and each node's partial hull."""
    seeds = torch.zeros(len(sets), dtype=torch.long)
    tree = grow(model.split, sets, model.growth, seeds if "random" in title else None)
    answers = fold_levels(cast(Merge, model.merge), tree)
    figure, axes = new_figure(tree.depth + 1)
    points = sets.items.numpy()
    for ax, depth in zip(axes, range(tree.depth, -1, -1), strict=True):
        labels = tree.nodes_at(depth).numpy()
        draw_parts(ax, points, labels)
        answer = answers[depth].sets
        for corners, index in zip(answer.unpack(), answer.unpack(answer.index), strict=True):
            if len(corners):
                colour = COLOURS[int(labels[index[0]]) % len(COLOURS)]
                draw_cycle(ax, corners.numpy(), colour)
        ax.set_title(_level_name(tree, depth))
    figure.suptitle(title)
    save(figure, path)


def _level_name(tree: PartitionTree, depth: int) -> str:
    if depth == 0:
        return "root"
    return "leaves" if depth == tree.depth else f"level {depth}"
