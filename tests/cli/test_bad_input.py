"""Every kind of bad input, by the library and by the command line.

One line that names the argument, the rule and what was found; exit code 2; nothing written.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import diconet
from diconet.cli import main
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.nets.graph_split import GraphSplit
from tests.tiny import NETWORKS, save_networks

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return save_networks(tmp_path_factory.mktemp("weights"))


def solve(task: str, *data: Any, **options: Any) -> Any:
    functions: dict[str, Callable[..., Any]] = {
        "hull": diconet.convex_hull,
        "kmeans": diconet.kmeans,
        "knapsack": diconet.knapsack,
        "tsp": diconet.tsp,
    }
    return functions[task](*data, **({"model": NETWORKS[task]()} | options))


NAN, INF = float("nan"), float("inf")

API = [
    ("hull", ([[0, 0], [1, NAN]],), r"points must be finite; got nan at \(1, 1\)"),
    ("hull", ([[0, 0], [INF, 1]],), r"points must be finite; got inf at \(1, 0\)"),
    ("hull", ([[0, 0, 0]],), r"points must have shape \(n, 2\); got \(1, 3\)"),
    ("hull", ([1.0, 2.0],), r"points must have shape \(n, 2\); got \(2,\)"),
    ("hull", ([],), r"points must have shape \(n, 2\); got \(0,\)"),
    ("hull", (np.zeros((0, 2)),), "points must hold at least 1 rows; got 0"),
    ("hull", ([["a", "b"]],), "points must be numbers; got list"),
    ("hull", (None,), "points must be an array or a list; got None"),
    ("hull", (np.array([[1j, 2]]),), "points must be numbers; got ndarray"),
    ("hull", ([[0, 0], [1]],), "points must be numbers; got list"),
    ("kmeans", (SQUARE, 5), "k must be at most the number of points, 4; got 5"),
    ("kmeans", (SQUARE, 0), "k must be a whole number of at least 1; got 0"),
    ("kmeans", (SQUARE, -2), "k must be a whole number of at least 1; got -2"),
    ("kmeans", (SQUARE, [1, 2]), "k must be one number or 1, one per array; got 2"),
    ("kmeans", ([[0.0, INF]], 1), r"points must be finite; got inf at \(0, 1\)"),
    ("kmeans", (np.zeros((3, 0)), 1), r"points must have at least 1 column; got shape \(3, 0\)"),
    ("kmeans", ([np.zeros((4, 2)), np.zeros((4, 3))], 2), r"shape \(n, 2\); got \(4, 3\)"),
    ("kmeans", ([], 1), r"points must have shape \(n, d\); got \(0,\)"),
    ("knapsack", ([1, 2], [1, -1], 3), "weights must be at least 0; got -1.0 at 1"),
    ("knapsack", ([1, 2], [1, 1], -3), "capacity must be one number of at least 0; got -3"),
    ("knapsack", ([1, 2], [1], 3), "weights must be as many as values, 2; got 1"),
    ("knapsack", ([1, NAN], [1, 1], 3), r"values must be finite; got nan at \(1,\)"),
    ("knapsack", ([1, 2], [1, 1], NAN), "capacity must be finite; got nan"),
    ("knapsack", (5, [1], 3), r"values must have shape \(n,\); got \(\)"),
    ("knapsack", ([1, 2], [10**400, 3], 5), "weights must be numbers; got list: int too large"),
    ("knapsack", ([1, 2], [1, 3], 10**400), "capacity must be numbers; got int: int too large"),
    (
        "knapsack",
        ([1e308, 1e308], [1, 1], 5),
        "values must add up to less than 1.8e.308; got a lar",
    ),
    ("tsp", ([[0, 0], [NAN, 1]],), r"cities must be finite; got nan at \(1, 0\)"),
    ("tsp", ([[0, 0, 0]],), r"cities must have shape \(n, 2\); got \(1, 3\)"),
    ("tsp", (np.zeros((0, 2)),), "cities must hold at least 1 rows; got 0"),
]


@pytest.mark.parametrize(("task", "data", "message"), API)
def test_data_refused_by_the_library(task: str, data: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        solve(task, *data)
    assert "\n" not in str(caught.value)


def damaged(folder: Path) -> str:
    path = folder / "damaged.safetensors"
    path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not a header")
    return str(path)


def foreign(folder: Path) -> str:
    path = folder / "foreign.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    return str(path)


def unknown_parts(folder: Path) -> str:
    path = folder / "unknown.safetensors"
    growth = {"depth": 1, "halve_to": None, "leaf_size": 1}
    network = {"split": {"class": "NoSuchSplit"}, "merge": None, "growth": growth}
    save_file({"a": torch.zeros(2)}, path, metadata={"diconet": json.dumps(network)})
    return str(path)


def garbled(folder: Path) -> str:
    path = folder / "garbled.safetensors"
    save_file({"a": torch.zeros(2)}, path, metadata={"diconet": "{"})
    return str(path)


def of_other_shapes(folder: Path) -> str:
    path = folder / "shapes.safetensors"
    network = {
        "split": {"class": "diconet.nets.sweep.SweepSplit", "width": 8},
        "merge": None,
        "growth": {"depth": None, "halve_to": None, "leaf_size": 1},
    }
    save_file({"a": torch.zeros(2)}, path, metadata={"diconet": json.dumps(network)})
    return str(path)


MODELS: list[tuple[Callable[[Path], str], str]] = [
    (lambda folder: "no_such_model", "model must be a file, .* or one of .*; got 'no_such_model'"),
    (lambda folder: str(folder), "model must be a file, a run folder or one of"),
    (damaged, "model must be a diconet weights file; .*damaged"),
    (foreign, "model must be a diconet weights file; .* is not"),
    (unknown_parts, "model must use only modules of this version; .*NoSuchSplit"),
    (garbled, "model must be a diconet weights file; .*garbled"),
    (of_other_shapes, "the weights in .* do not fit the network"),
]


@pytest.mark.parametrize(("make", "message"), MODELS)
@pytest.mark.parametrize("task", ["hull", "kmeans"])
def test_models_refused(
    task: str,
    make: Callable[[Path], str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = make(tmp_path)
    data = (SQUARE,) if task == "hull" else (SQUARE, 2)
    with pytest.raises(ValueError, match=message):
        solve(task, *data, model=model)
    file = written(tmp_path, "points.csv", "0,0\n1,0\n1,1\n")
    k = [] if task == "hull" else ["--k", "2"]
    refused(capsys, ["solve", task, file, *k, "--model", model], message)


def test_a_network_of_another_task_is_refused(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "points.csv", "0,0\n1,0\n1,1\n")
    for task, other in (("hull", "tsp"), ("tsp", "hull"), ("tsp", "kmeans")):
        message = f"model must be a network for {task}; .* is of"
        with pytest.raises(ValueError, match=message):
            solve(task, SQUARE, model=weights[other])
        refused(capsys, ["solve", task, file, "--model", weights[other]], message)


@pytest.mark.parametrize(
    "option", [{"seed": 1.5}, {"seed": -5}, {"seed": 10**23}, {"device": "abacus"}, {"model": 3}]
)
@pytest.mark.parametrize("task", ["hull", "kmeans", "knapsack", "tsp"])
def test_options_refused_by_the_library(task: str, option: dict[str, Any]) -> None:
    data: dict[str, tuple[Any, ...]] = {
        "hull": (SQUARE,),
        "kmeans": (SQUARE, 2),
        "knapsack": ([1], [1], 1),
        "tsp": (SQUARE,),
    }
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be"):
        without_type_checks(solve)(task, *data[task], **option)


def without_type_checks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Our signatures are enforced in tests only; this is what a user without that sees."""

    def call(*arguments: Any, **options: Any) -> Any:
        import jaxtyping

        try:
            return function(*arguments, **options)
        except jaxtyping.TypeCheckError as error:
            (name,) = options
            raise ValueError(f"{name} must be as in the signature.") from error

    return call


def written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """The command fails with 2 and one line that matches, and prints nothing else."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    printed = capsys.readouterr()
    assert caught.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("diconet")
    assert printed.err.count("\n") == 1
    assert re.search(message, printed.err), printed.err


TSP_HEAD = "NAME : a\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"

FILES = [
    ("hull", "a.csv", "", [], "FILE must hold numbers; a.csv is empty"),
    ("hull", "a.csv", " \n\n", [], "FILE must hold numbers; a.csv is empty"),
    ("hull", "a.csv", "x,y\n", [], "FILE must hold at least one row of numbers; a.csv has none"),
    ("hull", "a.csv", "x,y\n0,nan\n", [], r"points must be finite; got nan at \(0, 1\)"),
    ("hull", "a.csv", "0,0\n1,inf\n", [], r"points must be finite; got inf at \(1, 1\)"),
    ("hull", "a.csv", "0,0,1\n1,2,3\n", [], "columns must be 2; .* such as --columns 1,2"),
    ("hull", "a.csv", "0,0\n1\n", [], "every cell must be a number; a.csv has '' in line 2"),
    ("hull", "a.csv", "0,0\n1,2,3\n", [], "every row must have 2 cells .* has 3 in line 2"),
    ("hull", "a.csv", "x,y\n0,zero\n", [], "every cell must be a number; a.csv has 'zero' in line"),
    ("hull", "a.csv", "x,y\n0,\n", [], "every cell must be a number; a.csv has '' in line 2"),
    (
        "hull",
        "a.csv",
        b"\x93NUMPY\x01\x00\xff\xfe",
        [],
        "FILE must be text in UTF-8; a.csv is binary",
    ),
    ("hull", "a.csv", b"1,2\x00\n", [], "FILE must be text in UTF-8; a.csv is binary"),
    ("hull", "a.npy", "0,0\n1,1\n", [], "FILE must be a NumPy array of numbers; a.npy"),
    ("hull", "a.json", "x,y\n0,0\n", [], "FILE must be JSON; a.json"),
    ("hull", "a.json", "[]", [], "FILE must hold a list of rows; a.json has"),
    ("hull", "a.json", "3", [], "FILE must hold a list of rows; a.json has 3"),
    (
        "hull",
        "a.json",
        "[[0, 0], [1]]",
        [],
        "every cell must be a number; a.json has nothing in row 2",
    ),
    ("hull", "a.json", "[[0, NaN]]", [], "points must be finite; got nan"),
    ("hull", "a.json", '[[0, "b"]]', [], "every cell must be a number; a.json has 'b' in row 1"),
    ("hull", "a.csv", f"0,{10**400}\n", [], "points must be finite; got inf"),
    ("hull", "a.csv", "0,0\n", ["--columns", "a,b"], "--columns must be among 1 to 2; got 'a'"),
    ("hull", "a.csv", "0,0\n", ["--k", "2"], "--k must go with kmeans.*; got hull"),
    ("kmeans", "a.csv", "0,0\n1,1\n", [], "k must be given, as --k .*; a.csv has none"),
    ("kmeans", "a.csv", "0,0\n1,1\n", ["--k", "3"], "k must be at most the number of points, 2"),
    ("kmeans", "a.csv", "0,0\n1,1\n", ["--k", "0"], "--k must be a whole number of at least 1"),
    ("kmeans", "a.csv", "0,0\n1,1\n", ["--k", "x"], "--k must be a whole number .*; got 'x'"),
    ("knapsack", "a.csv", "1,2\n", [], "capacity must be given, as --capacity .*; a.csv has none"),
    ("knapsack", "a.csv", "1,-2\n", ["--capacity", "3"], "weights must be at least 0; got -2.0"),
    ("knapsack", "a.csv", "1,2\n", ["--capacity", "-3"], "capacity must be .* at least 0; got -3"),
    ("knapsack", "a.csv", "1,2\n", ["--capacity", "a"], "--capacity must be a number; got 'a'"),
    (
        "knapsack",
        "a.csv",
        "1,2,3\n",
        ["--capacity", "3"],
        "columns must be 2; a.csv has 3 without names: choose them with --columns",
    ),
    ("knapsack", "a.csv", "k_1\nn 5\nc 9\n", [], "instance 'k_1' must have"),
    ("tsp", "a.tsp", "1 0 0\n", [], "a TSPLIB file must have a NODE_COORD_SECTION; a.tsp has none"),
    (
        "tsp",
        "a.tsp",
        TSP_HEAD + "1 0 0\nEOF\n",
        [],
        "DIMENSION must be the number of cities; a.tsp says 2",
    ),
    ("tsp", "a.tsp", TSP_HEAD + "1 0\nEOF\n", [], "a line of NODE_COORD_SECTION must be a number"),
    ("tsp", "a.csv", "0,0\n", ["--refine", "3opt"], "--refine must be one of none, 2opt, lk"),
    ("tsp", "a.csv", "0,0\n", ["--optimum", "0"], "--optimum must be above 0; got 0"),
    ("tsp", "a.csv", "0,0\n", ["--seed", "x"], "--seed must be a whole number; got 'x'"),
    ("tsp", "a.csv", "0,0\n", ["--seed", f"{10**23}"], r"seed must be .* from 0 to 2\*\*63 - 1"),
    (
        "tsp",
        "a.csv",
        "0,0\n",
        ["--seconds", "1", "--refine", "2opt"],
        "seconds must go with refine 'lk'",
    ),
    ("tsp", "a.csv", "0,0\n", ["--seconds", "nan"], "seconds must be a finite number .*; got nan"),
]


@pytest.mark.parametrize(("task", "name", "content", "options", "message"), FILES)
def test_files_refused_by_the_command_line(
    task: str,
    name: str,
    content: str | bytes,
    options: list[str],
    message: str,
    weights: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(tmp_path, name, content)
    kept = written(tmp_path, "kept.csv", "as it was")
    picture = str(tmp_path / "new.png")
    outputs = ["--out", kept, "--plot", picture, "--model", weights[task]]
    refused(capsys, ["solve", task, file, *options, *outputs], message)
    assert Path(kept).read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "kept.csv"])


def test_a_preset_with_a_setting_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = written(tmp_path, "mine.yaml", "train:\n  stepz: 5\n")
    message = "preset must hold known settings only; .*mine.yaml has 'train.stepz'"
    refused(capsys, ["train", "hull", "--preset", preset], message)


def test_a_run_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "taken", "")
    refused(capsys, ["train", "hull", "--run", file], "taken.*: Not a directory")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "sudoku", "a"], "TASK must be one of hull, .*; got 'sudoku'"),
        (["solve", "hull", "no_such_file.csv"], "FILE must be a readable file; no_such_file.csv"),
        (["solve", "hull", "."], "FILE must be a readable file; .*directory"),
        (["solve", "hull"], "FILE"),
        (["solve", "hull", "a.csv", "--bogus"], "unrecognized arguments: --bogus"),
        (["juggle"], "juggle"),
        (
            ["evaluate", "hull", "--model", "none_such"],
            "model must be a file, a run folder or one of",
        ),
        (["evaluate", "hull", "--sizes", "0"], "--sizes must be a whole number of at least 1"),
        (["train", "hull", "--preset", "none_such"], "preset must be a file or one of"),
        (["train", "kmeans", "--init", "hull"], "unrecognized arguments: --init"),
        (["train", "hull", "--train.seed", "-1"], r"train\.seed must be from 0 to .*; got -1\."),
        (["evaluate", "hull", "--seed", "-1"], r"--seed must be from 0 to 2\^63 - 1; got -1\."),
        (
            ["reproduce", "hull", "--seed", str(2**63)],
            r"--seed must be from 0 to .*; got 9223.*8\.",
        ),
        (["bench", "none_such"], "NAME must be one of"),
        (
            ["train", "hull", "--preset", "rows", "--pointer.init", "none_such"],
            "init must be a file",
        ),
        (["train", "hull", "--pointer.split_width", "0"], "split_width must be at least 1; got 0"),
        (["train", "tsp", "--width", "-1"], "width must be at least 1; got -1"),
        (["train", "kmeans", "--points_each", "0"], "points_each must be at least 1; got 0"),
        (["train", "knapsack", "--num_splits", "-1"], "num_splits must be at least 0; got -1"),
        (["train", "hull", "--train.policy_from", "7"], "policy_from must be a share of the run"),
        (["train", "tsp", "--width", str(10**11)], "not enough memory"),
        (["evaluate", "hull", "--sizes", str(10**23)], "--sizes must be at most 1,000,000,000"),
        (["solve", "tsp", "a.csv", "--capacity", "0"], "--capacity must go with knapsack; got tsp"),
    ],
)
def test_commands_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(capsys, arguments, message)


@pytest.mark.parametrize(
    ("task", "other"),
    [("hull", "tsp"), ("kmeans", "hull"), ("knapsack", "hull"), ("tsp", "hull"), ("tsp", "kmeans")],
)
def test_a_network_of_another_task_is_not_evaluated(
    task: str, other: str, weights: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for model in (other, weights[other]):
        command = ["evaluate", task, "--model", model, "--num-sets", "2", "--sizes", "8"]
        refused(capsys, command, f"model must be a network for {task}; {model} is of")


@pytest.mark.parametrize("option", ["--out", "--plot"])
@pytest.mark.parametrize("where", ["missing/a.csv", "folder.csv", "a.xyz", "/proc/a.csv"])
def test_outputs_are_refused_before_any_work(
    option: str,
    where: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("diconet.problems.problem.Problem.read", lambda *_: pytest.fail("read"))
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.png").mkdir()
    file = written(tmp_path, "points.csv", "0,0\n1,0\n1,1\n")
    if option == "--plot":
        where = where.replace(".csv", ".png")
    refused(
        capsys,
        ["solve", "hull", file, option, str(tmp_path / where)],
        f"{option} must (be writable|be a file|end in one of)",
    )
    assert len(list(tmp_path.iterdir())) == 3


def test_a_disk_that_fills_up_leaves_the_old_file(
    weights: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = written(tmp_path, "points.csv", "0,0\n1,0\n1,1\n")
    kept = written(tmp_path, "kept.csv", "as it was")
    monkeypatch.setattr("os.replace", full)
    command = ["solve", "hull", file, "--model", weights["hull"], "--out", kept]
    refused(capsys, command, "No space left")
    assert Path(kept).read_text() == "as it was"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_empty_standard_input_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refused(capsys, ["solve", "hull", "-"], "FILE must hold numbers; stdin is empty")


def test_a_network_for_points_of_another_width_is_refused() -> None:
    torch.manual_seed(0)
    model = DiCoNet(GraphSplit(10, width=4, num_layers=1), growth=Growth())
    with pytest.raises(ValueError, match=r"shape \(n, 10\) for this model; got \(4, 2\)"):
        solve("kmeans", SQUARE, 2, model=model)
    assert len(solve("kmeans", np.eye(10), 2, model=model).centers) == 2
