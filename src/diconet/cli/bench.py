"""`diconet bench`: speed, memory and growth, measured by scripts in the repository."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import diconet
from diconet.problems.problem import Problem


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the command."""
    summary = "speed, memory and their growth, compared with the usual alternatives"
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help=summary,
        description=summary,
        epilog="further options go to the script: diconet bench NAME --help lists them",
        allow_abbrev=False,
        add_help=False,  # given a NAME, --help goes to the script
    )
    parser.set_defaults(run_command=partial(_bench, parser), takes_more=True)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the benchmark; omit to list them")
    parser.add_argument("-h", "--help", action="store_true", help="show this, or NAME's options")
    parser.add_argument("--json", action="store_true", help="print a list of records instead")


def _bench(parser: argparse.ArgumentParser, options: argparse.Namespace, rest: list[str]) -> None:
    if options.help and options.name is None:
        parser.print_help()
        return
    scripts = _scripts()
    if options.name is None:
        for name, script in scripts.items():
            print(f"{name:12} {_summary(script)}")
        return
    if options.name not in scripts:
        raise ValueError(f"NAME must be one of {', '.join(scripts)}; got {options.name!r}.")
    flags = [f"--{flag}" for flag in ("help", "json") if getattr(options, flag)]
    done = subprocess.run([sys.executable, scripts[options.name], *flags, *rest], check=False)
    sys.exit(done.returncode)


def _scripts() -> dict[str, Path]:
    """The benchmark scripts of the checkout that holds this package, by name."""
    folder = Path(diconet.__file__).parents[2] / "benchmarks"
    found = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem[0] != "_"}
    if not found:
        raise ValueError(
            "bench must run from a checkout of the repository, where its scripts are"
            f" (pip install -e .); {folder} has none."
        )
    return found


def _summary(script: Path) -> str:
    lines = script.read_text().split('"""')
    return lines[1].strip().splitlines()[0] if len(lines) > 2 else ""
