"""What each step of a run trains on, a function of the seed and the step's number alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from diconet.noise import seeds_from, step_generator
from diconet.sets import SetBatch
from diconet.task import Oracle, Task
from diconet.train_config import TrainConfig


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of one step: sets, what the oracle said of them, and the seeds of their trees."""

    sets: SetBatch
    target: Any | None
    seeds: Tensor
    step: int = 0


def batch_at(
    step: int, task: Task, oracle: Oracle | None, config: TrainConfig, rank: int, world: int
) -> Batch:
    """What step number `step` trains on; each of `world` processes gets its own part."""
    rng = step_generator(config.seed, step)
    size = int(torch.randint(config.min_size, config.max_size + 1, (), generator=rng))
    sets = task.sample(config.batch_size, size, rng=rng)
    seeds = seeds_from(rng, config.batch_size * config.tree_samples)
    if world > 1:
        share = config.batch_size // world
        mine = torch.arange(rank * share, (rank + 1) * share)
        sets = sets.take(mine).as_roots()
        seeds = seeds.reshape(config.batch_size, -1)[mine].flatten()
    return Batch(sets, None if oracle is None else oracle(sets), seeds, step)


class Batches:
    """The batches of a run from a step on, the next one made while this one is in use."""

    def __init__(self, start: int, *how: Any) -> None:
        self._how = how
        self._steps = range(start, how[2].steps)
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Iterator[tuple[int, Batch]]:
        return self._run()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> Iterator[tuple[int, Batch]]:
        ahead = [(s, self._pool.submit(batch_at, s, *self._how)) for s in self._steps[:2]]
        for step in self._steps:
            _, batch = ahead.pop(0)
            if step + 2 in self._steps:
                ahead.append((step + 2, self._pool.submit(batch_at, step + 2, *self._how)))
            yield step, batch.result()
