"""What every picture has in common: colours, panels, points in parts, lines, files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diconet.core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#882255", "#999933"),
)
"""Eight colours that the colour-blind can tell apart (after Okabe and Ito, and Tol)."""

MARKERS = ("o", "s", "^", "D")
"""Shapes that take turns once the colours are used up."""

INK = "#222222"
FAINT = "#b5b5b5"


def new_figure(panels: int, size: float = 3.2, most_across: int = 6) -> tuple[Figure, list[Axes]]:
    """Square panels without ticks, row by row, drawn without a screen."""
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
    """Leaves of the frame only a thin line."""
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("#dddddd")


def square(ax: Axes, points: np.ndarray) -> None:
    """Gives a panel the same square frame around the points, whatever it draws of them."""
    low, high = points.min(0), points.max(0)
    half = 0.54 * max(float((high - low).max()), 1e-9)
    middle = (low + high) / 2
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)


def save(figure: Figure, path: str | Path) -> Path:
    """Writes a picture whole or not at all; the format follows from the name."""
    path = Path(path)
    content = io.BytesIO()
    figure.savefig(content, dpi=120, format=path.suffix.lower().removeprefix(".") or "png")
    write_whole(path, content.getvalue())
    return path


def colour_of(part: int) -> str:
    """The colour of a part by its number; faint where it is below 0."""
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
    """Smaller points where there are more of them."""
    return float(np.clip(1_500 / max(count, 1), 4, 30))


def line_width(count: int) -> float:
    """Thinner lines where there are more points."""
    return float(np.clip(30 / max(count, 1) ** 0.5, 0.4, 1.5))


def draw_cycle(ax: Axes, points: np.ndarray, colour: str = INK, width: float = 1.5) -> None:
    """A closed line through points in order."""
    around = np.concatenate([points, points[:1]])
    ax.plot(*around.T, color=colour, linewidth=width, solid_joinstyle="round", zorder=1)
