"""Classes of hard knapsacks for comparing solvers, as defined by Pisinger (2005)."""

from __future__ import annotations

import numpy as np

CLASSES = ("uncorrelated", "weakly", "strongly", "inverse strongly", "subset sum")


def draw(
    kind: str, size: int, largest: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, int]:
    """Values and weights up to `largest` (or a tenth more), and a capacity of 20% to 80%."""
    if kind not in CLASSES:
        raise ValueError(f"kind must be one of {', '.join(CLASSES)}; got {kind!r}.")
    spread = largest // 10
    weights = rng.integers(1, largest + 1, size)
    values = weights.copy()
    if kind == "uncorrelated":
        values = rng.integers(1, largest + 1, size)
    elif kind == "weakly":
        values = np.maximum(1, weights + rng.integers(-spread, spread + 1, size))
    elif kind == "strongly":
        values = weights + spread
    elif kind == "inverse strongly":
        weights = values + spread
    return values, weights, int(rng.uniform(0.2, 0.8) * weights.sum())
