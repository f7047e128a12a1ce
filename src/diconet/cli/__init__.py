"""The command line: one module per group of commands; bad input gives one line and exit code 2."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

from diconet.cli import bench, completion, models, see, solve, study
from diconet.cli.options import known_problems
from diconet.problems.problem import Problem

FAMILIES = (solve, study, bench, see, models, completion)

_TOO_LARGE = re.compile("allocate memory|not enough memory|size calculation overflow")
"""Torch's error messages for too little memory."""


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        plain = message.removeprefix("argument ").replace(": must", " must", 1)
        self.exit(2, f"{self.prog}: {plain}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `diconet`."""
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt as stop:
        print(f"diconet: {stop or 'stopped'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, OSError) as error:
        print(f"diconet: {' '.join(_said(error).split())}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _TOO_LARGE.search(str(error)):
            raise
        print("diconet: not enough memory to hold all of it at once.", file=sys.stderr)
        sys.exit(2)


def _run(arguments: Sequence[str]) -> None:
    parser = parser_of(known_problems(arguments))
    if not arguments:
        parser.print_help()
        return
    options, rest = parser.parse_known_args(arguments)
    if rest and not options.takes_more:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.typed = shlex.join(["diconet", *arguments])
    options.run_command(options, rest)


def _said(error: Exception) -> str:
    """An error's message without the system's error number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return str(error)


def parser_of(known: Sequence[Problem]) -> Parser:
    """The parser for all commands, with the options of the `known` problems."""
    from diconet import __version__

    parser = Parser(prog="diconet", description="Divide and Conquer Networks.")
    parser.add_argument("--version", action="version", version=f"diconet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for family in FAMILIES:
        family.add(commands, known)
    return parser
