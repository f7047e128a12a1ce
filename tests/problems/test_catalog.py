"""Problems that are not built in: of another package, by its entry point, or of a user's file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from diconet.cli import main
from diconet.problems import catalog
from diconet.problems.catalog import as_problem, find_problem
from diconet.problems.problem import Problem

TASK = dedent('''
    """A task of somebody else."""

    from dataclasses import dataclass

    import torch

    from diconet import SetBatch


    @dataclass(frozen=True)
    class LeftRight:
        """Cut each set in two so that x tells the parts apart."""

        num_features: int = 2

        def sample(self, num_sets, set_size, *, rng):
            items = torch.rand(num_sets * set_size, 2, generator=rng)
            return SetBatch.pack(items, torch.full((num_sets,), set_size))

        def reward(self, sets, tree):
            x, side = sets.items[:, 0], tree.sides[0].float()
            return (sets.sum(x * side) - sets.sum(x * (1 - side))) / sets.sizes


    LEFT_RIGHT = LeftRight()
''')

OBJECT = dedent("""
    from diconet import Problem
    from elsewhere import LeftRight

    PROBLEM = Problem("leftright", LeftRight(), summary="left and right", package=None)
""")

COMMANDS = dedent("""
    import contextlib, io, json, sys
    from diconet.cli import main

    for arguments in json.loads(sys.argv[1]):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(arguments)
        print(json.dumps(out.getvalue()))
""")

PAGE = dedent("""
    from fastapi.testclient import TestClient
    from diconet.problems.catalog import find_problem
    from diconet.web.app import create_app

    task = sys.argv[2]
    client = TestClient(create_app([find_problem(task)] if ".py:" in task else None))
    listed = client.get("/api/problems").json()
    points = client.get("/api/sample", params={"task": "leftright", "n": 9}).json()["points"]
    found = client.post("/api/solve", json={"task": "leftright", "points": points}).json()
    print(json.dumps([listed, found]))
""")


def installed(folder: Path, names: str) -> None:
    """A package of one module and one line of entry points, as pip would leave it."""
    (folder / "elsewhere.py").write_text(TASK)
    (folder / "elsewhere_problem.py").write_text(OBJECT)
    info = folder / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[diconet.problems]\nleftright = {names}\n")


def run(folder: Path, package: Path | None, code: str, *arguments: str) -> list[Any]:
    """What a process prints, line by line, with the folder of another package on its path."""
    paths = [str(package) if package else None, os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_commands(folder: Path, package: Path | None, task: str) -> None:
    """Train, evaluate, solve, demo and page serve the problem."""
    (folder / "points.csv").write_text("x,y\n0,0\n1,0\n1,1\n0.1,1\n")
    small = ["--train.steps", "3", "--train.batch_size", "4", "--train.max_size", "8"]
    commands = [
        ["train", task, "--quiet", *small],
        ["evaluate", task, "--sizes", "6", "--num-sets", "4", "--json"],
        ["solve", task, "points.csv", "--json", "--plot", "answer.png"],
        ["demo", task, "--json", "--out", "pictures"],
    ]
    trained, *told, page = run(folder, package, COMMANDS + PAGE, json.dumps(commands), task)
    measured, solved, shown = map(json.loads, told)
    listed, answer = page
    assert trained == "weights: runs/leftright_default/weights.safetensors\n"
    metrics = ["reward", "reward, drawn", "random division", "median division"]
    assert [record["metric"] for record in measured] == metrics
    assert len(solved[0]["labels"]) == solved[0]["items"] == 4
    assert (shown[0]["task"], shown[0]["measure"]) == ("leftright", "reward")
    assert "leftright" in [one["name"] for one in listed]
    assert len(answer["stages"][-1]["parts"]) == 9
    pictures = {path.name for path in folder.rglob("*.png")}
    assert pictures == {"answer.png", "leftright.png"}


@pytest.mark.parametrize(
    "names",
    ["elsewhere:LeftRight", "elsewhere:LEFT_RIGHT", "elsewhere_problem:PROBLEM"],
    ids=["class", "task", "problem"],
)
def test_another_package_adds_a_problem(names: str, tmp_path: Path) -> None:
    package, work = tmp_path / "package", tmp_path / "work"
    package.mkdir()
    work.mkdir()
    installed(package, names)
    if names.endswith("LeftRight"):
        check_commands(work, package, "leftright")
        return
    code = "from diconet.problems.catalog import problems, find_problem as f; import json;"
    code += "p = f('leftright'); print(json.dumps([p.name, p.summary, p in problems()]))"
    ((name, summary, listed),) = run(work, package, code)
    assert (name, listed) == ("leftright", True)
    assert summary.startswith(("left and right", "Cut each set in two"))


def test_a_task_in_a_users_own_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TASK)
    check_commands(tmp_path, None, "mine.py:LeftRight")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.py:Task", "TASK must name an existing file; there is no .*none.py."),
        ("mine.py:Other", "TASK must name a class in mine.py; it has no 'Other'."),
        ("mine.py:torch", "TASK must have a method sample; module has none."),
        ("json.py:Task", "TASK must be a file named unlike any module; json.py hides"),
    ],
)
def test_files_refused(
    text: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "json.py"):
        Path(name).write_text(TASK)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    with pytest.raises(ValueError, match=message):
        find_problem(text)
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", text])
    assert capsys.readouterr().err.count("\n") == 1


def test_a_task_must_need_no_arguments() -> None:
    class Needy:
        def __init__(self, size: int) -> None:
            self.size = size

    with pytest.raises(ValueError, match=r"TASK must be a class that needs no arg.*'size'"):
        as_problem("needy", Needy, None)


class Broken:
    """An entry point whose package cannot be imported, or is called otherwise than its problem."""

    name = "broken"
    module = "json"

    def __init__(self, found: Any) -> None:
        self.found = found

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize("found", [ImportError("no such thing"), Problem("other")])
def test_a_broken_package_stops_nothing_else(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog._of_package.cache_clear()
    monkeypatch.setattr(catalog, "_entry_points", lambda: {"broken": Broken(found)})
    with pytest.warns(UserWarning, match="problem 'broken' is left out: (no such thing|an entry)"):
        assert [one.name for one in catalog.problems()] == list(catalog.built_in())
    with pytest.raises((ImportError, ValueError)):
        find_problem("broken")
