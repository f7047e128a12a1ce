from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold_levels, grow
from diconet.nets.classic import MedianSplit
from diconet.problems.hull.draw import (
    hull_stages,
    save_hull_animation,
    save_hull_levels,
    save_hull_outputs,
)
from diconet.problems.hull.solve import Hull, convex_hull
from diconet.problems.hull.triples import TripleMerge
from tests.tiny import hull_network


@pytest.fixture
def halved() -> DiCoNet:
    return DiCoNet(MedianSplit(), TripleMerge(), depth=2)


def test_an_animation_divides_and_conquers(
    halved: DiCoNet, tmp_path: Path, rng: torch.Generator
) -> None:
    sets = SetBatch.of([torch.rand(16, 2, generator=rng)])
    path = save_hull_animation(halved, sets, tmp_path / "hull.gif")
    with Image.open(path) as image:
        assert image.n_frames == 6  # three levels down and three up
    assert [p.name for p in tmp_path.iterdir()] == ["hull.gif"]


def test_hull_levels_are_written(halved: DiCoNet, tmp_path: Path, rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(16, 2, generator=rng)])
    path = save_hull_levels(halved, sets, tmp_path / "levels.png", title="halves")
    with Image.open(path) as image:
        assert image.width > 2.5 * image.height  # three panels in a row


def test_hulls_of_several_networks(halved: DiCoNet, tmp_path: Path, rng: torch.Generator) -> None:
    sets = SetBatch.of([torch.rand(9, 2, generator=rng) for _ in range(3)])
    whole = DiCoNet(MedianSplit(), TripleMerge(), depth=0)
    path = save_hull_outputs({"whole": whole, "halved": halved}, sets, tmp_path / "rows.png")
    with Image.open(path) as image:
        assert image.width > 1.2 * image.height  # three across, two down


def test_every_part_has_its_hull_at_every_level(rng: torch.Generator) -> None:
    """Also those that ended in a leaf further up."""
    sets = SetBatch.of([torch.rand(30, 2, generator=rng, dtype=torch.float64)])
    tree = grow(RandomSplit(), sets, Growth(leaf_size=6), seeds_from(rng, 1))
    assert any(bool(level.is_leaf.any()) for level in tree.levels[:-1])
    with torch.no_grad():
        stages = hull_stages(tree, fold_levels(TripleMerge(), tree))
    assert [stage.title for stage in stages][::-1][:2] == ["root", "level 1"]
    for stage in stages:
        assert sorted(part for part, _ in stage.cycles) == sorted(set(stage.parts.tolist()))
        for part, rows in stage.cycles:
            assert set(stage.parts[rows].tolist()) == {part}


def test_parts_are_answered_by_the_network_that_answered_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = np.random.default_rng(0).random((30, 2))
    asked: list[object] = []

    def spied(*arguments: Any, **options: Any) -> Any:
        asked.append(options["model"])
        return convex_hull(*arguments, **options)

    model = hull_network()
    hull = convex_hull(points, model=model)
    assert isinstance(hull, Hull)
    monkeypatch.setattr("diconet.problems.hull.solve.convex_hull", spied)
    hull.plot_levels()
    assert asked
    assert all(one is model for one in asked)
