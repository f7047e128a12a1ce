"""Every example runs, as its own process, in its short form."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "gallery")
TASKS = [path for path in EXAMPLES if "from gallery import" in path.read_text()]
MOST_LINES = 60


def _run(path: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), *arguments, "--quick"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_ten_tasks() -> None:
    assert len(TASKS) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    if path.stem == "routes" and not util.find_spec("pyvrp"):
        assert "skipped: needs pyvrp" in _run(path, tmp_path)
    else:
        assert _run(path, tmp_path).strip()


def test_gallery_shows_the_tasks_it_is_asked_for(tmp_path: Path) -> None:
    shown = _run(FOLDER / "gallery.py", tmp_path, "sorting", "makespan")
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines] == ["task", "sorting", "makespan", "bars"]
    assert "reference" in lines[0]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_a_task_takes_a_user_at_most_sixty_lines(path: Path) -> None:
    """Code alone: no docstrings, comments or empty lines, and not the classical reference."""
    tree = ast.parse(path.read_text())
    kept = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and node.name in ("reference", "bar"))
        and not (isinstance(node, ast.If))
    ]
    for node in ast.walk(ast.Module(kept, [])):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and len(body) > 1:
                body.pop(0)
    code = ast.unparse(ast.Module(kept, []))
    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES
