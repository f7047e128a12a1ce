"""A task of one's own on the command line: trained, killed, resumed, measured, solved and drawn."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from diconet import load, network_for, save
from diconet.cli import main
from diconet.problems.catalog import find_problem

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_CUT = f"{EXAMPLES / 'max_cut.py'}:MaxCut"
SMALL = ["--train.batch_size", "4", "--train.tree_samples", "2", "--train.max_size", "8"]
TRAIN = ["train", MAX_CUT, "--quiet", "--train.steps", "120", "--train.checkpoint_every", "5"]
TRAIN += [*SMALL, "--width", "8"]

GRAPH = {"items": [[0, 0], [0, 1], [1, 1], [1, 0]], "edges": [[0, 1], [1, 2], [2, 3], [3, 0]]}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(capsys, *arguments, "--json"))
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    return complaint


# From training to pictures.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a network for max-cut was trained, killed on the way, and resumed."""
    home = tmp_path_factory.mktemp("home")
    checkpoint = home / "runs" / "maxcut_default" / "checkpoint.pt"
    with subprocess.Popen([sys.executable, "-m", "diconet", *TRAIN], cwd=home) as begun:
        while not checkpoint.exists() and begun.poll() is None:
            time.sleep(0.01)
        begun.send_signal(signal.SIGKILL)
        assert begun.wait() == -signal.SIGKILL
    assert torch.load(checkpoint, weights_only=True)["step"] < 120
    before = Path.cwd()
    os.chdir(home)
    try:
        main(TRAIN)
    finally:
        os.chdir(before)
    return home


def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "runs" / "maxcut_default"
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["step"] == 120
    assert printed(capsys, *TRAIN, "--run", str(home / "unbroken")).startswith("weights: ")
    resumed, unbroken = (
        load(one / "weights.safetensors").state_dict() for one in (folder, home / "unbroken")
    )
    assert all(torch.equal(resumed[name], unbroken[name]) for name in unbroken)


def test_what_was_trained_is_measured_solved_and_drawn(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    found = records(capsys, "evaluate", MAX_CUT, "--sizes", "8,12", "--num-sets", "6")
    assert {record["size"] for record in found} == {8, 12}
    metrics = ["reward", "reward, drawn", "random division", "median division", "no division"]
    assert [record["metric"] for record in found[:5]] == metrics
    report = ["diagnose", MAX_CUT, "--size", "8", "--num-sets", "6"]
    rows = records(capsys, *report)
    assert rows[0]["division"] == "learned"
    assert rows[0]["score"] == pytest.approx(found[0]["value"])
    assert "6 fresh inputs of 8 items" in printed(capsys, *report)

    Path("graph.json").write_text(json.dumps(GRAPH))
    outputs = ["--out", "parts.csv", "--plot", "graph.png"]
    (record,) = records(capsys, "solve", MAX_CUT, "graph.json", *outputs)
    rows_out = Path("parts.csv").read_text().splitlines()
    assert rows_out[0] == "column1,column2,label"
    assert [int(row.rpartition(",")[2]) for row in rows_out[1:]] == record["labels"]
    cut = [record["labels"][a] != record["labels"][b] for a, b in GRAPH["edges"]]
    assert record["reward"] == pytest.approx(np.mean(cut))
    printed(capsys, "plot", "runs/maxcut_default", "--out", "curves.png")
    for picture in ("graph.png", "curves.png"):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")


STOPPING = dedent('''
    import os, signal
    import torch
    from diconet import SetBatch

    calls = 0


    class Stopping:
        """Somebody presses Ctrl-C in the third step."""

        num_features = 2

        def sample(self, num_sets, set_size, *, rng):
            items = torch.rand(num_sets * set_size, 2, generator=rng)
            return SetBatch.pack(items, torch.full((num_sets,), set_size))

        def reward(self, sets, solution):
            global calls
            calls += 1
            if calls == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return sets.mean(solution.leaves.float())
''')


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "stopping", raising=False)
    Path("stopping.py").write_text(STOPPING)
    with pytest.raises(SystemExit) as caught:
        main(["train", "stopping.py:Stopping", "--quiet", "--train.steps", "6", *SMALL])
    assert caught.value.code == 130
    said, command = capsys.readouterr().err.splitlines()
    assert "the run is in runs/stopping_default, and the same command resumes it:" in said
    program, *arguments = shlex.split(command)
    assert program == "diconet"
    main(arguments)
    assert capsys.readouterr().out == "weights: runs/stopping_default/weights.safetensors\n"
    kept = torch.load("runs/stopping_default/checkpoint.pt", weights_only=True)
    assert kept["step"] == 6


def test_settings_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text("depth: 2\nsplit: cut\ntrain:\n  steps: 7\n  batch_size: 3\n")
    command = ["train", MAX_CUT, "--preset", str(preset), "--settings", "--train.steps", "9"]
    shown = yaml.safe_load(printed(capsys, *command))
    assert (shown["depth"], shown["split"], shown["width"]) == (2, "cut", None)
    assert (shown["train"]["steps"], shown["train"]["batch_size"]) == (9, 3)
    preset.write_text("deep: 2\n")
    assert "known settings only; " in refused(capsys, *command)


# Files of graphs.


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "cut.safetensors"
    save(network_for(find_problem(MAX_CUT).task, width=8, num_layers=1), path)
    return str(path)


def test_edges_within_a_file_or_beside_it(
    weights: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    turned = {"edges": GRAPH["edges"], "items": GRAPH["items"]}
    columns = {"x": [0, 0, 1, 1], "y": [0, 1, 1, 0], "edges": GRAPH["edges"]}
    named = {**GRAPH, "edges": [{"source": a, "target": b} for a, b in GRAPH["edges"]]}
    Path("graphs.json").write_text(json.dumps([GRAPH, turned, columns, named]))
    Path("points.csv").write_text("x,y\n0,0\n0,1\n1,1\n1,0\n")
    Path("edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,0\n")
    model = ["--model", weights]
    first, *others = records(capsys, "solve", MAX_CUT, "graphs.json", *model)
    others += records(capsys, "solve", MAX_CUT, "points.csv", "--edges", "edges.csv", *model)
    assert [one["labels"] for one in others] == [first["labels"]] * 4
    assert [one["reward"] for one in others] == [first["reward"]] * 4


def test_edges_refused(
    weights: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("graph.json").write_text(json.dumps(GRAPH))
    Path("two.json").write_text(json.dumps([GRAPH, GRAPH]))
    Path("points.csv").write_text("x,y\n0,0\n0,1\n1,1\n1,0\n")
    Path("edges.csv").write_text("0,1\n1,9\n")
    Path("words.csv").write_text("source,target\n0,one\n")
    points = f"{EXAMPLES / 'two_means.py'}:TwoMeans"
    for task, file, edges, message in (
        (MAX_CUT, "points.csv", None, "edges must be given: maxcut is a task on graphs"),
        (points, "points.csv", "edges.csv", "edges must not be given; twomeans is not a task"),
        (points, "graph.json", None, "edges must not be given; twomeans is not a task"),
        (MAX_CUT, "points.csv", "edges.csv", "items by index, 0 to 3; points has 9."),
        (MAX_CUT, "points.csv", "words.csv", "words.csv has 'one' in line 2 under 'target'."),
        (MAX_CUT, "graph.json", "edges.csv", "--edges must not be given if graph.json holds"),
        (MAX_CUT, "two.json", "edges.csv", "--edges must go with one instance; FILE holds 2."),
        (MAX_CUT, "points.csv", "none.csv", "--edges must exist; there is no none.csv."),
    ):
        beside = [] if edges is None else ["--edges", edges]
        assert message in refused(capsys, "solve", task, file, *beside, "--model", weights)


def test_numbers_are_written_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "counting", raising=False)
    text = STOPPING.replace("Stopping", "Counting")
    text = text.replace("num_features", "answer = 'number'; num_features")
    Path("counting.py").write_text(text.replace("solution.leaves.float()", "sets.items[:, 0]"))
    save(network_for(find_problem("counting.py:Counting").task), "counting.safetensors")
    Path("points.csv").write_text("x,y\n0,0\n0,1\n1,1\n1,0\n")
    model = ["--model", "counting.safetensors"]
    for name in ("a.npy", "a.csv"):
        command = ["solve", "counting.py:Counting", "points.csv", *model, "--out", name]
        (record,) = records(capsys, *command)
    assert isinstance(record["value"], float)
    assert np.load("a.npy").item() == record["value"]
    assert Path("a.csv").read_text() == f"value\n{record['value']}\n"


def test_the_page_refuses_what_it_cannot_draw(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fastapi")
    assert "must be a problem of points in a plane" in refused(capsys, "web", MAX_CUT)
