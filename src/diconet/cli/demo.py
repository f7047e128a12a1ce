"""`diconet demo`: see what it does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from diconet.cli.options import add_command
from diconet.cli.show import patience, show


def add(commands: Any) -> None:
    """Adds the command."""
    parser = add_command(
        commands, "demo", _demo, "one instance of each task with the shipped weights"
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--json", action="store_true")


def _demo(options: argparse.Namespace, _: list[str]) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    with patience("solving one instance of each task ..."):
        from diconet.demo import demo

        records = demo(options.out)
    show(records, options.json, title="one instance of each task")
    if not options.json:
        print(f"pictures: {options.out}")
