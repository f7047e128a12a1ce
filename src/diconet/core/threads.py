"""Work shared by threads, in compiled loops that release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

from diconet.core.host import available_threads

P = TypeVar("P")
R = TypeVar("R")

_WORTH_IT = 1e7
"""How many multiplications make the time of waking a thread negligible."""

_inside = threading.local()


def in_parts(do: Callable[[P], R], parts: Sequence[P], *, work: float) -> list[R]:
    """The results of `do` for all parts, in order, on as many threads as are available.

    The `work` is about how many multiplications they make in all: if it is little, there is one
    thread. So there is for parts of a part.
    """
    threads = min(available_threads(), len(parts))
    if threads < 2 or work < _WORTH_IT or hasattr(_inside, "pool"):
        return [do(part) for part in parts]
    return list(_pool(threads).map(do, parts))


def over_rows(do: Callable[[int, int], R], rows: int, *, work: float) -> list[R]:
    """The results of `do(begin, end)` for consecutive parts of the rows, one for each thread."""
    threads = available_threads() if work >= _WORTH_IT else 1
    bounds = [rows * part // threads for part in range(threads + 1)]
    parts = list(pairwise(bounds))
    return in_parts(lambda part: do(*part), parts, work=work)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work: starting them anew for each loop would cost more."""
    return ThreadPoolExecutor(
        threads, "diconet", initializer=setattr, initargs=(_inside, "pool", 1)
    )


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of them
