"""Work shared by threads that release the lock; the same parts, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

P = TypeVar("P")
R = TypeVar("R")

_WORTH_IT = 1e7
"""Work from which on starting threads takes no time to speak of."""


def in_parts(do: Callable[[P], R], parts: Sequence[P], *, work: float) -> list[R]:
    """What `do` gives for each part, in their order, on as many threads as torch may use."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2 or work < _WORTH_IT:
        return [do(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(do, parts))
