"""What each step of a run trains on, a function of the seed and the step's number alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor

from diconet.core.noise import seeds_from, step_generator
from diconet.core.sets import SetBatch
from diconet.core.task import Oracle, Task
from diconet.learn.config import TrainConfig
from diconet.learn.processes import Group

_AHEAD = 2
"""How many batches are made while one is in use."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of one step: sets, the oracle's answers to them, and the seeds of their trees.

    `share` is how much of the run lies behind, from 0 to 1.
    """

    sets: SetBatch
    target: Any | None
    seeds: Tensor
    step: int = 0
    share: float = 0.0

    def to(self, device: torch.device) -> Batch:
        """The batch on another device; a target that has no `to` stays where it is."""
        move = getattr(self.target, "to", None)
        target = self.target if move is None else move(device)
        return replace(self, sets=self.sets.to(device), target=target, seeds=self.seeds.to(device))


def batch_at(
    step: int, task: Task, oracle: Oracle | None, config: TrainConfig, group: Group | None = None
) -> Batch:
    """What step number `step` trains on; each process of a group gets its own part."""
    group = group or Group()
    rng = step_generator(config.seed, step)
    low, high = config.min_size, config.max_size + 1
    size = int(torch.randint(low, high, (), generator=rng, device="cpu"))
    sets = task.sample(config.batch_size, size, rng=rng)
    seeds = seeds_from(rng, config.batch_size * config.tree_samples)
    if group.world > 1:
        mine = group.part_of(config.batch_size)
        sets = sets.take(mine).as_roots()
        seeds = seeds.reshape(config.batch_size, -1)[mine].flatten()
    target = None if oracle is None else oracle(sets)
    return Batch(sets, target, seeds, step, step / config.steps)


class Batches:
    """The batches of a run from a step on; the next ones are made while this one is in use.

    They are made on the CPU, in a thread of their own, and moved where they are used.
    """

    def __init__(
        self,
        start: int,
        task: Task,
        oracle: Oracle | None,
        config: TrainConfig,
        group: Group | None = None,
    ) -> None:
        # by the clock, a run has no last step
        last = None if config.seconds else config.steps
        self._steps: Iterable[int] = count(start) if last is None else range(start, last)
        self._task, self._oracle = task, oracle
        self._config, self._group = config, group
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Iterator[Batch]:
        return self._run()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, step: int) -> Future[Batch]:
        how = (self._task, self._oracle, self._config, self._group)
        return self._pool.submit(batch_at, step, *how)

    def _run(self) -> Iterator[Batch]:
        ahead: deque[Future[Batch]] = deque()
        for step in self._steps:
            ahead.append(self._submit(step))
            if len(ahead) > _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
