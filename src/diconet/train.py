"""The training loop, for every task: likelihood and policy gradient, or reward alone (section 5).

Whatever is random in a step is a function of the seed and the step's number, so a run that is cut
off and resumed, or spread over processes, makes the very same updates.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from diconet.losses import clip, policy_gradient, split_variance
from diconet.model import DiCoNet
from diconet.noise import seeds_from, step_generator
from diconet.sets import SetBatch
from diconet.task import Oracle, Task
from diconet.weights import parameters_of, save

Optimiser = Literal["rmsprop", "adam", "adamax", "adamw"]
_OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
}


@dataclass(frozen=True)
class TrainConfig:
    """How a network is trained. The defaults are the paper's, as far as it gives them.

    A step is `batch_size` inputs of one size, drawn from `min_size` to `max_size`, with
    `tree_samples` random trees each. Rates fall as lr / k in epoch k of `epoch_steps` steps
    ("epoch"), along a cosine to zero ("cosine") or geometrically to `final_rate` of what they were
    ("geometric"), both after a warm-up. From `binarise_from` (a share of the run) on, levels below
    the root count as made choices in the likelihood. A reward is learned from by policy gradient,
    or by imitating the best of each input's trees ("imitate").
    """

    steps: int = 10_000
    batch_size: int = 128
    tree_samples: int = 4
    min_size: int = 6
    max_size: int = 50
    split_lr: float = 0.01
    merge_lr: float = 0.001
    split_optimiser: Optimiser = "rmsprop"
    merge_optimiser: Optimiser = "adam"
    estimator: Literal["policy_gradient", "imitate"] = "policy_gradient"
    schedule: Literal["epoch", "cosine", "geometric"] = "epoch"
    epoch_steps: int = 7_800
    warmup: int = 100
    final_rate: float = 1e-3
    split_clip: float = 40.0
    merge_clip: float = 2.0
    regulariser: float = 0.0
    binarise_from: float = 1.0
    seed: int = 0
    log_every: int = 50
    evaluate_every: int = 1_000
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "tree_samples", "min_size", "epoch_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.max_size < self.min_size:
            raise ValueError(
                f"max_size must be at least min_size, {self.min_size}; got {self.max_size}."
            )
        for name in ("split_lr", "merge_lr", "split_clip", "merge_clip", "final_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0; got {getattr(self, name)}.")

    def rate(self, step: int) -> float:
        """The factor on the learning rates at a step."""
        if self.schedule == "epoch":
            return 1 / (1 + step // self.epoch_steps)
        rising = min(1.0, (step + 1) / max(self.warmup, 1))
        if self.schedule == "geometric":
            return rising * self.final_rate ** (step / self.steps)
        return rising * 0.5 * (1 + math.cos(math.pi * step / self.steps))


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of one step: sets, what the oracle said of them, and the seeds of their trees."""

    sets: SetBatch
    target: Any | None
    seeds: Tensor


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
        part = sets.take(mine)
        sets = SetBatch.pack(part.items, part.sizes, part.context)
        seeds = seeds.reshape(config.batch_size, -1)[mine].flatten()
    return Batch(sets, None if oracle is None else oracle(sets), seeds)


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
    if tree.log_prob.requires_grad:
        per_item = tree.log_prob / sets.sizes.clamp(min=1)
        loss = loss + policy_gradient(per_item, score, samples)
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
    `loss` may take the place of `loss_of`. Ctrl-C finishes the step and keeps it; a kill loses
    at most `checkpoint_every` steps.
    """
    _keep_memory()
    rank, world = _processes()
    if config.batch_size % world:
        raise ValueError(
            f"batch_size must be a multiple of the {world} processes; got {config.batch_size}."
        )
    optimisers = _optimisers(model, config)
    folder = _RunFolder(Path(run), config) if run is not None else None
    start = folder.resume(model, optimisers) if folder else 0
    stop = _StopSignal()
    clock = time.monotonic()
    with _Batches(start, task, oracle, config, rank, world) as batches, _bar(quiet or rank) as bar:
        line = bar.add_task("train", total=config.steps, completed=start, note="")
        for step, batch in batches:
            _set_rates(model, optimisers, config, step)
            value, parts = loss(model, task, batch, config)
            for optimiser in optimisers.values():
                optimiser.zero_grad()
            value.backward()
            if world > 1:
                _average_gradients(model, world)
            parts |= _update(model, optimisers, config)
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


def _average_gradients(model: DiCoNet, world: int) -> None:
    """One all-reduce over all gradients; a parameter that a step did not use counts as zero."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
    )
    dist.all_reduce(flat)
    pieces = (flat / world).split([p.numel() for p in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.grad = piece.reshape(parameter.shape)


def _keep_memory() -> None:
    """Asks glibc to keep freed memory: handing large tensors back costs a fifth of every step."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def _processes() -> tuple[int, int]:
    """This process's number and how many there are; under torchrun they find each other here."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size()


class _Batches:
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


class _RunFolder:
    """What a run leaves on disk: its settings, a checkpoint, its metrics and its weights."""

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._config = asdict(config)
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        _write(path / "config.json", json.dumps(self._config, indent=2).encode())

    def resume(self, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]) -> int:
        """Puts the last checkpoint in place; the number of steps it had behind it."""
        if not self._checkpoint.exists():
            return 0
        kept = torch.load(self._checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        for name, optimiser in optimisers.items():
            optimiser.load_state_dict(kept["optimisers"][name])
        if self._metrics.exists():
            lines = self._metrics.read_text().splitlines()
            known = [line for line in lines if _step_of(line) <= kept["step"]]
            _write(self._metrics, "".join(f"{line}\n" for line in known).encode())
        return int(kept["step"])

    def log(self, record: dict[str, float]) -> None:
        with self._metrics.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def checkpoint(
        self, step: int, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]
    ) -> None:
        partial = self._checkpoint.with_suffix(".partial")
        state = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        torch.save({"step": step, "model": model.state_dict(), "optimisers": state}, partial)
        os.replace(partial, self._checkpoint)
        save(model, self.path / "weights.safetensors", steps=str(step))


def _step_of(line: str) -> float:
    """The step of a line of metrics; a line cut short by a kill counts as not there."""
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return float("inf")


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)


class _StopSignal:
    """Notes the first Ctrl-C, so that the step under way is finished and kept."""

    def __init__(self) -> None:
        self.asked = False
        try:
            self._before = signal.signal(signal.SIGINT, self._ask)
        except ValueError:  # not the main thread: there Ctrl-C does not arrive anyway
            self._before = None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._before or signal.default_int_handler)


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
