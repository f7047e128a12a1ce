"""The inputs of each training step, a function of the seed and the step number alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor

from diconet.core.host import Movable
from diconet.core.noise import seeds_from, step_generator
from diconet.core.sets import SetBatch
from diconet.core.task import Oracle, Task
from diconet.learn.config import TrainConfig
from diconet.learn.processes import Group

_AHEAD = 2
"""How many batches are prepared ahead."""


@dataclass(frozen=True, eq=False)
class Batch(Movable):
    """The inputs of one step: sets, the oracle's answers, and the seeds of their trees.

    `share` is the share of the run already done, from 0 to 1.
    """

    sets: SetBatch
    target: Any | None
    seeds: Tensor
    step: int = 0
    share: float = 0.0


def batch_at(
    step: int, task: Task, oracle: Oracle | None, config: TrainConfig, group: Group | None = None
) -> Batch:
    """The batch of step number `step`; each process of a group gets its own part."""
    group = group or Group()
    rng = step_generator(config.seed, step)
    size = _size(config, rng)
    sets = task.sample(config.batch_size, size, rng=rng)
    seeds = seeds_from(rng, config.batch_size * config.tree_samples)
    if group.world > 1:
        mine = group.part_of(config.batch_size)
        sets = sets.take(mine).as_roots()
        seeds = seeds.reshape(config.batch_size, -1)[mine].flatten()
    target = None if oracle is None else oracle(sets)
    return Batch(sets, target, seeds, step, step / config.steps)


def _size(config: TrainConfig, rng: torch.Generator) -> int:
    """The size of the inputs of a step."""
    low, high = config.min_size, config.max_size + 1
    if config.size_scale == "linear":
        return int(torch.randint(low, high, (), generator=rng, device="cpu"))
    share = float(torch.rand((), generator=rng, device="cpu"))
    return min(int(low * (high / low) ** share), config.max_size)


def batches(
    start: int, task: Task, oracle: Oracle | None, config: TrainConfig, group: Group | None = None
) -> Generator[Batch, None, None]:
    """The batches of a run from step `start` on; the next ones are made while one is in use.

    They are made on the CPU, in a separate thread, and moved to where they are used. With a time
    limit, a run has no last step.
    """
    pool = ThreadPoolExecutor(1)
    ahead: deque[Future[Batch]] = deque()
    try:
        for step in count(start) if config.seconds else range(start, config.steps):
            ahead.append(pool.submit(batch_at, step, task, oracle, config, group))
            if len(ahead) > _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
