"""The command line: one module a family of commands; a bad input is one line and exit code 2."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from diconet.cli import bench, demo, see, solve, study

FAMILIES = (solve, study, bench, see, demo)

_TOO_LARGE = re.compile("allocate memory|not enough memory|size calculation overflow")
"""How torch says that there is no room."""


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        plain = message.removeprefix("argument ").replace(": must", " must", 1)
        self.exit(2, f"{self.prog}: {plain}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `diconet`."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and not getattr(options, "takes_more", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        options.run_command(options, rest)
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
        print("diconet: not enough memory for so much at once.", file=sys.stderr)
        sys.exit(2)


def _said(error: Exception) -> str:
    """What went wrong, without the system's number for it."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return str(error)


def _parser() -> Parser:
    from diconet import __version__

    parser = Parser(prog="diconet", description="Divide and Conquer Networks.")
    parser.add_argument("--version", action="version", version=f"diconet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for family in FAMILIES:
        family.add(commands)
    return parser
