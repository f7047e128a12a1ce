from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diconet.cli import main
from diconet.merges import TripleMerge
from diconet.model import DiCoNet
from diconet.plot import (
    COLOURS,
    levels_figure,
    read_metrics,
    save_hull_animation,
    save_hull_levels,
    save_hull_outputs,
)
from diconet.plot.curves import curves_figure
from diconet.plot.levels import planar
from diconet.sets import SetBatch
from diconet.solve.kmeans import Clusters
from diconet.solve.solution import Partitions
from diconet.splits import MedianSplit
from tests.test_stages import packing


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


def test_a_panel_a_call_for_a_knapsack() -> None:
    figure = levels_figure(packing())
    assert [ax.get_title().split(":")[0] for ax in figure.axes] == [
        "surely in",
        "network",
        "greedy",
    ]


def test_clusters_level_by_level() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0]])
    tree = Partitions(np.array([[False, False, True]]))
    clusters = Clusters(0.5, tree, points, np.array([1, 1, 0]), np.array([[5.0, 0.0], [0.0, 0.5]]))
    figure = clusters.plot_levels()
    assert [ax.get_title() for ax in figure.axes] == ["root", "leaves", "answer"]
    left, right = (figure.axes[i].collections for i in (1, 2))
    # A cluster keeps its colour, whatever its label is.
    assert [c.get_facecolor().tolist() for c in left] == [c.get_facecolor().tolist() for c in right]


def test_many_features_are_shown_along_the_leading_two() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 3)) * [0.01, 5.0, 1.0]
    flat, centre = planar(points, points.mean(0, keepdims=True))
    np.testing.assert_allclose(sorted(flat.std(0)), sorted(points.std(0)[1:]), rtol=0.02)
    np.testing.assert_allclose(centre, 0, atol=1e-12)
    assert planar(points[:, :1], points[:2, :1])[0].shape == (200, 2)


def run_folder(path: Path, **last: float) -> Path:
    path.mkdir()
    lines = [{"step": s, "seconds": s, "loss": 1 / s, "split_grad": 2.0} for s in range(1, 50)]
    lines += [{"step": 50, "accuracy_25": 80.0, "accuracy_50": 60.0, **last}]
    lines += [{"step": 99, "accuracy_25": 90.0, "accuracy_50": 70.0, **last}]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_metrics_are_read_by_name(tmp_path: Path) -> None:
    series = read_metrics(run_folder(tmp_path / "run"))
    assert list(series) == ["loss", "split_grad", "accuracy_25", "accuracy_50"]
    assert series["accuracy_25"][0].tolist() == [50, 99]
    assert series["accuracy_25"][1].tolist() == [80, 90]


def test_curves_of_two_runs_in_one_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = curves_figure([run_folder(tmp_path / "a"), run_folder(tmp_path / "b")])
    # What never changed is left out; sizes share a panel.
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == ["loss", "accuracy"]
    labels = figure.axes[1].get_legend_handles_labels()[1]
    assert labels == ["a 25", "a 50", "b 25", "b 50"]
    main(["plot", str(tmp_path / "a"), "--out", str(tmp_path / "curves.png")])
    assert capsys.readouterr().out == f"picture: {tmp_path / 'curves.png'}\n"
    with Image.open(tmp_path / "curves.png") as image:
        assert image.format == "PNG"


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "must be the folder of a training run"), ("", "is empty"), ("{}\n", "line 1 has none")],
    ids=["no file", "empty", "no step"],
)
def test_folders_without_metrics_are_refused(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "metrics.jsonl").write_text(content)
    with pytest.raises(SystemExit, match="2"):
        main(["plot", str(tmp_path), "--out", str(tmp_path / "curves.png")])
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "curves.png").exists()


def test_colours_are_all_different() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == 8
