from __future__ import annotations

import io
import json
import pkgutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diconet
from diconet.cli import main, study
from diconet.cli.show import cell, json_text
from diconet.problems.problem import Problem
from tests.tiny import save_networks
from tests.tours import read_tour

RNG = np.random.default_rng(0)
POINTS = RNG.random((30, 2))
PISINGER = "k_1\nn 3\nc 5\nz 9\ntime 0.0\n1,4,2,1\n2,5,3,1\n3,6,5,0\n-----\n"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return save_networks(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def points(tmp_path: Path) -> str:
    path = tmp_path / "points.csv"
    np.savetxt(path, POINTS, delimiter=",", header="x,y", comments="")
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    found = json.loads(printed(capsys, *arguments, "--json"))
    assert isinstance(found, list)
    return found


def test_the_command_line_and_the_library_agree(
    weights: dict[str, str], points: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hull = diconet.convex_hull(POINTS, model=weights["hull"])
    clusters = diconet.kmeans(POINTS, 3, model=weights["kmeans"])
    tour = diconet.tsp(POINTS, refine="lk", model=weights["tsp"])
    packing = diconet.knapsack(*POINTS.T, 4, model=weights["knapsack"])
    for task, options, answer, expected in (
        ("hull", [], "indices", hull.indices),
        ("kmeans", ["--k", "3"], "labels", clusters.labels),
        ("tsp", ["--refine", "lk"], "tour", tour.tour),
    ):
        found = records(capsys, "solve", task, points, *options, "--model", weights[task])
        assert len(found) == 1
        assert found[0][answer] == expected.tolist()
        assert list(found[0])[-1] == answer
    plain = Path(points).with_name("plain.csv")
    np.savetxt(plain, POINTS, delimiter=";")
    found = records(
        capsys, "solve", "knapsack", str(plain), "--capacity", "4", "--model", weights["knapsack"]
    )
    assert found[0]["chosen"] == packing.chosen.tolist()
    assert found[0]["bound"] >= found[0]["value"] == packing.value


def test_a_table_for_people(
    weights: dict[str, str], points: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = printed(capsys, "solve", "tsp", points, "--model", weights["tsp"])
    assert "points" in table
    assert "gap" in table
    assert "(30)" in table


def test_a_file_of_several_instances_is_one_batch(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clouds = RNG.random((3, 12, 2))
    np.save(tmp_path / "three.npy", clouds)
    out = tmp_path / "labels.csv"
    found = records(
        capsys,
        *("solve", "kmeans", str(tmp_path / "three.npy"), "--k", "2"),
        *("--model", weights["kmeans"], "--out", str(out), "--plot", str(tmp_path / "three.svg")),
    )
    assert [record["instance"] for record in found] == ["three[0]", "three[1]", "three[2]"]
    alone = diconet.kmeans(clouds[1], 2, model=weights["kmeans"])
    assert found[1]["labels"] == alone.labels.tolist()
    rows = out.read_text().splitlines()
    assert rows[0] == "instance,column1,column2,label"
    x, y = clouds[1][0]
    assert rows[13] == f"three[1],{x},{y},{alone.labels[0]}"
    assert b"<svg" in (tmp_path / "three.svg").read_bytes()


def test_out_by_its_ending(
    weights: dict[str, str], points: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.csv", "a.npy", "a.tour", "a.png"):
        option = "--plot" if name == "a.png" else "--out"
        command = ["solve", "tsp", points, "--model", weights["tsp"], option, str(tmp_path / name)]
        (record,) = records(capsys, *command)
    tour = record["tour"]
    rows = (tmp_path / "a.csv").read_text().splitlines()
    assert rows[0] == "x,y,order"
    assert [row.rpartition(",")[0] for row in rows] == Path(points).read_text().splitlines()
    assert [int(row.split(",")[2]) for row in rows[1:]] == np.argsort(tour).tolist()
    assert np.load(tmp_path / "a.npy").tolist() == tour
    assert read_tour(tmp_path / "a.tour").tolist() == tour
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_standard_input_of_every_kind(
    weights: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    square = [[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]]
    binary = io.BytesIO()
    np.save(binary, np.array(square))
    for data in (
        b"0 0\n2 0\n2 2\n0 2\n1 1\n",
        b"x\ty\n0\t0\n2\t0\n2\t2\n0\t2\n1\t1\n",
        json.dumps(square).encode(),
        json.dumps([{"x": x, "y": y} for x, y in square]).encode(),
        binary.getvalue(),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        (found,) = records(capsys, "solve", "hull", "-", "--model", weights["hull"])
        assert found["indices"] == [0, 1, 2, 3]
        assert found["value"] == 4
        assert found["instance"] == "stdin"


def test_a_knapsack_brings_its_capacity(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(PISINGER + PISINGER.replace("k_1", "k_2"))
    (tmp_path / "a.json").write_text('{"values": [4, 5, 6], "weights": [2, 3, 5], "capacity": 5}')
    (tmp_path / "b.csv").write_text("name,weight,value\na,2,4\nb,3,5\nc,5,6\n")
    model = ["--model", weights["knapsack"]]
    found = records(capsys, "solve", "knapsack", str(tmp_path / "a.csv"), *model)
    assert [record["instance"] for record in found] == ["k_1", "k_2"]
    found += records(capsys, "solve", "knapsack", str(tmp_path / "a.json"), *model)
    by_name = ["solve", "knapsack", str(tmp_path / "b.csv"), "--capacity", "5"]
    found += records(capsys, *by_name, *model)
    for record in found:
        assert record["chosen"] == [0, 1]
        assert record["gap"] == 0


def test_a_tour_is_measured_against_a_known_optimum(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.tsp"
    cities = "1 0 0\n2 3 4\n3 0 8\n"
    head = "NAME : mine\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    file.write_text(f"{head}{cities}EOF\n")
    command = ["solve", "tsp", str(file), "--model", weights["tsp"]]
    (found,) = records(capsys, *command)
    assert (found["instance"], found["value"], found["optimum"]) == ("mine", 18, None)
    assert (found["bound"], found["gap"]) == (18, 0)
    (found,) = records(capsys, *command, "--optimum", "12")
    assert (found["optimum"], found["gap"]) == (12, 0.5)


def test_columns_by_name_or_number(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["name,y,x,height", *(f"a{i},{y},{x},{i}" for i, (x, y) in enumerate(POINTS))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    command = ["solve", "hull", str(tmp_path / "a.csv"), "--model", weights["hull"]]
    expected = diconet.convex_hull(POINTS, model=weights["hull"]).indices.tolist()
    for options in ([], ["--columns", "x,y"], ["--columns", "3,2"]):
        assert records(capsys, *command, *options)[0]["indices"] == expected
    turned = records(capsys, *command, "--columns", "y,x")[0]["indices"]
    assert set(turned) == set(expected)
    assert turned != expected


def test_cells() -> None:
    assert [cell(value) for value in (None, True, 3, 0.123456789, "a")] == [
        *("", "yes", "3", "0.123457", "a")
    ]
    assert cell(list(range(9))) == "0 1 2 3 4 5 6 7 ... (9)"


def test_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "engine" in printed(capsys, "bench")


def test_the_public_face_is_complete_and_lazy() -> None:
    for name in diconet.__all__:
        assert getattr(diconet, name) is not None
    assert set(diconet.__all__) <= set(dir(diconet))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        diconet.nonsense  # type: ignore[attr-defined]  # noqa: B018
    check = "import diconet, sys; sys.exit(sum(m in sys.modules for m in ('torch', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_no_public_name_is_that_of_a_module() -> None:
    """An import of the module would put it in the place of the function of that name."""
    modules = {module.name for module in pkgutil.iter_modules(diconet.__path__)}
    assert modules >= {"core", "learn"}
    assert not modules & set(diconet.__all__)


def test_cifar_goes_to_kmeans_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for task, message in (
        ("hull", "--cifar must go with kmeans; got hull."),
        ("kmeans", f"cifar must be a folder that holds test_batch; got {tmp_path}"),
    ):
        with pytest.raises(SystemExit):
            main(["reproduce", task, "--cifar", str(tmp_path)])
        assert message in capsys.readouterr().err


def test_what_is_no_number_is_null(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "far.csv").write_text("0,0\n1e200,0\n1e200,1e200\n")
    file = str(tmp_path / "far.csv")
    command = ["solve", "hull", file, "--model", weights["hull"]]
    text = printed(capsys, *command, "--json")
    assert json.loads(text, parse_constant=pytest.fail)[0]["value"] is None
    rows = json.loads(json_text([{"a": float("nan"), "b": 1.5, "c": [1], "d": float("-inf")}]))
    assert rows == [{"a": None, "b": 1.5, "c": [1], "d": None}]


def test_an_empty_knapsack_in_a_file(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"value": [], "weight": [], "capacity": 3}')
    command = ["solve", "knapsack", str(tmp_path / "a.json"), "--model", weights["knapsack"]]
    assert records(capsys, *command)[0]["chosen"] == []


def test_help_says_what_an_option_means_for_each_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["solve", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--k K kmeans: the number of clusters; select: rank of the number" in text


def test_help_of_a_benchmark_is_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "diconet bench NAME --help lists them" in printed(capsys, "bench", "--help")
    asked: list[Any] = []

    def run(command: list[Any], check: bool) -> subprocess.CompletedProcess[bytes]:
        asked.extend(command[2:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match="0"):
        main(["bench", "engine", "-h"])
    with pytest.raises(SystemExit, match="0"):
        main(["bench", "engine", "--json", "--grow", "5"])
    assert asked == ["--help", "--json", "--grow", "5"]


def test_a_file_called_as_a_task_does_not_hide_its_network(
    points: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("hull", "hull_diconet_reg"):
        Path(name).touch()
    (found,) = records(capsys, "solve", "hull", points)
    assert found["indices"] == diconet.convex_hull(POINTS).indices.tolist()
    for model in ([], ["--model", "hull"]):
        assert records(capsys, "evaluate", "hull", "--sizes", "5", "--num-sets", "2", *model)


def test_json_has_null_where_there_is_no_number(
    weights: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two points have no area, and no ratio of areas."""
    command = ["evaluate", "hull", "--model", weights["hull"], "--sizes", "2", "--num-sets", "2"]
    text = printed(capsys, *command, "--json")
    found = {r["metric"]: r["value"] for r in json.loads(text, parse_constant=pytest.fail)}
    assert found["area"] is None
    assert found["accuracy"] == 100
    assert "nan" in printed(capsys, *command)


@pytest.mark.parametrize("task", ["kmeans", "knapsack", "tsp"])
def test_the_largest_seed_is_a_seed(
    task: str, weights: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", task, "--model", weights[task], "--sizes", "10", "--num-sets", "1"]
    assert records(capsys, *command, "--seed", str(2**63 - 1))


def test_runs_are_named_after_task_preset_and_row() -> None:
    def named(preset: str, **settings: str | None) -> str:
        options = Namespace(task=Problem("hull"), preset=preset)
        return study._run_name(options, Namespace(**settings))

    assert named("default") == named("default", row=None) == "hull_default"
    assert named("paper", row="random") == "hull_paper_random"
    assert named("mine/own.yaml") == "hull_own"


def test_a_run_is_not_resumed_on_other_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Problem, "figures", lambda *_: "")
    small = ["--train.batch_size", "1", "--train.min_size", "40", "--train.max_size", "40"]
    small += [name.replace("train", "second") for name in small] + ["--second.steps", "1"]
    command = ["train", "kmeans", "--run", str(tmp_path), "--quiet", *small]
    data = ["--data", "[gaussian2, gaussian2]"]
    main([*command, *data, "--train.steps", "1"])
    with pytest.raises(SystemExit) as caught:
        main([*command, "--data", "[gaussian2, gaussian10]", "--train.steps", "2"])
    assert caught.value.code == 2
    expected = "task.tasks[1].points.num_features must stay 2 to resume the run in"
    assert expected in capsys.readouterr().err
    main([*command, *data, "--train.steps", "2"])
