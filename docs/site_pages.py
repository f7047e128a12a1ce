"""A MkDocs hook: pages generated from the code, the full page list, links out of this folder.

The command line reference comes from the parser, the model cards from the notes in the weights, the
Python reference from the public names, and every example is a page. Nothing of it can go stale.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

log = logging.getLogger("mkdocs.hooks.site_pages")
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

SOLVE = (
    "convex_hull",
    "kmeans",
    "knapsack",
    "tsp",
    "Solution",
    "Hull",
    "Clusters",
    "Packing",
    "Tour",
)
SOLVE_HEADING, TASK_HEADING = "Solve something", "Your own task and its building blocks"

OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files outside this folder that become pages unchanged."""


def on_config(config: Any) -> Any:
    """Completes the navigation."""
    known = set(made_pages()) | {str(path.relative_to(DOCS)) for path in _pages()}
    listed: set[str] = set()
    config.nav = _kept(config.nav, known, listed)
    rest = sorted(known - listed)
    if rest:
        config.nav.append({"More": rest})
    return config


def _pages() -> list[Path]:
    return [path for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb")]


def _kept(nav: list[Any], known: set[str], listed: set[str]) -> list[Any]:
    """Entries whose pages exist; a folder name stands for all pages in it."""
    kept: list[Any] = []
    for entry in nav:
        title, target = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(target, list):
            inner = _kept(target, known, listed)
            if inner:
                kept.append({title: inner})
        elif (DOCS / target).is_dir():
            inside = sorted(page for page in known if page.startswith(f"{target}/"))
            kept += inside
            listed.update(inside)
        elif target in known:
            kept.append(entry)
            listed.add(target)
    return kept


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages."""
    for name, content in made_pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def made_pages() -> dict[str, str]:
    """The pages generated from the code, by name."""
    return {
        "command_line.md": command_line(),
        "models.md": model_cards(),
        "api.md": python_reference(),
        "examples.md": examples(),
        **{name: (ROOT / source).read_text() for source, name in OUTSIDE.items()},
    }


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Redirects links to files outside this folder to the pages that show them."""
    up = "../" * page.file.src_uri.count("/")

    def there(found: re.Match[str]) -> str:
        example = re.fullmatch(r"(?:\.\./)*examples/?(?:(\w+)\.py)?", found[1])
        if example:
            anchor = f"#{example[1]}" if example[1] else ""
            return f"]({up}examples.md{anchor})"
        name = found[1].removeprefix("../").removeprefix("docs/")
        if name in OUTSIDE:
            return f"]({up}{OUTSIDE[name]})"
        return f"]({name})" if page.file.src_uri in OUTSIDE.values() else found[0]

    return re.sub(r"\]\(([^)#:\s]+)\)", there, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Resolves links in notebooks, which MkDocs leaves alone."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def there(found: re.Match[str]) -> str:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), found[1]))
        target = files.get_file_from_path(name)
        if target is None:
            log.warning("'%s' has a link '%s', which leads nowhere.", page.file.src_uri, found[1])
            return found[0]
        return f'href="{get_relative_url(target.url, page.url)}"'

    return re.sub(r'href="([^":#]+\.(?:md|ipynb))"', there, html)


def command_line() -> str:
    """The help of every command, from the parser itself."""
    os.environ["COLUMNS"] = "96"
    from diconet.cli import parser_of
    from diconet.cli.options import known_problems

    parser = parser_of(known_problems([]))
    commands = next(one.choices for one in parser._actions if isinstance(one.choices, dict))
    lines = [
        "# Command line",
        "",
        "Generated from the parser: the output of `diconet COMMAND --help`.",
        "",
    ]
    for name, command in commands.items():
        lines += [f"## diconet {name}", "", "```text", command.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def model_cards() -> str:
    """The notes stored in each weights file."""
    from importlib.resources import as_file

    from diconet.cli.models import NOTES
    from diconet.core.files import read_notes
    from diconet.problems.catalog import built_in

    lines = [
        "# Model cards",
        "",
        "The notes stored in each shipped weights file; `diconet models` prints the same. The"
        " network named like its problem is the default. None contains pickle. They were trained on"
        " generated instances, those for k-means also on patches of scikit-learn's two sample"
        " photographs.",
    ]
    for problem in built_in().values():
        lines += ["", f"## {problem.name}: {problem.summary}", ""]
        if (DOCS / "results" / f"{problem.name}.md").exists():
            page = f"results/{problem.name}.md"
            lines += [f"How they work, their quality and their limits: [results]({page}).", ""]
        lines += [f"| network | kB | {' | '.join(NOTES)} |", f"|{'---|' * (len(NOTES) + 2)}"]
        for name, resource in sorted(problem.weights.items()):
            with as_file(resource) as path:
                notes, size = read_notes(path), path.stat().st_size
            cells = [f"`{name}`", f"{size / 1000:.0f}", *(_cell(notes.get(key)) for key in NOTES)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(text: Any) -> str:
    return "" if text is None else str(text).replace("|", "\\|").replace("\n", " ")


def python_reference() -> str:
    """The reference of every public name, from its docstring."""
    import diconet

    lines = ["# Python", "", "Everything that `import diconet` offers, from the docstrings.", ""]
    names = [name for name in diconet.__all__ if not name.startswith("__")]
    for heading, some in (
        (SOLVE_HEADING, [name for name in SOLVE if name in names]),
        (TASK_HEADING, [name for name in names if name not in SOLVE]),
    ):
        lines += [f"## {heading}", ""]
        lines += [f"::: {diconet._MODULE[name]}.{name}\n" for name in some]
    return "\n".join(lines)


def examples() -> str:
    """The example tasks, each with its code."""
    lines = [
        "# Examples",
        "",
        "Tasks, one per file; `python examples/gallery.py` trains them.",
        "",
    ]
    for file in sorted((ROOT / "examples").glob("*.py")):
        lines += [f"## {file.stem}", "", "```python", file.read_text().rstrip(), "```", ""]
    return "\n".join(lines)
