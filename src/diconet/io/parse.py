"""Parsers for command-line values, with checks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

_MOST = 10**9
"""A limit beyond any feasible input, which all libraries still accept."""

_SEEDS = range(2**63)


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
    """Reads a number; whole numbers of any size stay exact."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise argparse.ArgumentTypeError(f"must be a number; got {text!r}.")


def sizes(text: str) -> list[int]:
    """Reads set sizes such as 25,50."""
    return [count(part) for part in text.split(",")]


def seed(text: str) -> int:
    """Reads a seed that every generator accepts."""
    found = whole(text)
    if found not in _SEEDS:
        raise argparse.ArgumentTypeError(f"must be from 0 to 2^63 - 1; got {found}.")
    return found


def existing(text: str) -> Path:
    """Reads the path of an existing file or folder."""
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"must exist; there is no {text}.")
    return path
