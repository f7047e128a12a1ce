"""The pages name things that exist, and their code runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAPER_LABELS = (
    *("basicrec", "partidef", "gu1", "gu2", "fr2", "fr3", "gat4", "mergefinaleq", "saq1", "sqq2"),
    *("kmeans_reward", "eq:knapsack", "split_reg", "encoder", "ptrnetatt", "encoder2"),
    *("convexhull_results", "kmeans_results", "knap_results", "tsp_results"),
    *("figuresummary", "convexhull_examples", "knapfig", "figure11"),
)


def named(page: str) -> list[str]:
    """All `diconet.module.Thing` of a page."""
    text = (DOCS / page).read_text()
    return sorted(set(re.findall(r"`(diconet(?:\.\w+)+)[`(]", text)))


def resolve(name: str) -> object:
    """The thing of that name: the longest module in it, then attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        try:
            found = find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if found:
            return reduce(getattr, parts[cut:], import_module(module))
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize(
    "page", ["paper_to_code.md", "add_a_task.md", "concepts.md", "architecture.md"]
)
def test_every_name_exists(page: str) -> None:
    names = named(page)
    assert names or page == "concepts.md"
    for name in names:
        resolve(name)


def test_a_name_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("diconet.core.tree.shrink")
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        resolve("diconet.trees.grow")


def test_every_numbered_thing_of_the_paper_is_there() -> None:
    page = (DOCS / "paper_to_code.md").read_text()
    assert [label for label in PAPER_LABELS if f"`{label}`" not in page] == []
    for number in range(1, 23):
        assert f"({number})" in page


@pytest.mark.parametrize("page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text()
    files = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    beside = (DOCS / page).parent
    assert [name for name in files if not (beside / name).exists()] == []
    named = re.findall(r"`((?:examples|src)/[\w/.]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """All pages listed, all links alive, those of pages made from the code too; notebooks rest."""
    pytest.importorskip("mkdocs_jupyter", reason="the docs extra is not installed")
    pytest.importorskip("mkdocstrings", reason="the docs extra is not installed")
    rest = {"DICONET_RUN_NOTEBOOKS": "false", "NO_MKDOCS_2_WARNING": "1"}
    env = os.environ | rest | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    commands = (tmp_path / "command_line" / "index.html").read_text()
    for name in ("solve", "train", "evaluate", "reproduce", "web", "models"):
        assert f"usage: diconet {name}" in commands
    cards = (tmp_path / "models" / "index.html").read_text()
    reference = (tmp_path / "api" / "index.html").read_text()
    assert "hull_diconet_reg" in cards
    assert "network_for" in reference


def test_notebooks_are_kept_without_outputs() -> None:
    notebooks = sorted((DOCS / "tutorials").glob("*.ipynb"))
    assert len(notebooks) >= 4
    for path in notebooks:
        cells = json.loads(path.read_text())["cells"]
        assert [cell["outputs"] for cell in cells if cell.get("outputs")] == [], path.name
    listed = (DOCS / "tutorials" / "index.md").read_text()
    assert [path.name for path in notebooks if f"({path.name})" not in listed] == []


def test_the_citation_names_the_paper_and_the_version() -> None:
    from diconet import __version__

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == __version__
    assert cited["preferred-citation"]["title"] == "Divide and Conquer Networks"
    assert f"version = {{{__version__}}}" in (DOCS / "cite.md").read_text()


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_walk_through_the_code_runs() -> None:
    (walk,) = blocks("concepts.md")
    scope: dict[str, object] = {}
    exec(walk, scope)
    assert scope["tree"].depth == 2  # type: ignore[attr-defined]


def test_the_task_of_the_page_runs() -> None:
    first, use, *_ = blocks("add_a_task.md")
    assert first.rstrip().endswith("train(model, task)")
    quick = "from diconet import TrainConfig\ntrain(model, task, TrainConfig(steps=2), quiet=True)"
    scope: dict[str, object] = {}
    exec(first.replace("train(model, task)", quick), scope)
    exec(use.replace("sample(200", "sample(5"), scope)


def test_every_example_is_on_the_page() -> None:
    page = (DOCS / "add_a_task.md").read_text()
    tasks = [p for p in (ROOT / "examples").glob("*.py") if "from gallery" in p.read_text()]
    assert [task.stem for task in tasks if f"examples/{task.stem}.py" not in page] == []


FOLLOWED = """
import os, sys
order, root = [], os.path.dirname(sys.argv[1])

def entered(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(root):
        name = os.path.relpath(code.co_filename, root)
        if name not in order:
            order.append(name)

{first}  # imports and compiles; then all is forgotten but that
sys.setprofile(entered)
{again}
sys.setprofile(None)
print(*order)
"""

SOLVED = """
import numpy as np
import diconet
from diconet.problems.hull import PROBLEM
from diconet.problems.networks import _kept
points = np.random.default_rng(0).random((60, 2))
diconet.convex_hull(points)
del diconet.convex_hull
_kept.cache_clear()
vars(PROBLEM).pop("weights")
"""

TRAINED = """
from diconet.cli import main
short = ["--train.steps", "2", "--triples.split_train.steps", "2", "--triples.resolutions", "[0.1]"]
main(["train", "hull", *short, "--run", "first"])
"""


def followed(first: str, again: str, folder: Path) -> list[str]:
    """The files of the package that the second of two calls enters, in order."""
    file = str(ROOT / "src" / "diconet" / "__init__.py")
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", FOLLOWED.format(first=first, again=again), file]
    done = subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()[-1].split()


def listed(heading: str) -> list[str]:
    """The files in the table below a heading of the architecture page."""
    text = (DOCS / "architecture.md").read_text()
    section = text.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+\.py`) \|", section, re.MULTILINE)
    return re.findall(r"`([\w/]+\.py)`", " ".join(rows))


def test_the_files_of_a_walk_exist_and_come_once() -> None:
    for heading in ("From `diconet.convex_hull(points)`", "From `diconet train hull`"):
        files = listed(heading)
        assert len(files) == len(set(files)) > 10
        assert [name for name in files if not (ROOT / "src" / "diconet" / name).is_file()] == []


def test_the_walk_to_a_hull_is_the_one_that_a_call_takes(tmp_path: Path) -> None:
    files = followed(SOLVED, "diconet.convex_hull(points)", tmp_path)
    assert listed("From `diconet.convex_hull(points)`") == files


def test_the_walk_to_weights_is_the_one_that_a_run_takes(tmp_path: Path) -> None:
    again = 'main(["train", "hull", *short, "--run", "again"])'
    assert listed("From `diconet train hull`") == followed(TRAINED, again, tmp_path)
