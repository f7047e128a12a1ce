"""Answers level by level, for any solution that knows its stages."""

from __future__ import annotations

import io
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.plot.canvas import (
    INK,
    colour_of,
    draw_cycle,
    draw_parts,
    line_width,
    new_figure,
    save,
    square,
)
from diconet.plot.stages import Stage

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


def draw_answer(ax: Axes, solution: Any) -> None:
    """The answer alone, with what is known of its quality."""
    solution.draw(ax, solution.answer_stage(), final=True)
    ax.set_title(f"{solution.title()}\n{solution.quality()}", fontsize=10)


def levels_figure(solution: Any) -> Figure:
    """One panel per level, in the order in which the answer comes about."""
    stages = solution.stages(most=5)
    stages = [stage for stage in stages if stage.cycles] or stages
    figure, axes = new_figure(len(stages))
    for ax, stage in zip(axes, stages, strict=True):
        solution.draw(ax, stage)
        ax.set_title(stage.title, fontsize=10)
    solution.finish(figure, axes)
    between = ": " if len(stages) > 1 else "\n"
    figure.suptitle(f"{solution.title()}{between}{solution.quality()}", fontsize=11)
    return figure


def save_levels(solution: Any, path: str | Path) -> Path:
    """Writes the picture of an answer's levels."""
    return save(levels_figure(solution), path)


def answer_html(solution: Any) -> str:
    """The answer as a picture with its quality below, for a notebook."""
    figure, (ax,) = new_figure(1, size=3.6)
    solution.draw(ax, solution.answer_stage(), final=True)
    content = io.BytesIO()
    figure.savefig(content, dpi=100, format="png")
    picture = b64encode(content.getvalue()).decode()
    text = escape(f"{solution.title()}: {solution.quality()}")
    image = f'<img src="data:image/png;base64,{picture}" alt="{text}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def planar(points: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """Points, and others with them, along the two leading axes where they have more than two."""
    every = (points, *others)
    if points.shape[1] == 2:
        return every
    if points.shape[1] == 1:
        return tuple(np.pad(some, ((0, 0), (0, 1))) for some in every)
    mean = points.mean(0)
    axes = np.linalg.eigh(np.cov(points.T))[1][:, -2:]
    return tuple((some - mean) @ axes for some in every)
