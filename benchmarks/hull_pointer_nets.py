"""Hulls of the Pointer Networks test files: how many of our answers equal theirs.

A line holds coordinates, the word "output", and the corners counter-clockwise from 1, the first
repeated at the end (Vinyals et al., 2015).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from diconet.problems.hull.solve import convex_hull


def read(path: Path) -> tuple[list[np.ndarray], list[list[int]]]:
    """Points and corners (from 0, the lowest first) of every line."""
    clouds, answers = [], []
    for line in path.read_text().splitlines():
        left, right = line.split("output")
        clouds.append(np.array(left.split(), dtype=float).reshape(-1, 2))
        corners = [int(word) - 1 for word in right.split()[:-1]]
        start = corners.index(min(corners))
        answers.append(corners[start:] + corners[:start])
    return clouds, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print only one record")
    options = parser.parse_args()
    clouds, answers = read(options.file)
    hulls = convex_hull(clouds)
    assert isinstance(hulls, list)
    equal = sum(h.indices.tolist() == a for h, a in zip(hulls, answers, strict=True))
    record = {
        "lines": len(answers),
        "equal_percent": 100 * equal / len(answers),
        "certified_percent": 100 * float(np.mean([hull.exact for hull in hulls])),
    }
    if options.json:
        print(json.dumps([record]))
    else:
        print(f"{record['lines']:,} lines: {record['equal_percent']:.2f}% equal,", end=" ")
        print(f"{record['certified_percent']:.2f}% certified exact")


if __name__ == "__main__":
    main()
