"""`diconet completion`: shell completion of commands, problems, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from diconet.cli.options import add_command
from diconet.problems.catalog import problem_names
from diconet.problems.problem import Problem

_SHELLS = ("bash", "zsh", "tcsh")
_HOW = """to use it:
  bash  diconet completion bash > ~/.local/share/bash-completion/completions/diconet
  zsh   diconet completion zsh > a folder of your $fpath, as _diconet
  tcsh  diconet completion tcsh > a file that ~/.tcshrc sources"""
_PATHS = ("files", "runs", "run", "out", "plot", "model", "edges", "centers", "preset", "cifar")
"""Arguments that are or may be paths."""


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    parser = add_command(commands, "completion", _print, "print a completion script for your shell")
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    parser.epilog = _HOW


def _print(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.cli import parser_of
    from diconet.problems.catalog import built_in

    print(script(parser_of(list(built_in().values())), options.shell))


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script for a shell, with the problems installed now."""
    import shtab

    names = " ".join(problem_names())
    tasks = {"bash": "_diconet_tasks", "zsh": f"({names})", "tcsh": f"'({names})'"}
    for action in _actions(parser):
        if action.dest in _PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "TASK":
            action.complete = tasks  # type: ignore[attr-defined]
    preamble = f"_diconet_tasks() {{ compgen -W '{names}' -- \"$1\"; }}" if shell == "bash" else ""
    found: str = shtab.complete(parser, shell, preamble=preamble)
    return found


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
