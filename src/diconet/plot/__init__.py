"""Pictures: answers level by level, a hull being merged, training curves."""

from diconet.plot.animation import save_hull_animation
from diconet.plot.canvas import COLOURS, INK, draw_cycle, draw_parts, new_figure, save
from diconet.plot.curves import read_metrics, save_curves
from diconet.plot.levels import (
    levels_figure,
    save_hull_levels,
    save_hull_outputs,
    save_levels,
)

__all__ = [
    "COLOURS",
    "INK",
    "draw_cycle",
    "draw_parts",
    "levels_figure",
    "new_figure",
    "read_metrics",
    "save",
    "save_curves",
    "save_hull_animation",
    "save_hull_levels",
    "save_hull_outputs",
    "save_levels",
]
