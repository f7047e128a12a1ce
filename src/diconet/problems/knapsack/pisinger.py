"""Pisinger's knapsack instances (knapPI_*.csv, 2005): several instances per file, with optima."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diconet.io.source import Source


@dataclass(frozen=True, eq=False)
class PisingerInstance:
    """Whole `values`, `weights` and `capacity`, the optimum and a choice that attains it."""

    name: str
    values: np.ndarray
    weights: np.ndarray
    capacity: int
    optimum: int
    chosen: np.ndarray


def read_pisinger(path: str | Path) -> list[PisingerInstance]:
    """All instances in a file."""
    return parse_pisinger(Source.of(path))


def is_pisinger(source: Source) -> bool:
    """Whether the second line of a text is an item count, as in no other format."""
    start = [line for line in source.data[:4_096].splitlines() if line.strip()]
    return len(start) > 1 and re.fullmatch(rb"n \d+", start[1].strip()) is not None


def parse_pisinger(source: Source) -> list[PisingerInstance]:
    """All instances in a file that has been read.

    Each has a name, lines "n 50", "c 995", "z 8373" and "time 0.00", one line "number,value,weight,
    chosen" per item, and a line of dashes.
    """
    lines = enumerate(source.text.splitlines(), start=1)
    return list(_instances(source.name, ((number, line.strip()) for number, line in lines)))


def _instances(file: str, lines: Iterator[tuple[int, str]]) -> Iterator[PisingerInstance]:
    for number, name in lines:
        if not name or name.startswith("-"):
            continue
        try:
            header = dict(next(lines)[1].split() for _ in range(4))
            size = int(header["n"])
            items = np.array([next(lines)[1].split(",") for _ in range(size)], dtype=np.int64)
            items = items.reshape(size, 4)
        except (KeyError, ValueError, OverflowError):
            raise ValueError(
                f"instance {name!r} must have lines n, c, z, time and n items of four integers;"
                f" {file} does not, from line {number} on."
            ) from None
        except (StopIteration, RuntimeError):
            raise ValueError(
                f"instance {name!r} must have all its items; {file} ends too early."
            ) from None
        _, values, weights, chosen = items.T
        yield PisingerInstance(
            name,
            values.copy(),
            weights.copy(),
            int(header["c"]),
            int(header["z"]),
            np.flatnonzero(chosen),
        )
