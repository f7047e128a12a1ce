"""Runs work in threads that release the GIL; results do not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

P = TypeVar("P")
R = TypeVar("R")

_WORTH_IT = 1e7
"""The amount of work above which the cost of starting threads is negligible."""


def in_parts(do: Callable[[P], R], parts: Sequence[P], *, work: float) -> list[R]:
    """The results of `do` for all parts, in order, on as many threads as torch may use."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2 or work < _WORTH_IT:
        return [do(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(do, parts))
