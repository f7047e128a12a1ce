"""What a shell sees: start-up, help, completion, run folders, Ctrl-C."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diconet
from diconet.cli import main, show
from diconet.cli.completion import script
from diconet.cli.show import patience
from diconet.problems.progress import listening, tell
from tests.tiny import save_networks

HEAVY = ("torch", "numba", "pandas", "scipy", "matplotlib")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return save_networks(tmp_path_factory.mktemp("weights"))


def run_alone(*arguments: str, folder: Path) -> tuple[int, str, float]:
    """Exit code, what was said, and processor time of a command, plus the heavy modules it took."""
    code = (
        "import sys, atexit; from diconet.cli import main;"
        f"atexit.register(lambda: print('took', [m for m in {HEAVY} if m in sys.modules]));"
        f"main({list(arguments)!r})"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, done.stdout + done.stderr, spent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "tsp", "nosuch.csv"], "FILE must be a readable file; nosuch.csv: no such file"),
        (["solve", "hull", "a.csv", "--out", "a.xyz"], "--out must end in one of"),
        (["solve", "kmeans", "a.csv", "--k", "0"], "--k must be a whole number"),
        (["solve", "sudoku", "a.csv"], "TASK must be one of"),
    ],
)
def test_what_is_wrong_is_said_in_half_a_second(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    code, said, spent = run_alone(*arguments, folder=tmp_path)
    assert code == 2
    assert message in said
    assert "took []" in said
    assert spent < 0.5


def test_diconet_alone_prints_the_help(tmp_path: Path) -> None:
    code, said, spent = run_alone(folder=tmp_path)
    assert code == 0
    assert "solve" in said
    assert "took []" in said
    assert spent < 0.5


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("diconet so", {"solve"}),
        ("diconet solve k", {"kmeans", "knapsack"}),
        ("diconet solve tsp --met", {"--metric"}),
        ("diconet completion z", {"zsh"}),
    ],
)
def test_bash_completes(typed: str, expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    main(["completion", "bash"])
    words = typed.split()
    press = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _shtab_diconet;"
    code = f"{capsys.readouterr().out}\n{press} printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_other_shells_have_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("zsh", "tcsh"):
        main(["completion", shell])
        assert "kmeans" in capsys.readouterr().out
    assert callable(script)


def test_plot_takes_a_run_folder_or_one_with_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(json.dumps({"step": i, "loss": 1 / i}) + "\n" for i in range(1, 9))
    for part in ("run/first", "run/second", "plain"):
        (tmp_path / part).mkdir(parents=True)
        (tmp_path / part / "metrics.jsonl").write_text(lines)
    for name in ("run", "plain"):
        main(["plot", str(tmp_path / name), "--out", str(tmp_path / f"{name}.svg")])
    text = (tmp_path / "run.svg").read_text()
    assert "first" in text
    assert "second" in text
    with pytest.raises(SystemExit):
        main(["plot", str(tmp_path / "none"), "--out", str(tmp_path / "none.svg")])
    assert "RUN must be the folder of a training run" in capsys.readouterr().err


def test_a_model_may_be_a_run_folder_and_a_part_is_named(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = np.random.default_rng(0).random((9, 2))
    for folder in (tmp_path / "run", tmp_path / "staged" / "first"):
        folder.mkdir(parents=True)
        shutil.copy(weights["hull"], folder / "weights.safetensors")
    by_folder = diconet.convex_hull(points, model=tmp_path / "run")
    assert by_folder.indices.tolist() == diconet.convex_hull(points).indices.tolist()
    with pytest.raises(ValueError, match=r"model must be a finished run, or a part .* has first\."):
        diconet.convex_hull(points, model=tmp_path / "staged")


def test_ctrl_c_says_where_the_run_is_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it comes between stages, where the loop does not see it."""
    from diconet.problems.hull import recipe

    def stop(settings: Any, run: Path, *_: Any, **__: Any) -> None:
        run.mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(recipe, "train_model", stop)
    command = ["train", "hull", "--run", str(tmp_path / "mine")]
    with pytest.raises(SystemExit) as caught:
        main(command)
    said = capsys.readouterr().err
    assert caught.value.code == 130
    assert f"the run is in {tmp_path / 'mine'}, and the same command resumes it:" in said
    assert f"diconet train hull --run {tmp_path / 'mine'}" in said


def test_every_evaluate_has_the_same_columns(
    weights: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for task, model in weights.items():
        main(["evaluate", task, "--model", model, "--sizes", "10", "--num-sets", "2", "--json"])
        for record in json.loads(capsys.readouterr().out):
            assert list(record) == ["size", "metric", "value"]


@pytest.mark.parametrize("metric", ["haversine", "geo", "euclidean"])
def test_places_on_earth(
    metric: str, weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paris to London is 343.6 km by great circle, and there and back twice that.

    TSPLIB's GEO takes the digits after the point for minutes.
    """
    for name, rows in (
        ("a.csv", "lat,lon\n48.8566,2.3522\n51.5074,-0.1278\n"),
        ("b.csv", "Longitude,Latitude\n2.3522,48.8566\n-0.1278,51.5074\n"),
    ):
        (tmp_path / name).write_text(rows)
        main(["solve", "tsp", str(tmp_path / name), "--metric", metric, "--json"])
        printed = capsys.readouterr()
        (found,) = json.loads(printed.out)
        assert "hint" not in printed.err
        expected = {"haversine": 687.1, "geo": 668, "euclidean": 7.26}[metric]
        assert found["value"] == pytest.approx(expected, rel=1e-3)


def test_a_tour_across_the_date_line_is_short(weights: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(-20, -10, 60), (rng.uniform(175, 185, 60) + 180) % 360])
    places[:, 1] -= 180
    moved = np.column_stack([places[:, 0], places[:, 1] % 360 - 180])
    here, there = (diconet.tsp(one, metric="haversine") for one in (places, moved))
    assert here.value == pytest.approx(there.value, rel=0.02)
    with pytest.raises(ValueError, match=r"latitude \(-90 to 90\) .* got a latitude of 175"):
        diconet.tsp([[175.0, 10.0], [0.0, 0.0]], metric="haversine")


def test_a_bound_that_is_not_worked_out_says_why(
    weights: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("diconet.problems.tsp.solve.LARGEST", 5)
    (tmp_path / "a.csv").write_text("\n".join(f"{i * i},{i}" for i in range(9)))
    main(["solve", "tsp", str(tmp_path / "a.csv"), "--model", weights["tsp"], "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    assert found["bound"] is None
    assert found["note"] == "no bound: it is computed for up to 5 cities"


def test_solving_tells_its_stages_to_the_terminal_alone(
    weights: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    points = np.random.default_rng(0).random((12, 2))
    with listening(heard.append):
        diconet.tsp(points, model=weights["tsp"])
    assert heard[0] == "running the network"
    assert re.fullmatch(r"searching: 0 of 1 tours found", heard[1])

    class Terminal:
        said: list[str] = []  # noqa: RUF012

        def start(self) -> None: ...
        def stop(self) -> None: ...
        def update(self, text: str) -> None:
            self.said.append(text)

    terminal = Terminal()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        show, "console", lambda stderr: type("C", (), {"status": lambda *_: terminal})()
    )
    with patience("solving a.csv ..."):
        tell("searching")
    assert terminal.said == ["solving a.csv ... searching"]
    tell("nobody listens any more")
    assert len(terminal.said) == 1
