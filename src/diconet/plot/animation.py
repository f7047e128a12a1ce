"""A hull being divided and conquered, as an animated GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diconet.model import DiCoNet
from diconet.plot.canvas import new_figure
from diconet.plot.levels import draw_stage, network_stages
from diconet.sets import SetBatch
from diconet.stages import Stage

if TYPE_CHECKING:
    from PIL import Image

_SPLIT_MS, _MERGE_MS, _LAST_MS = 700, 1_100, 2_600


def save_hull_animation(
    model: DiCoNet, sets: SetBatch, path: str | Path, *, seeds: torch.Tensor | None = None
) -> Path:
    """First the cuts from the root to the leaves, then the merges back, one frame a level."""
    up = network_stages(model, sets, seeds)
    down = [Stage(stage.title, stage.parts) for stage in reversed(up)]
    frames = [(f"divide: {stage.title}", stage, _SPLIT_MS) for stage in down]
    frames += [(f"conquer: {stage.title}", stage, _MERGE_MS) for stage in up]
    points = sets.items.double().numpy()
    images = [_frame(points, Stage(title, s.parts, s.cycles)) for title, s, _ in frames]
    times = [ms for *_, ms in frames[:-1]] + [_LAST_MS]
    path = Path(path)
    partial = path.with_name(f".partial-{path.name}")
    images[0].save(
        partial, format="GIF", save_all=True, append_images=images[1:], duration=times, loop=0
    )
    return partial.replace(path)


def _frame(points: np.ndarray, stage: Stage) -> Image.Image:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure, (ax,) = new_figure(1, size=4.2)
    draw_stage(ax, points, stage)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return image.quantize(64, dither=Image.Dither.NONE)
