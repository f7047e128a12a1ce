"""Work on chunks: one task per leaf, a tree of merges over them, and waiting for the result.

Every task is a pure function of its inputs, so Dask can repeat what a lost worker had done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed

from diconet.scale.chunks import Chunks, read

SPLIT_EVERY = 8
"""The number of partial answers per merge."""

PATIENCE = 30.0
"""Seconds without any worker after which waiting ends with an error."""

POLL = 0.25
"""Seconds between checks of the cluster."""

Report = Callable[[dict[str, tuple[int, int]]], None]
"""Receives, per kind of task, how many are done and how many there are."""

_T = TypeVar("_T")

_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Calls `report` with the progress while the block runs on a cluster."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def leaves(work: Callable[..., Any], chunks: Chunks, name: str, *shared: Any) -> list[Delayed]:
    """`work(rows, number, *shared)` for the rows of every leaf."""
    group = f"{name} leaves-{uuid4().hex}"
    common = delayed(shared, pure=False, traverse=False)
    return [
        delayed(_on_rows, pure=False)(
            work,
            [chunk.source for chunk in leaf],
            [chunk.name for chunk in leaf],
            chunks.what,
            number,
            common,
            dask_key_name=(group, number),
        )
        for number, leaf in enumerate(chunks.leaves)
    ]


def _on_rows(
    work: Callable[..., Any], sources: list[Any], names: list[str], what: str, number: int,
    shared: tuple[Any, ...],
) -> Any:  # fmt: skip
    return work(read(sources, names, what), number, *shared)


def merged(merge: Callable[[list[Any]], Any], parts: Sequence[Delayed], name: str) -> Delayed:
    """One answer from many: `merge` on groups of neighbours, and again on the results."""
    group, number, level = f"{name} merges-{uuid4().hex}", 0, list(parts)
    task = delayed(merge, pure=False)
    while number == 0 or len(level) > 1:
        above = []
        for start in range(0, len(level), SPLIT_EVERY):
            several = level[start : start + SPLIT_EVERY]
            above.append(task(several, dask_key_name=(group, number)))
            number += 1
        level = above
    return level[0]


def reduced(
    work: Callable[..., Any],
    merge: Callable[[list[Any]], Any],
    chunks: Chunks,
    name: str,
    *shared: Any,
) -> Any:
    """The result of one pass: work on every leaf, merged up the tree."""
    return computed(merged(merge, leaves(work, chunks, name, *shared), name))


def gathered(parts: list[_T]) -> _T:
    """Several dataclasses combined into one: arrays concatenated, numbers added, recursively."""
    first: Any = parts[0]

    def joined(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], np.ndarray):
            return np.concatenate(values)
        return gathered(values) if is_dataclass(values[0]) else sum(values)

    return cast("_T", replace(first, **{field.name: joined(field.name) for field in fields(first)}))


def added(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Several tuples of arrays and numbers combined into one: first elements added, and so on."""
    return tuple(map(sum, zip(*parts, strict=True)))


def by_block(array: da.Array) -> Iterator[tuple[int, np.ndarray]]:
    """The values of a column, one block at a time, each with the index where it begins."""
    start = 0
    for block in array.blocks:
        values = block.compute()
        yield start, values
        start += len(values)


def in_order(parts: Sequence[Delayed], sizes: Sequence[int] | np.ndarray, dtype: Any) -> da.Array:
    """A Dask array of one column from its pieces, each computed on demand."""
    pieces = [
        da.from_delayed(part, (int(size),), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(pieces) if pieces else da.zeros(0, dtype=dtype)


def computed(wanted: Delayed | da.Array) -> Any:
    """The result of a task: on the current Dask client, or in this process if there is none."""
    client = _client()
    if client is None:
        return compute(wanted)[0]
    future = client.compute(wanted)
    _await(client, [future])
    return future.result()


def kept(wanted: Sequence[Delayed]) -> list[Delayed]:
    """The same tasks, computed; their results stay on the workers."""
    client = _client()
    if client is None:
        return [delayed(one, pure=False, traverse=False) for one in compute(*wanted)]
    futures = client.compute(list(wanted))
    _await(client, futures)
    return [delayed(future) for future in futures]


def _client() -> Any:
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _await(client: Any, futures: list[Any]) -> None:
    """Waits for futures until the cluster can no longer compute them; raises their errors."""
    from distributed import KilledWorker

    try:
        _wait_while_alive(client, futures)
        for future in futures:
            if future.status != "finished":
                future.result()
    except KilledWorker as error:
        raise ConnectionError(
            f"a task was lost with {error.allowed_failures + 1} workers in a row:"
            " give workers more memory, or data in smaller chunks."
        ) from None


def _wait_while_alive(client: Any, futures: list[Any]) -> None:
    from distributed import wait

    report, alone_since = _report.get(), None
    while not all(future.done() for future in futures):
        with suppress(TimeoutError):
            wait(futures, timeout=POLL)
        if any(future.status == "error" for future in futures):
            return
        if client.status != "running":
            raise ConnectionError("the scheduler is gone; restart it and call again.")
        if report is not None:
            report(client.run_on_scheduler(_progress))
        if client.nthreads():
            alone_since = None
        elif alone_since is None:
            alone_since = time.monotonic()
        elif time.monotonic() - alone_since > PATIENCE:
            client.cancel(futures, force=True)
            raise ConnectionError(
                f"no worker is left at {client.scheduler.address}; start some and call again."
            )


def _progress(dask_scheduler: Any) -> dict[str, tuple[int, int]]:
    """Tasks done and tasks in all, per kind of leaf or merge."""
    found: dict[str, tuple[int, int]] = {}
    for name, group in dask_scheduler.task_groups.items():
        kind = name.partition("-")[0]
        if kind.endswith((" leaves", " merges")):
            states = group.states
            before = found.get(kind, (0, 0))
            total = sum(states.values())
            left = sum(states[s] for s in ("waiting", "queued", "no-worker", "processing"))
            found[kind] = (before[0] + total - left, before[1] + total)
    return found
