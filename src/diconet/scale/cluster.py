"""Workers for one call: a local cluster that ends with it, or a running scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from dask.utils import format_bytes, parse_bytes
from distributed import Client, LocalCluster
from distributed.system import MEMORY_LIMIT

_SECONDS = 10
_TRIM = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"


@contextmanager
def connected(
    workers: int = 1, scheduler: str | None = None, memory: str | None = None
) -> Iterator[Client]:
    """A client of `workers` local processes with one thread each, or of a running scheduler.

    `memory` is the limit of each local worker, such as "2GB"; by default its share of the
    machine's. A worker that exceeds it is restarted. Errors in workers are raised where an answer
    is awaited, and not logged as well.
    """
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ConnectionError(f"no scheduler answers at {scheduler}: {reason}.") from None
        with client:
            yield client
        return
    try:
        limit = parse_bytes(memory) if memory else MEMORY_LIMIT // workers
    except ValueError:
        raise ValueError(f"memory must be a size such as 2GB; got {memory!r}.") from None
    # Dask makes workers return freed memory at once; a network then takes more than twice as long.
    with (
        dask.config.set({_TRIM: None}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=":0",
            env={"OMP_NUM_THREADS": "1"},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def in_words(client: Any) -> str:
    """The number of workers, their memory, and the address of the dashboard."""
    found = client.scheduler_info(n_workers=-1)["workers"].values()
    memory = {format_bytes(one["memory_limit"]) for one in found}
    many = f"{len(found)} worker{'s' * (len(found) != 1)}"
    return f"{many} of {' or '.join(sorted(memory))}, {client.dashboard_link}"
