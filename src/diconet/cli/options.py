"""What the commands share: how they are added, and the options of problems."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from diconet.io.parse import count, seed, sizes
from diconet.problems.catalog import built_in, find_problem, problem_names
from diconet.problems.problem import Option, Problem

Run = Callable[[argparse.Namespace, list[str]], None]


def known_problems(arguments: Sequence[str]) -> list[Problem]:
    """The built-in problems, and those that a command line names.

    Problems of other packages are imported only if named.
    """
    names = problem_names()
    named = [find_problem(text) for text in arguments if text in names or ".py:" in text]
    return list(dict.fromkeys([*named, *built_in().values()]))


def add_command(
    commands: Any, name: str, run: Run, summary: str, *, takes_more: bool = False
) -> argparse.ArgumentParser:
    """Adds a command that calls `run`; with `takes_more`, it also gets unrecognised arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run_command=run, takes_more=takes_more)
    return parser


_SHARED: dict[str, dict[str, Any]] = {
    "--device": {"help": "device to run the network on, such as cuda (default: cpu)"},
    "--json": {"action": "store_true", "help": "print a list of records instead"},
    "--model": {"help": "shipped weights by name, a weights file or a run folder"},
    "--num-sets": {"type": count, "help": "fresh sets per size"},
    "--seed": {"type": seed, "default": 0, "help": "seed of the random draws (default: 0)"},
    "--sizes": {"type": sizes, "help": "set sizes, such as 25,50"},
}
"""Options that mean the same in every command."""


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options that several commands share."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def add_task(parser: argparse.ArgumentParser, *, many: bool = False) -> None:
    """Adds the argument for the problem, or for any number of them."""
    names = f"{', '.join(problem_names())} or file.py:Class"
    if many:
        text = f"{names} (default: all installed)"
        parser.add_argument("tasks", type=problem, metavar="TASK", nargs="*", help=text)
    else:
        parser.add_argument("task", type=problem, metavar="TASK", help=names)


def problem(text: str) -> Problem:
    """Reads the name of a problem."""
    try:
        return find_problem(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("TASK ")) from error


def add_own_options(
    parser: argparse.ArgumentParser, command: str, known: Sequence[Problem]
) -> None:
    """Adds the options that only some problems have, each once."""
    owners: dict[str, dict[str, Option]] = {}
    for one in known:
        for option in one.options:
            if command in option.commands:
                owners.setdefault(option.name, {})[one.name] = option
    for name, by_owner in owners.items():
        read = next(iter(by_owner.values())).read
        how: dict[str, Any] = {"type": read}
        if read is None:
            how = {"action": "store_true", "default": None}
        texts: dict[str, list[str]] = {}
        for owner, option in by_owner.items():
            texts.setdefault(option.help, []).append(owner)
        text = "; ".join(f"{', '.join(some)}: {text}" for text, some in texts.items())
        parser.add_argument(f"--{name}", **how, help=text)
    parser.set_defaults(owners={name: list(by_owner) for name, by_owner in owners.items()})


def own_options(options: argparse.Namespace, *chosen: Problem) -> dict[str, dict[str, Any]]:
    """The values given for each problem's own options; rejects options that none of them has."""
    given: dict[str, dict[str, Any]] = {one.name: {} for one in chosen}
    for name, owners in options.owners.items():
        value = getattr(options, name)
        if value is None:
            continue
        takers = [one.name for one in chosen if one.name in owners]
        if not takers:
            got = ", ".join(one.name for one in chosen)
            raise ValueError(f"--{name} must go with {' or '.join(owners)}; got {got}.")
        for taker in takers:
            given[taker][name] = value
    return given
