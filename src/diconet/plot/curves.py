"""Training curves from the metrics of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diconet.plot.levels import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Series = dict[str, tuple[np.ndarray, np.ndarray]]
"""Steps and values by name of the metric."""

_METRICS = "metrics.jsonl"
_SKIP = {"step", "seconds"}
_DASHES = ("-", "--", ":", "-.")


def read_metrics(run: str | Path) -> Series:
    """The metrics of a run folder (or of its metrics file), by name."""
    path = Path(run)
    path = path / _METRICS if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"RUN must be the folder of a training run; no {path}.")
    found: dict[str, list[tuple[float, float]]] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            record = json.loads(line)
            step = float(record["step"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"RUN must hold metrics; {path} line {number} has none.") from None
        for name, value in record.items():
            if name not in _SKIP and isinstance(value, int | float):
                found.setdefault(name, []).append((step, float(value)))
    if not found:
        raise ValueError(f"RUN must hold metrics; {path} is empty.")
    return {name: (*np.array(points).T,) for name, points in found.items()}


def curves_figure(runs: Sequence[str | Path]) -> Figure:
    """One panel per metric, with all runs in it; metrics that differ only in a size share a panel.

    Constant metrics are left out.
    """
    every = [part for run in runs for part in _parts(Path(run))]
    series = {_name(run): read_metrics(run) for run in every}
    names = list(dict.fromkeys(name for one in series.values() for name in one))
    panels: dict[str, list[str]] = {}
    for name in names:
        if any(np.ptp(one[name][1]) for one in series.values() if name in one) or len(names) == 1:
            panels.setdefault(re.sub(r"_?\d+$", "", name), []).append(name)
    figure, axes = new_figure(len(panels), most_across=3)
    for ax, (title, members) in zip(axes, panels.items(), strict=True):
        _open(ax)
        for number, (run, one) in enumerate(series.items()):
            for place, name in enumerate(n for n in members if n in one):
                which = place if len(members) > 1 else number
                dash = _DASHES[number % len(_DASHES)] if len(members) > 1 else "-"
                size = name.removeprefix(title).removeprefix("_")
                label = " ".join(x for x in (run if len(series) > 1 else "", size) if x)
                _draw(ax, *one[name], COLOURS[which % len(COLOURS)], dash, label)
        ax.set_title(title.replace("_", " "), fontsize=10)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=7, edgecolor="none", framealpha=0.85)
    figure.supxlabel("step", fontsize=9)
    return figure


def _parts(run: Path) -> list[Path]:
    """The run itself or, if its stages have separate folders, all of these."""
    if (run / _METRICS).is_file():
        return [run]
    return [path.parent for path in sorted(run.glob(f"**/{_METRICS}"))] or [run]


def _name(run: str | Path) -> str:
    path = Path(run).resolve()
    return path.name if path.is_dir() else path.parent.name


def _open(ax: Axes) -> None:
    from matplotlib.ticker import AutoLocator, EngFormatter, MaxNLocator

    ax.set_aspect("auto")
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.yaxis.set_major_locator(AutoLocator())
    ax.tick_params(labelsize=7, colors="#555555")
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)


def _draw(
    ax: Axes, steps: np.ndarray, values: np.ndarray, colour: str, dash: str, label: str
) -> None:
    """Draws the values, pale, and their running mean over a twentieth of the run."""
    width = max(1, len(values) // 20)
    name = label or None
    if width == 1:
        ax.plot(steps, values, dash, color=colour, label=name, linewidth=1.5)
        return
    ax.plot(steps, values, color=colour, alpha=0.25, linewidth=0.8)
    total = np.cumsum(np.concatenate([[0.0], np.nan_to_num(values)]))
    low = np.maximum(np.arange(len(values)) - width + 1, 0)
    high = np.arange(len(values)) + 1
    smooth = (total[high] - total[low]) / (high - low)
    ax.plot(steps, smooth, dash, color=colour, label=name, linewidth=1.5)
