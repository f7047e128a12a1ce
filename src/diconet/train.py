"""The training loop, for every task: likelihood and policy gradient, or reward alone (section 5).

Whatever is random in a step is a function of the seed and the step's number, so a run that is cut
off and resumed, or spread over processes, makes the very same updates.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from diconet.batches import Batch, Batches, batch_at
from diconet.losses import clip, policy_gradient, split_variance
from diconet.memory import keep_freed_memory
from diconet.model import DiCoNet
from diconet.muon import Muon
from diconet.run_folder import RunFolder
from diconet.task import Oracle, Task
from diconet.train_config import TrainConfig
from diconet.weights import parameters_of

__all__ = ["Batch", "Estimator", "TrainConfig", "batch_at", "loss_of", "train"]

_OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "muon": Muon,
}

_MISSES = 20
"""So many steps in a row without a finite gradient are no accident."""

Estimator = Callable[[DiCoNet, Task, Batch, TrainConfig], tuple[Tensor, dict[str, float]]]
"""A loss whose gradient estimates that of minus the expected score, and numbers for the log."""


def loss_of(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """The loss of a step, and its parts for the log."""
    if config.estimator == "imitate":
        return _imitation(model, task, batch, config)
    samples = config.tree_samples
    sets = batch.sets.repeat(samples)
    target = None if batch.target is None else batch.target.repeat(samples)
    outcome = model(sets, batch.seeds, target)
    tree = outcome.tree
    if outcome.log_prob is not None:
        score = outcome.log_prob
        loss = -score.mean()
    else:
        score = task.reward(sets, outcome.solution)
        loss = score.new_zeros(())
    if tree.log_prob.requires_grad and batch.step >= config.policy_from * config.steps:
        per_item = tree.log_prob / sets.sizes.clamp(min=1)
        loss = loss + config.policy_weight * policy_gradient(per_item, score, samples)
    variance = split_variance(tree)
    if config.regulariser:
        loss = loss - config.regulariser * variance
    parts = {"loss": loss.item(), "score": score.mean().item(), "variance": variance.item()}
    return loss, parts


def _imitation(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Minus the log-probability of each input's most rewarding tree among those drawn."""
    samples = config.tree_samples
    sets = batch.sets.repeat(samples)
    with torch.no_grad():
        score = task.reward(sets, model(sets, batch.seeds).solution).reshape(-1, samples)
    best, which = score.max(1)
    seeds = batch.seeds.reshape(-1, samples).gather(1, which[:, None]).squeeze(1)
    tree = model(batch.sets, seeds).tree  # the same seeds draw the same tree
    loss = -(tree.log_prob / batch.sets.sizes.clamp(min=1)).mean()
    return loss, {"loss": loss.item(), "score": score.mean().item(), "best": best.mean().item()}


def train(
    model: DiCoNet,
    task: Task,
    config: TrainConfig,
    *,
    oracle: Oracle | None = None,
    run: str | Path | None = None,
    evaluate: Callable[[DiCoNet], dict[str, float]] | None = None,
    loss: Estimator = loss_of,
    quiet: bool = False,
) -> DiCoNet:
    """Trains a network in place; with a `run` folder, goes on from where that run left off.

    With an oracle, the merge learns from the likelihood of its answers and the split from the same
    by policy gradient; without one, the split learns from the task's reward alone. Another
    `loss` may take the place of `loss_of`. What `evaluate` gives is logged in the folder. Ctrl-C
    finishes the step and keeps it; a kill loses at most `checkpoint_every` steps.
    """
    keep_freed_memory()
    for parameter in model.parameters():
        if parameter.device.type != "cpu":
            raise ValueError(f"the network must be on the CPU to train; got {parameter.device}.")
    rank, world = _processes()
    if config.batch_size % world:
        raise ValueError(
            f"batch_size must be a multiple of the {world} processes; got {config.batch_size}."
        )
    if loss is loss_of and oracle is None and parameters_of(model.merge):
        raise ValueError("a merge that learns needs an oracle, or a loss of its own; got neither.")
    if evaluate is not None and run is None:
        raise ValueError("evaluate needs a run folder for its numbers; got none.")
    optimisers = _optimisers(model, config)
    folder = RunFolder(Path(run), config, model, task, loss) if run is not None else None
    start = folder.start(model, optimisers) if folder and rank == 0 else 0
    if world > 1:
        start = _begin_as_first(model, optimisers, start)
    if folder and rank == 0:
        folder.open(start)
    clock, misses = time.monotonic(), 0
    with (
        _StopSignal() as stop,
        Batches(start, task, oracle, config, rank, world) as batches,
        _bar(quiet or rank) as bar,
    ):
        line = bar.add_task("train", total=config.steps, completed=start, note="")
        for step, batch in batches:
            _set_rates(model, optimisers, config, step)
            value, parts = loss(model, task, batch, config)
            for optimiser in optimisers.values():
                optimiser.zero_grad()
            if value.requires_grad:  # not where nothing was cut and nothing merges
                value.backward()
            if world > 1:
                stop.asked = _average_gradients(model, world, stop.asked)
            norms = _update(model, optimisers, config)
            misses = 0 if all(map(math.isfinite, norms.values())) else misses + 1
            if misses == _MISSES:
                raise ValueError(
                    f"the loss must be finite; no step from {step - _MISSES + 2} to {step + 1} had"
                    f" a finite gradient, and the last score was {parts['score']}."
                )
            parts |= norms
            done = step + 1
            bar.update(line, completed=done, note=f"{parts['score']:.3f}")
            if folder and rank == 0:
                if done % config.log_every == 0:
                    folder.log({"step": done, "seconds": time.monotonic() - clock, **parts})
                if evaluate and done % config.evaluate_every == 0:
                    folder.log({"step": done, **evaluate(model)})
                if done % config.checkpoint_every == 0 or stop.asked or done == config.steps:
                    folder.checkpoint(done, model, optimisers)
            if stop.asked:
                raise KeyboardInterrupt(f"stopped after step {done}.")
    return model.eval()


def _optimisers(model: DiCoNet, config: TrainConfig) -> dict[str, torch.optim.Optimizer]:
    """One for the split, one for the merge (appendix B); none where nothing is to learn."""
    split, merge = parameters_of(model.split), parameters_of(model.merge)
    made: dict[str, torch.optim.Optimizer] = {}
    if split:
        made["split"] = _OPTIMISERS[config.split_optimiser](split, lr=config.split_lr)  # type: ignore[call-arg]
    if merge:
        made["merge"] = _OPTIMISERS[config.merge_optimiser](merge, lr=config.merge_lr)  # type: ignore[call-arg]
    if not made:
        raise ValueError("the network has no parameters to train.")
    return made


def _set_rates(
    model: DiCoNet,
    optimisers: dict[str, torch.optim.Optimizer],
    config: TrainConfig,
    step: int,
) -> None:
    rates = {"split": config.split_lr, "merge": config.merge_lr}
    for name, optimiser in optimisers.items():
        for group in optimiser.param_groups:
            group["lr"] = rates[name] * config.rate(step)
    if hasattr(model.merge, "binarise"):
        model.merge.binarise = step >= config.binarise_from * config.steps  # type: ignore[union-attr]
    model.train()


def _update(
    model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer], config: TrainConfig
) -> dict[str, float]:
    norms: dict[str, float] = {}
    limits = {"split": config.split_clip, "merge": config.merge_clip}
    for name, optimiser in optimisers.items():
        norm = clip(parameters_of(getattr(model, name)), limits[name])
        norms[f"{name}_grad"] = norm.item()
        if torch.isfinite(norm):
            optimiser.step()
    return norms


def _average_gradients(model: DiCoNet, world: int, stop: bool) -> bool:
    """One all-reduce over all gradients; what a process did not use counts as zero there.

    What none of them used has no gradient, as with one process: an optimiser moves on with a zero.
    It also tells every process whether one was asked to stop, so that all stop at the same step.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    used = [p.grad is not None for p in parameters]
    flat = torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
        + [parameters[0].new_tensor([*used, stop])]
    )
    dist.all_reduce(flat)
    *pieces, told = flat.split([*(p.numel() for p in parameters), len(used) + 1])
    *anywhere, stopped = (told > 0).tolist()
    for parameter, piece, is_used in zip(parameters, pieces, anywhere, strict=True):
        parameter.grad = (piece / world).reshape(parameter.shape) if is_used else None
    return bool(stopped)


def _begin_as_first(
    model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer], start: int
) -> int:
    """Every process begins with the weights, the optimisers and the step of the first one.

    So only that one needs the run folder, and nobody has to seed the weights.
    """
    states = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
    told: list[Any] = [start, model.state_dict(), states]
    dist.broadcast_object_list(told, src=0)
    start, weights, states = told
    model.load_state_dict(weights)
    for name, optimiser in optimisers.items():
        optimiser.load_state_dict(states[name])
    return int(start)


def _processes() -> tuple[int, int]:
    """This process's number and how many there are; under torchrun they find each other here."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("gloo")
        atexit.register(dist.destroy_process_group)
    return dist.get_rank(), dist.get_world_size()


class _StopSignal:
    """Notes the first Ctrl-C, so that the step under way is finished and kept."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> _StopSignal:
        # Elsewhere than in the main thread, Ctrl-C does not arrive anyway.
        with contextlib.suppress(ValueError):
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()  # a second Ctrl-C stops at once

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def _bar(hidden: bool | int) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("score {task.fields[note]}"),
        TimeRemainingColumn(),
        disable=bool(hidden),
        transient=True,
    )
