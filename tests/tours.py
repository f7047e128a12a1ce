"""Tours from TSPLIB's .tour files, to compare with those that were written or are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def read_tour(path: Path) -> np.ndarray:
    """The tour of a file, as a permutation that counts from 0."""
    _, _, section = path.read_text().partition("TOUR_SECTION")
    return np.array(section.split("-1")[0].split(), dtype=np.int64) - 1
