from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diconet.cli import main
from diconet.plot.curves import curves_figure, read_metrics
from diconet.plot.levels import COLOURS, planar


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
