"""Pictures of answers, level by level: colours, panels, points in parts, lines, files."""

from __future__ import annotations

import io
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.core.files import write_whole
from diconet.plot.stages import Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#882255", "#999933"),
)
"""Eight colours that colour-blind people can tell apart (after Okabe and Ito, and Tol)."""

MARKERS = ("o", "s", "^", "D")
"""Marker shapes to cycle through once the colours are used up."""

INK = "#222222"
FAINT = "#b5b5b5"


def new_figure(panels: int, size: float = 3.2, most_across: int = 6) -> tuple[Figure, list[Axes]]:
    """Square panels without ticks, row by row, rendered without a display."""
    from matplotlib.figure import Figure

    across = min(panels, most_across)
    down = -(-panels // across)
    figure = Figure(figsize=(size * across, (size + 0.3) * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).ravel())
    for ax in axes[panels:]:
        ax.set_axis_off()
    for ax in axes:
        quiet(ax)
    return figure, axes[:panels]


def quiet(ax: Axes) -> None:
    """Reduces the frame of a panel to a thin line."""
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("#dddddd")


def square(ax: Axes, points: np.ndarray) -> None:
    """Gives a panel a square frame around all the points, whatever it draws of them."""
    low, high = points.min(0), points.max(0)
    half = 0.54 * max(float((high - low).max()), 1e-9)
    middle = (low + high) / 2
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)


def save(figure: Figure, path: str | Path) -> Path:
    """Writes a picture atomically; the format follows from the name."""
    path = Path(path)
    content = io.BytesIO()
    figure.savefig(content, dpi=120, format=path.suffix.lower().removeprefix(".") or "png")
    write_whole(path, content.getvalue())
    return path


def colour_of(part: int) -> str:
    """The colour of a part by its number; faint if it is below 0."""
    return FAINT if part < 0 else COLOURS[part % len(COLOURS)]


def draw_parts(ax: Axes, points: np.ndarray, parts: np.ndarray, size: float | None = None) -> None:
    """Points in the colours (and, from the ninth part on, shapes) of their parts."""
    size = point_size(len(points)) if size is None else size
    for part in np.unique(parts).tolist():
        rows = parts == part
        marker = MARKERS[max(part, 0) // len(COLOURS) % len(MARKERS)]
        x, y = points[rows].T
        ax.scatter(x, y, color=colour_of(part), s=size, marker=marker, linewidths=0, zorder=2)


def point_size(count: int) -> float:
    """The marker size: smaller for more points."""
    return float(np.clip(1_500 / max(count, 1), 4, 30))


def line_width(count: int) -> float:
    """The line width: thinner for more points."""
    return float(np.clip(30 / max(count, 1) ** 0.5, 0.4, 1.5))


def draw_cycle(ax: Axes, points: np.ndarray, colour: str = INK, width: float = 1.5) -> None:
    """A closed line through points in order."""
    around = np.concatenate([points, points[:1]])
    ax.plot(*around.T, color=colour, linewidth=width, solid_joinstyle="round", zorder=1)


def draw_stage(ax: Axes, points: np.ndarray, stage: Stage) -> None:
    """Draws points in the colours of their parts, and each part's line; one around all is ink."""
    draw_parts(ax, points, stage.parts)
    for part, rows in stage.cycles:
        colour = INK if len(stage.cycles) == 1 else colour_of(part)
        draw_cycle(ax, points[rows], colour, line_width(len(points)))
    if stage.marks is not None:
        ax.plot(*stage.marks.T, "+", color=INK, markersize=9, markeredgewidth=1.6, zorder=3)
    square(ax, points)
    ax.set_title(stage.title, fontsize=10)


def draw_answer(ax: Axes, solution: Any) -> None:
    """Draws the answer alone, with what is known of its quality."""
    solution.draw(ax, solution.answer_stage(), final=True)
    ax.set_title(f"{solution.title()}\n{solution.quality()}", fontsize=10)


def levels_figure(solution: Any) -> Figure:
    """One panel per level, in the order in which the answer is built."""
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
    """Points, and others with them, projected to their two principal axes if not planar."""
    every = (points, *others)
    if points.shape[1] == 2:
        return every
    if points.shape[1] == 1:
        return tuple(np.pad(some, ((0, 0), (0, 1))) for some in every)
    mean = points.mean(0)
    axes = np.linalg.eigh(np.cov(points.T))[1][:, -2:]
    return tuple((some - mean) @ axes for some in every)
