"""Work shared by threads that release the lock; the same parts, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

P = TypeVar("P")
R = TypeVar("R")


def in_parts(work: Callable[[P], R], parts: Sequence[P]) -> list[R]:
    """What `work` gives for each part, in their order, on as many threads as torch may use."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))
