"""How a network finds a hull, right or wrong: level by level, by depth, and as an animation."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from diconet.core.files import write_whole
from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.segments import index_of
from diconet.core.sets import SetBatch
from diconet.core.tree import Merge, PartitionTree, fold_levels, grow
from diconet.plot.canvas import new_figure, save
from diconet.plot.levels import draw_stage
from diconet.plot.stages import Stage, level_name, stable_parts

if TYPE_CHECKING:
    from PIL import Image

_SPLIT_MS, _MERGE_MS, _LAST_MS = 700, 1_100, 2_600


def hull_stages(tree: PartitionTree, answers: Sequence[Any]) -> list[Stage]:
    """The steps of a network's own tree on one set, leaves first, with its partial hulls."""
    labels = [to_host(tree.nodes_at(depth)) for depth in range(tree.depth + 1)]
    parts = stable_parts(labels)
    stages = []
    for depth in range(tree.depth, -1, -1):
        done = [answers[depth].sets]  # and what ended in a leaf further up
        done += [
            answers[level.number].sets.take(index_of(level.is_leaf))
            for level in tree.levels[:depth]
        ]
        cycles = [
            (int(parts[depth][index[0]]), to_host(index))
            for answer in done
            for index in answer.unpack(answer.index)
            if len(index)
        ]
        stages.append(Stage(level_name(depth, tree.depth), parts[depth], cycles))
    return stages


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
        draw_stage(ax, to_host(sets.items), stage)
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
                title if number == 0 else "", to_host(leaves[number]), [(0, to_host(corners))]
            )
            draw_stage(next(panels), to_host(points), stage)
    return save(figure, path)


def save_hull_animation(
    model: DiCoNet, sets: SetBatch, path: str | Path, *, seeds: torch.Tensor | None = None
) -> Path:
    """First the cuts from the root to the leaves, then the merges back, one frame a level."""
    up = network_stages(model, sets, seeds)
    down = [Stage(stage.title, stage.parts) for stage in reversed(up)]
    frames = [(f"divide: {stage.title}", stage, _SPLIT_MS) for stage in down]
    frames += [(f"conquer: {stage.title}", stage, _MERGE_MS) for stage in up]
    points = to_host(sets.items.double())
    images = [_frame(points, Stage(title, s.parts, s.cycles)) for title, s, _ in frames]
    times = [ms for *_, ms in frames[:-1]] + [_LAST_MS]
    path = Path(path)
    content = io.BytesIO()
    images[0].save(
        content, format="GIF", save_all=True, append_images=images[1:], duration=times, loop=0
    )
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
