"""`diconet bench`: speed, memory and growth, by the scripts of the repository."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import diconet
from diconet.cli.options import add_command


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "bench",
        _bench,
        "speed, memory and their growth, beside what a user would pick instead",
        takes_more=True,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="which; without, lists them")
    parser.add_argument("--json", action="store_true")
    parser.epilog = "further options go to the script: diconet bench NAME --help lists them"


def _bench(options: argparse.Namespace, rest: list[str]) -> None:
    scripts = _scripts()
    if options.name is None:
        for name, script in scripts.items():
            print(f"{name:12} {_summary(script)}")
        return
    if options.name not in scripts:
        raise ValueError(f"NAME must be one of {', '.join(scripts)}; got {options.name!r}.")
    flags = ["--json"] if options.json else []
    done = subprocess.run([sys.executable, scripts[options.name], *flags, *rest], check=False)
    sys.exit(done.returncode)


def _scripts() -> dict[str, Path]:
    """The benchmark scripts of the checkout this package lies in, by name."""
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
