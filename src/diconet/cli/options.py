"""Arguments that several commands share, checked as they are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

TASKS = ("hull", "kmeans", "knapsack", "tsp")

_MOST = 10**9
"""More than anyone can wait for, and still a number that all libraries take."""

Run = Callable[[argparse.Namespace, list[str]], None]


def add_command(
    commands: Any,
    name: str,
    run: Run,
    summary: str,
    *,
    tasks: Sequence[str] = (),
    takes_more: bool = False,
) -> argparse.ArgumentParser:
    """A command that calls `run`; with `takes_more`, it gets the arguments nobody knows."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, allow_abbrev=False
    )
    parser.set_defaults(run_command=run, takes_more=takes_more)
    if tasks:
        parser.add_argument("task", type=one_of(*tasks), metavar="TASK", help=", ".join(tasks))
    return parser


def one_of(*names: str) -> Callable[[str], str]:
    """Reads one of these names."""

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(names)}; got {text!r}.")
        return text

    return read


def count(text: str) -> int:
    """Reads a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text!r}.")
    if int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"must be at most {_MOST:,}; got {text}.")
    return int(text)


def whole(text: str) -> int:
    """Reads a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r}.") from None


def number(text: str) -> int | float:
    """Reads a number; whole ones of any size stay exact."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise argparse.ArgumentTypeError(f"must be a number; got {text!r}.")


def sizes(text: str) -> list[int]:
    """Reads set sizes such as 25,50."""
    return [count(part) for part in text.split(",")]
