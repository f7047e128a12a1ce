"""`diconet models`: the shipped networks, what made them and what they reach."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.resources import as_file
from typing import Any

from diconet.cli.options import add_command
from diconet.cli.origin import NOTES
from diconet.cli.show import show
from diconet.core.notes import read_notes
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem, Record


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    summary = "shipped networks: what made them, what they reach"
    parser = add_command(commands, "models", _models, summary)
    parser.add_argument("--json", action="store_true")


def _models(options: argparse.Namespace, _: list[str]) -> None:
    records = [record for one in problems() for record in _records(one)]
    show(records, options.json, title="shipped networks (the one with its task's name is default)")


def _records(problem: Problem) -> list[Record]:
    """One record per shipped weights file; null where the file does not say."""
    records = []
    for name, resource in problem.weights.items():
        with as_file(resource) as path:
            notes = read_notes(path)
        made = {key: notes.get(key) for key in NOTES}
        records.append({"model": name, "task": problem.name, **made})
    return records
