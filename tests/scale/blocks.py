"""Blocks of data that workers make, some of them slowly; a module of its own, so that they can."""

from __future__ import annotations

import time

import dask
import dask.array as da
import numpy as np


def block(number: int, rows: int, width: int, seconds: float) -> np.ndarray:
    time.sleep(seconds)
    return np.random.default_rng(number).integers(1, 10**6, (rows, width)).astype(float)


def slow_array(many: int, rows: int, width: int = 2, seconds: float = 0.04) -> da.Array:
    """Blocks that take a while each, so that something can happen meanwhile."""
    make = dask.delayed(block, pure=False)
    parts = [
        da.from_delayed(make(i, rows, width, seconds), (rows, width), dtype=float)
        for i in range(many)
    ]
    return da.concatenate(parts)
