"""Workers for one call: a local cluster that ends with it, or a scheduler of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from dask.utils import format_bytes
from distributed import Client, LocalCluster

_SECONDS = 10
_TRIM = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"


@contextmanager
def connected(
    workers: int | None = None, scheduler: str | None = None, memory: str = "auto"
) -> Iterator[Client]:
    """A client of `workers` local processes with one thread each, or of a running scheduler.

    `memory` is what each local worker may use, such as "2GB"; one that takes more starts again.
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
    # Dask has workers hand back freed memory at once; a network then takes four times as long.
    with (
        dask.config.set({_TRIM: None}),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def in_words(client: Any) -> str:
    """How many workers of which memory there are, and where to watch them."""
    found = client.scheduler_info(n_workers=-1)["workers"].values()
    memory = {format_bytes(one["memory_limit"]) for one in found}
    return f"{len(found)} workers of {' or '.join(sorted(memory))}, {client.dashboard_link}"
