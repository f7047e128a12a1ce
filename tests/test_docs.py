"""The pages name things that exist, and their code runs."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("page", ["paper_to_code.md", "add_a_task.md", "concepts.md"])
def test_every_name_exists(page: str) -> None:
    names = named(page)
    assert names or page == "concepts.md"
    for name in names:
        resolve(name)


def test_a_name_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("diconet.tree.shrink")
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        resolve("diconet.trees.grow")


def test_every_numbered_thing_of_the_paper_is_there() -> None:
    page = (DOCS / "paper_to_code.md").read_text()
    assert [label for label in PAPER_LABELS if f"`{label}`" not in page] == []
    for number in range(1, 23):
        assert f"({number})" in page


@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text()
    files = re.findall(r"\]\(([^)#:]+)\)", text)
    files += [f"../{name}" for name in re.findall(r"`((?:examples|src)/[\w/.]+)`", text)]
    assert [name for name in files if not (DOCS / name).exists()] == []


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_walk_through_the_code_runs() -> None:
    (walk,) = blocks("concepts.md")
    scope: dict[str, object] = {}
    exec(walk, scope)
    assert scope["tree"].depth == 2  # type: ignore[attr-defined]


def test_the_task_of_the_page_is_that_of_the_example() -> None:
    first, *_ = blocks("add_a_task.md")
    task = first[first.index("@dataclass") : first.index("task = TwoMeans()")].strip()
    assert task in (ROOT / "examples" / "two_means.py").read_text()
