"""The shape of the house: imports run one way, functions are short, start-up is quick."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from diconet.problems.catalog import built_in

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "diconet"
LONGEST = 45


def run(
    *command: str, cwd: Path = ROOT, source: Path = SOURCE.parent
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def printed(code: str) -> str:
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Imports.


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    skip = shutil.ignore_patterns("__pycache__", "*.safetensors")
    shutil.copytree(SOURCE, tmp_path / "src" / "diconet", ignore=skip)
    return tmp_path


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).parent / "lint-imports"
    if not command.exists():
        pytest.skip("import-linter is not installed")
    return run(str(command), "--no-cache", cwd=folder, source=folder / "src")


def test_imports_run_one_way(copy: Path) -> None:
    done = linted(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("core/sets.py", "from diconet.learn.config import TrainConfig", "Imports run one way"),
        ("core/sets.py", "import diconet.io.source", "Imports run one way"),
        ("learn/loop.py", "from diconet.problems.hull.task import HullTask", "Imports run one way"),
        ("plot/levels.py", "import diconet.problems.problem", "Imports run one way"),
        ("problems/problem.py", "from diconet.cli.show import show", "Imports run one way"),
        ("problems/tsp/solve.py", "import diconet.problems.hull.task", "No problem knows another"),
    ],
)
def test_a_planted_backwards_import_breaks_the_contract(
    file: str, line: str, contract: str, copy: Path
) -> None:
    path = copy / "src" / "diconet" / file
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = linted(copy)
    assert done.returncode == 1, done.stdout
    assert any(contract in text and "BROKEN" in text for text in done.stdout.splitlines())


def test_the_contract_knows_every_problem() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (listed,) = [one["modules"] for one in contracts["contracts"] if one["id"] == "problems"]
    folders = [path.parent.name for path in SOURCE.glob("problems/*/__init__.py")]
    assert sorted(listed) == sorted(f"diconet.problems.{name}" for name in folders)
    assert {one.package for one in built_in().values()} == set(listed)


def test_learning_knows_no_problem() -> None:
    code = "import diconet.learn, sys; print([m for m in sys.modules if m.startswith('%s')])"
    assert printed(code % "diconet.problems") == "[]"
    assert printed(code % "diconet.nets") == "[]"


# Start-up.


def test_what_is_known_of_problems_needs_no_torch() -> None:
    code = "from diconet.problems.catalog import problems; import sys; problems()"
    code += "; print(sorted({'torch', 'numpy', 'scipy', 'numba', 'matplotlib'} & set(sys.modules)))"
    assert printed(code) == "[]"


@pytest.mark.parametrize(
    ("arguments", "code", "modules"),
    [
        ([], 0, "[]"),
        (["--help"], 0, "[]"),
        (["solve", "tsp", "nosuch.csv"], 2, "[]"),
        (["solve", "tsp", "nosuch.csv", "--out", "a.xyz"], 2, "[]"),
        (["solve", "hull", "bad.csv"], 2, "['numpy']"),
    ],
    ids=["bare", "help", "no file", "no such output", "a file of text"],
)
def test_what_needs_no_network_loads_no_torch(
    arguments: list[str], code: int, modules: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text("x,y\n0,zero\n")
    check = (
        "import sys, resource\n"
        "from diconet.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally:\n"
        "    heavy = {'torch', 'numpy', 'scipy', 'numba', 'matplotlib', 'yaml', 'rich'}\n"
        "    print(sorted(heavy & set(sys.modules)))\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)\n"
    )
    done = run(sys.executable, "-c", check, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    *_, loaded, seconds = done.stdout.splitlines()
    assert loaded == modules
    assert float(seconds) < 0.5


def test_bare_diconet_prints_the_help() -> None:
    bare, asked = (run(sys.executable, "-m", "diconet", *how) for how in ([], ["--help"]))
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, asked.stdout, "")
    assert "solve" in bare.stdout


# Functions.


def long_functions(path: Path) -> Iterator[str]:
    """Functions over the limit without their docstrings; compiled kernels may be longer."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            lines -= len((ast.get_docstring(node, clean=False) or "").splitlines())
            compiled = any("njit" in ast.unparse(one) for one in node.decorator_list)
            if lines > LONGEST and not compiled:
                yield f"{node.name}: {lines} lines"


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_functions_are_short(path: Path) -> None:
    found = list(long_functions(path))
    assert found == []


def test_a_long_function_would_be_noticed(tmp_path: Path) -> None:
    body = "    pass\n" * LONGEST
    (tmp_path / "a.py").write_text(f"def f():\n{body}\n@njit(cache=True)\ndef g():\n{body}")
    assert list(long_functions(tmp_path / "a.py")) == [f"f: {LONGEST + 1} lines"]


# Compiling.

FIRST_CALLS = [
    SOURCE / "nets" / "sweep_kernels.py",
    *(SOURCE / "problems" / "kmeans").glob("*.py"),
    *(SOURCE / "problems" / "tsp" / "search" / f"{name}.py" for name in ("exchange", "local")),
]


def slow_to_compile(path: Path) -> Iterator[str]:
    """Sorts and assignments to slices in compiled loops, which take seconds to compile."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any("njit" in ast.unparse(one) for one in function.decorator_list):
            continue
        for node in ast.walk(function):
            name = (
                node.func.attr
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                else ""
            )
            targets = node.targets if isinstance(node, ast.Assign) else []
            slices = [
                t
                for t in targets
                if isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice)
            ]
            if name in ("sort", "argsort", "unique", "searchsorted") or slices:
                yield f"{function.name}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FIRST_CALLS, ids=lambda path: path.stem)
def test_first_calls_compile_nothing_slow(path: Path) -> None:
    assert not list(slow_to_compile(path))


def test_what_is_slow_to_compile_would_be_noticed(tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text("@njit\ndef f(a, n):\n    a[:n] = 0\n    return np.argsort(a)\n")
    assert len(list(slow_to_compile(path))) == 2
