"""Training with several processes, on one machine or more, by averaging gradients.

Started by torchrun, every process works on its own part of a batch. Their gradients are averaged,
so together they make the same updates as one process would.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Int
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from diconet.core.host import numbers
from diconet.core.model import DiCoNet
from diconet.learn.config import TrainConfig


@dataclass(frozen=True)
class Group:
    """The processes of a run: this one's rank, and how many there are."""

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and shows progress."""
        return self.rank == 0

    def check(self, config: TrainConfig) -> None:
        """Checks that all processes get equally many inputs and make equally many steps."""
        if config.batch_size % self.world:
            raise ValueError(
                f"batch_size must be a multiple of the {self.world} processes; got"
                f" {config.batch_size}."
            )
        if self.world > 1 and config.seconds is not None:
            raise ValueError(
                f"seconds must not be set with several processes, whose clocks differ; got"
                f" {config.seconds}."
            )

    def part_of(self, num: int) -> Int[Tensor, "share"]:
        """The rows of a batch of `num` that belong to this process."""
        share = num // self.world
        return torch.arange(self.rank * share, (self.rank + 1) * share, device="cpu")

    def average_gradients(self, model: DiCoNet, stop: bool) -> bool:
        """One all-reduce over all gradients; parameters that a process did not use count as zero.

        Parameters that none used get no gradient, as with one process, since an optimiser would
        still move them with a zero. Returns whether any process was asked to stop, so that all stop
        together.
        """
        if self.world == 1:
            return stop
        parameters = [p for p in model.parameters() if p.requires_grad]
        used = [p.grad is not None for p in parameters]
        flat = torch.cat(
            [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
            + [parameters[0].new_tensor([*used, stop])]
        )
        dist.all_reduce(flat)
        *pieces, flags = flat.split([*(p.numel() for p in parameters), len(used) + 1])
        *anywhere, stopped = numbers(flags > 0)
        for parameter, piece, is_used in zip(parameters, pieces, anywhere, strict=True):
            mean = (piece / self.world).reshape(parameter.shape)
            parameter.grad = mean if is_used else None
        return bool(stopped)

    def begin_as_first(
        self, model: DiCoNet, optimisers: Mapping[str, torch.optim.Optimizer], start: int
    ) -> int:
        """Copies the weights, optimisers and step of the first process to all others.

        So only the first needs the run folder, and nobody has to seed the weights.
        """
        if self.world == 1:
            return start
        states = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        shared: list[Any] = [start, model.state_dict(), states]
        dist.broadcast_object_list(shared, src=0)
        start, weights, states = shared
        model.load_state_dict(weights)
        for name, optimiser in optimisers.items():
            optimiser.load_state_dict(states[name])
        return int(start)


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of a number over all processes."""
    if not dist.is_initialized():
        return value
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def join_group(device: torch.device) -> Group:
    """Joins the processes that torchrun started; returns this one's group."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return Group()
    if not dist.is_initialized():
        store, rank, world = next(rendezvous("env://"))
        # Processes that torchrun starts again share the store, with addresses of those that died.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=dist.PrefixStore(f"attempt {attempt}", store),  # type: ignore[attr-defined]
            rank=rank,
            world_size=world,
        )
        atexit.register(dist.destroy_process_group)
    return Group(dist.get_rank(), dist.get_world_size())


def own_device(device: torch.device) -> torch.device:
    """The device of this process: under torchrun, "cuda" means its own GPU."""
    if device.type != "cuda" or device.index is not None:
        return device
    own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(own)  # object collectives use the current device
    return own
