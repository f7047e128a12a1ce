"""The paper's figures of hulls, drawn from a network's own answers, right or wrong."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.core.coin import RandomSplit
from diconet.core.files import write_whole
from diconet.core.model import DiCoNet
from diconet.plot.levels import draw_stage, new_figure, save
from diconet.plot.stages import Stage
from diconet.problems.hull.solve import Hull, convex_hull

if TYPE_CHECKING:
    from PIL import Image

_SPLIT_MS, _MERGE_MS, _LAST_MS = 700, 1_100, 2_600


def pictures(model: DiCoNet, folder: Path, *, size: int = 50, seed: int = 3) -> list[Path]:
    """The paper's figures 2 and 4: partial hulls by level, learned and random; hulls by depth.

    Also the learned ones as an animation.
    """
    rng = np.random.default_rng(seed)
    points, more = rng.random((size, 2)), rng.random((90, 2))
    few = list(rng.random((4, size // 2, 2)))
    coins = DiCoNet(RandomSplit(), model.merge, model.growth)
    by_depth = {
        name: convex_hull(few, repair=False, model=DiCoNet(model.split, model.merge, depth=depth))
        for depth, name in enumerate(("no cut", "one cut", "two cuts"))
    }
    learned = convex_hull(points, repair=False, model=model)
    drawn = convex_hull(points, repair=False, model=coins, seed=seed)
    return [
        learned.save_levels(folder / "hull_learned_split.png"),
        drawn.save_levels(folder / "hull_random_split.png"),
        save_rows(by_depth, folder / "hull_by_depth.png"),
        save_animation(convex_hull(more, repair=False, model=model), folder / "hull.gif"),
    ]


def save_rows(rows: Mapping[str, Sequence[Hull]], path: Path) -> Path:
    """Draws several answers to the same sets: one row per name, one column per set."""
    across = max(map(len, rows.values()))
    figure, axes = new_figure(len(rows) * across, size=2.4, most_across=across)
    panels = iter(axes)
    for title, hulls in rows.items():
        for number, hull in enumerate(hulls):
            stage = Stage("" if number else title, hull.tree[-1], [(0, hull.indices)])
            draw_stage(next(panels), hull.points, stage)
    return save(figure, path)


def save_animation(hull: Hull, path: Path) -> Path:
    """Writes an animation: the cuts from root to leaves, then the merges, one frame per level."""
    up = [stage for stage in hull.stages() if stage.cycles]
    frames = [(Stage(f"divide: {one.title}", one.parts), _SPLIT_MS) for one in reversed(up)]
    frames += [(Stage(f"conquer: {one.title}", one.parts, one.cycles), _MERGE_MS) for one in up]
    first, *others = [_frame(hull.points, stage) for stage, _ in frames]
    times = [ms for _, ms in frames[:-1]] + [_LAST_MS]
    content = io.BytesIO()
    first.save(content, format="GIF", save_all=True, append_images=others, duration=times, loop=0)
    write_whole(path, content.getvalue())
    return path


def _frame(points: np.ndarray, stage: Stage) -> Image.Image:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure, (ax,) = new_figure(1, size=4.2)
    draw_stage(ax, points, stage)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return image.quantize(64, dither=Image.Dither.NONE)
