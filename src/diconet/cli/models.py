"""`diconet models`: the shipped networks, how they were made and how good they are."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import diconet
from diconet.cli.options import add_command, add_shared
from diconet.cli.show import show
from diconet.core.files import read_notes
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem, Record

NOTES = ("preset", "overrides", "seed", "steps", "commit", "figures")
"""What every shipped weights file records."""


def note_origin(
    weights: Path, problem: Problem, preset: str, overrides: Sequence[str], settings: Any
) -> None:
    """Records in a weights file which command and code made it, and the figures it reaches.

    The steps are those of all stages in the settings, or their own `total_steps`.
    """
    from diconet.core.weights import annotate

    stages = [getattr(getattr(settings, one.name), "steps", 0) for one in fields(settings)]
    annotate(
        weights,
        preset=preset,
        overrides=shlex.join(overrides),
        seed=str(settings.train.seed),
        steps=str(getattr(settings, "total_steps", sum(stages))),
        commit=code_version(),
        figures=_figures(weights, problem, settings),
    )


def _figures(weights: Path, problem: Problem, settings: Any) -> str:
    """The figures of the network; empty if `solve` does not accept this kind."""
    try:
        return problem.figures(weights, settings)
    except ValueError as error:
        print(f"diconet: no figures recorded: {error}", file=sys.stderr)
        return ""


def code_version() -> str:
    """The commit of the package's checkout, with a + if files have changed since.

    Outside a checkout of its own, the package's version.
    """
    folder = Path(diconet.__file__).parent
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(folder, "rev-parse", "--short=10", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return diconet.__version__
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    summary = "shipped networks: how they were made, the figures they reach"
    parser = add_command(commands, "models", _models, summary)
    add_shared(parser, "--json")


def _models(options: argparse.Namespace, _: list[str]) -> None:
    records = [record for one in problems() for record in _records(one)]
    show(records, options.json, title="shipped networks (default: the one named like its task)")


def _records(problem: Problem) -> list[Record]:
    """One record per shipped weights file; null for what the file does not record."""
    records = []
    for name, resource in problem.weights.items():
        with as_file(resource) as path:
            notes = read_notes(path)
        made = {key: notes.get(key) for key in NOTES}
        records.append({"model": name, "task": problem.name, **made})
    return records
