from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.nets.classic import MedianSplit
from diconet.problems.hull.draw import pictures, save_animation, save_rows
from diconet.problems.hull.solve import Hull, convex_hull
from diconet.problems.hull.triples import TripleMerge
from tests.tiny import hull_network


def found(size: int, model: DiCoNet, **options: Any) -> Hull:
    points = np.random.default_rng(0).random((size, 2))
    return convex_hull(points, repair=False, model=model, **options)


@pytest.fixture
def halved() -> DiCoNet:
    return DiCoNet(MedianSplit(), TripleMerge(), depth=2)


def test_an_animation_divides_and_conquers(halved: DiCoNet, tmp_path: Path) -> None:
    path = save_animation(found(16, halved), tmp_path / "hull.gif")
    with Image.open(path) as image:
        assert image.n_frames == 6  # three levels down and three up
    assert [p.name for p in tmp_path.iterdir()] == ["hull.gif"]


def test_hull_levels_are_written(halved: DiCoNet, tmp_path: Path) -> None:
    path = found(16, halved).save_levels(tmp_path / "levels.png")
    with Image.open(path) as image:
        assert image.width > 2.5 * image.height  # three panels in a row


def test_hulls_of_several_networks(halved: DiCoNet, tmp_path: Path) -> None:
    clouds = list(np.random.default_rng(0).random((3, 9, 2)))
    whole = DiCoNet(MedianSplit(), TripleMerge(), depth=0)
    rows = {
        name: convex_hull(clouds, repair=False, model=model)
        for name, model in (("whole", whole), ("halved", halved))
    }
    path = save_rows(rows, tmp_path / "rows.png")
    with Image.open(path) as image:
        assert image.width > 1.2 * image.height  # three across, two down


def test_all_pictures_of_a_network(tmp_path: Path) -> None:
    paths = pictures(hull_network(), tmp_path, size=20)
    assert len({path.name for path in paths}) == 4
    assert all(path.stat().st_size > 1_000 for path in paths)


def test_every_part_has_its_hull_at_every_level() -> None:
    """Also those that ended in a leaf further up."""
    model = DiCoNet(RandomSplit(), TripleMerge(), Growth(leaf_size=6))
    hull = found(30, model, seed=0)
    assert len(np.unique(hull.tree[-1])) < 2 ** (len(hull.tree) - 1)
    stages = [stage for stage in hull.stages() if stage.cycles]
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
