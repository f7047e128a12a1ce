"""The training loop, for every task and every loss.

Everything random in a step is a function of the seed and the step number, so a run that is
interrupted and resumed, or spread over processes, makes exactly the same updates.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from diconet.core.host import as_device, keep_freed_memory
from diconet.core.model import DiCoNet
from diconet.core.task import Oracle, Task
from diconet.core.weights import parameters_of
from diconet.learn.batches import Batch, batch_at, batches
from diconet.learn.config import Budget, TrainConfig
from diconet.learn.estimators import Loss, paper_loss
from diconet.learn.general import general_loss, is_general, own_oracle, usual_config
from diconet.learn.optimisers import Optimisers, make_optimisers, set_rates, update
from diconet.learn.processes import Group, join_group, own_device
from diconet.learn.progress import ProgressBar, StopSignal, warn
from diconet.learn.run_folder import RunFolder
from diconet.learn.signs import Watch

__all__ = ["Batch", "Loss", "TrainConfig", "batch_at", "train"]

Evaluate = Callable[[DiCoNet], dict[str, float]]
"""Numbers about a network for the log, such as its quality on fixed test sets."""

_MISSES = 20
"""Steps in a row without a finite gradient after which training stops with an error."""


def train(
    model: DiCoNet,
    task: Task,
    config: TrainConfig | None = None,
    *,
    oracle: Oracle | None = None,
    loss: Loss | None = None,
    run: str | Path | None = None,
    evaluate: Evaluate | None = None,
    device: str | torch.device | None = None,
    stage: str = "train",
    quiet: bool = False,
) -> DiCoNet:
    """Trains a network in place and returns it; with a `run` folder, resumes the run in it.

    Args:
        model: The network; parameters that require no gradient stay fixed.
        task: Draws the inputs and, unless there is an oracle, gives the reward.
        config: How long, how fast, on what sizes. By default, `TrainConfig()`, with fewer inputs
            per step if each has very many edges or nested cuts.
        oracle: Gives targets. With it, the merge maximises their likelihood, and the split does so
            by policy gradient; without it, the split learns from the task's reward alone.
        loss: What to minimise; see `diconet.learn.estimators`. By default, `general_loss` for
            networks of `network_for`, with the task's own oracle, and `paper_loss` for all others.
        run: A folder for settings, metrics, checkpoints and weights. A kill loses at most
            `checkpoint_every` steps; Ctrl-C finishes and saves the current step. The same call
            resumes from there, and may raise `steps`.
        evaluate: Returns numbers to log in the folder every `evaluate_every` steps.
        device: Where to train, such as "cuda"; by default, where the network is.
        stage: The label of the progress bar, such as "stage 1 of 2".
        quiet: Shows no progress bar and no final warnings.
    """
    keep_freed_memory()
    config = config or usual_config(model, task)
    if loss is None and is_general(model):
        loss, oracle = general_loss, oracle or own_oracle(model, task)
    loss = loss or paper_loss
    if loss is paper_loss and oracle is None and parameters_of(model.merge):
        raise ValueError("a trainable merge needs an oracle, or its own loss; got neither.")
    if evaluate is not None and run is None:
        raise ValueError("evaluate needs a run folder to log to; got none.")
    place = own_device(as_device(device) if device is not None else model.device)
    group = join_group(place)
    group.check(config)
    optimisers = make_optimisers(model.to(place), config)
    folder = RunFolder(Path(run), config, model, task, loss) if run and group.is_first else None
    with folder or contextlib.nullcontext():
        start, spent = folder.start(model, optimisers) if folder else (0, 0.0)
        start = group.begin_as_first(model, optimisers, start)
        what = (model, task, config, loss, optimisers, group)
        loop = _Loop(*what, Budget(config, spent), folder, evaluate)
        made = batches(start, task, oracle, config, group)
        loop.run(made, start, stage, quiet or not group.is_first)
    return model.eval()


@dataclass
class _Loop:
    """The steps of a run, its length, its files and its warnings."""

    model: DiCoNet
    task: Task
    config: TrainConfig
    loss: Loss
    optimisers: Optimisers
    group: Group
    budget: Budget
    folder: RunFolder | None
    evaluate: Evaluate | None
    misses: int = field(default=0, init=False)

    def run(self, made: Generator[Batch, None, None], start: int, stage: str, hidden: bool) -> None:
        """All steps from `start` on."""
        budget, device = self.budget, self.model.device
        watch = Watch(self.model, self.task) if self.group.is_first else None
        if budget.is_spent(start):
            return
        with (
            StopSignal() as stop,
            contextlib.closing(made),
            ProgressBar(stage, budget.total, budget.used(start), hidden) as bar,
        ):
            for one in made:
                batch = replace(one.to(device), share=budget.share(one.step))
                if watch:
                    watch.before(batch)
                parts, stops = self._step(batch, stop)
                done = batch.step + 1
                is_last = budget.is_spent(done)
                if watch:
                    watch.after(batch, is_last)
                    parts |= watch.numbers
                bar.show(budget.used(done), parts["score"], watch.complaints if watch else ())
                if self._keep(done, parts, is_last, stops, stop):
                    raise KeyboardInterrupt(self._stopped(done))
                if is_last:
                    break
        if watch:
            warn(watch.complaints, hidden)
            if self.folder is not None:
                for line in watch.complaints:
                    self.folder.log({"step": done, "warning": line})

    def _step(self, batch: Batch, stop: StopSignal) -> tuple[dict[str, float], bool]:
        """Makes one update; returns numbers for the log, and whether any process should stop."""
        model = self.model.train()
        set_rates(self.optimisers, self.config, self.config.rate(batch.step, batch.share))
        value, parts = self.loss(model, self.task, batch, self.config)
        for optimiser in self.optimisers.values():
            optimiser.zero_grad()
        if value.requires_grad:  # false if nothing was cut and nothing merges
            value.backward()
        stops = self.group.average_gradients(model, stop.asked)
        norms = update(model, self.optimisers, self.config)
        self.misses = 0 if all(map(math.isfinite, norms.values())) else self.misses + 1
        if self.misses == _MISSES:
            raise ValueError(
                f"the loss must be finite; no step from {batch.step - _MISSES + 2} to"
                f" {batch.step + 1} had a finite gradient, and the last score was {parts['score']}."
            )
        return parts | norms, stops

    def _keep(
        self, done: int, parts: dict[str, float], is_last: bool, stops: bool, stop: StopSignal
    ) -> bool:
        """Logs and saves what is due after a step; returns whether to stop here on request."""
        config, model, folder = self.config, self.model, self.folder
        if folder is not None:
            if done % config.log_every == 0 or is_last or "likeliest" in parts:
                folder.log({"step": done, "seconds": self.budget.seconds, **parts})
            if self.evaluate and done % config.evaluate_every == 0:
                folder.log({"step": done, **self.evaluate(model)})
        # Several processes stop when all of them know of the request, after the next step.
        stops = stops or (self.group.world == 1 and stop.asked)
        if folder is not None and (done % config.checkpoint_every == 0 or is_last or stops):
            folder.checkpoint(done, self.budget.seconds, model, self.optimisers)
        return stops

    def _stopped(self, done: int) -> str:
        if self.folder is None:
            return f"stopped after step {done}, of {self.budget}; nothing is saved without a run."
        return (
            f"stopped after step {done}, of {self.budget}; the run is in {self.folder.path}, and"
            " the same command resumes it."
        )
