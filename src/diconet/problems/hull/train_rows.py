"""How the rows of the paper's table are trained (section 6.1, appendix B)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from diconet.core.coin import RandomSplit
from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.task import Task
from diconet.core.tree import Growth, Merge, fold, grow
from diconet.core.weights import fit
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig, check_least
from diconet.learn.estimators import per_item, policy_gradient, split_variance
from diconet.learn.loop import train
from diconet.nets.frame import Spread
from diconet.nets.pointer import PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.measure import accuracies
from diconet.problems.hull.task import HullTask
from diconet.problems.networks import find

PaperRow = Literal["baseline", "random", "diconet", "diconet_reg"]

WATCHED = (10, 25, 50, 100)
"""The sizes whose accuracy a run logs."""


@dataclass(frozen=True)
class PointerSettings:
    """The sizes of the networks, and how the steps of a run are shared out.

    All rows train alike, and on as many examples: `alone_steps` of the pointer network without any
    division, which the paper starts every row from; then the row's own steps; and `hard_steps` in
    which levels below the root count as made choices and rates fall to zero. `joint_lr` is the
    merge's learning rate after it was trained alone, relative to `merge_lr`: at the full rate it
    forgets what it has learned. `init` names a run or weights to take the pointer network from
    instead of training it first. `begin` is where targets start, see `PointerMerge`, and
    `split_gain` how large the weights of the split are drawn, see `SetSplit`.
    """

    width: int = 512
    split_width: int = 15
    split_layers: int = 5
    begin: Literal["first", "lowest"] = "first"
    split_gain: float | None = None
    halve_to: float = 12.5
    alone_steps: int = 10_000
    joint_lr: float = 1.0
    hard_steps: int = 5_000
    init: str | None = None

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "split_width", "split_layers", "alone_steps", "hard_steps")
        if not self.joint_lr > 0:
            raise ValueError(f"joint_lr must be above 0; got {self.joint_lr}.")


def build_row(row: PaperRow, settings: PointerSettings, seed: int) -> DiCoNet:
    """The network of a row, untrained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        frame = Spread(per_feature=True)
        merge = PointerMerge(2, settings.width, frame, begin=settings.begin)
        if row == "baseline":
            return DiCoNet(RandomSplit(), merge, depth=0)
        split: nn.Module = RandomSplit()
        if row != "random":
            sizes = settings.split_width, settings.split_layers
            split = SetSplit(2, *sizes, gain=settings.split_gain, per_feature=True)
    return DiCoNet(split, merge, Growth(halve_to=settings.halve_to))


def train_row(
    row: PaperRow,
    settings: PointerSettings,
    config: TrainConfig,
    run: Path,
    quiet: bool = False,
    device: str | torch.device | None = None,
) -> DiCoNet:
    """Trains a row: the pointer network alone, then with its split, at last on made choices."""
    if row != "diconet_reg":
        config = replace(config, regulariser=0.0)
    model = build_row(row, settings, config.seed)
    _put_merge(model, _pointer_alone(settings, config, run / "alone", quiet, device), settings)
    config = replace(config, merge_lr=settings.joint_lr * config.merge_lr)
    _train(model, config, run / "soft", quiet, device)
    rate = max(config.rate(config.steps), config.final_rate)
    last = replace(
        config,
        steps=settings.hard_steps,
        schedule="cosine",
        merge_lr=rate * config.merge_lr,
        split_lr=rate * config.split_lr,
        policy_from=0.0,
        seed=config.seed + 2,
    )
    return _train(_binarised(model), last, run, quiet, device)


def _pointer_alone(
    settings: PointerSettings,
    config: TrainConfig,
    run: Path,
    quiet: bool,
    device: str | torch.device | None,
) -> DiCoNet:
    """The pointer network that every row starts from: the given one, or one that is trained now."""
    if settings.init is not None:
        return find(settings.init, "init")
    alone = replace(
        config,
        steps=settings.alone_steps,
        regulariser=0.0,
        policy_from=1.0,
        seed=config.seed + 1,
    )
    return _train(build_row("baseline", settings, config.seed), alone, run, quiet, device)


def _put_merge(model: DiCoNet, start: DiCoNet, settings: PointerSettings) -> None:
    fit(
        cast(nn.Module, model.merge),
        {} if start.merge is None else start.merge.state_dict(),
        f"init must have a pointer merge of width {settings.width}; {settings.init} does not fit",
    )


def _binarised(model: DiCoNet) -> DiCoNet:
    """The same network, whose levels below the root count as made choices."""
    assert isinstance(model.merge, PointerMerge)
    how: dict[str, Any] = {**model.merge.config, "binarise": True}
    merge = PointerMerge(**how)
    merge.load_state_dict(model.merge.state_dict())
    return DiCoNet(model.split, merge, model.growth)


def _train(
    model: DiCoNet,
    config: TrainConfig,
    run: Path,
    quiet: bool,
    device: str | torch.device | None,
) -> DiCoNet:
    task = HullTask()
    watched = {size: task.sample(256, size, rng=phase_generator("watch", size)) for size in WATCHED}
    return train(
        model,
        task,
        config,
        oracle=task.oracle,
        loss=row_loss,
        run=run,
        evaluate=lambda network: accuracies(network, watched),
        device=device,
        quiet=quiet,
    )


def row_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """The loss of the paper: one tree per example teaches the merge, and all of them the split.

    So the other trees, which the score of each is compared with, need no way back. There is only
    one where nothing is cut or no split learns yet.
    """
    teaches = batch.share >= config.policy_from and any(True for _ in model.split.parameters())
    teaches = teaches and bool(model.growth.cuts(batch.sets.sizes).any())
    seeds = batch.seeds.reshape(-1, config.tree_samples).t()[: None if teaches else 1]
    trees = [grow(model.split, batch.sets, model.growth, some.contiguous()) for some in seeds]
    scores: list[Tensor] = []
    for tree in trees:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not scores):
            scores.append(fold(cast(Merge, model.merge), tree, batch.target).log_prob)
    score, loss = torch.stack(scores, 1).detach(), -scores[0].mean()
    if teaches:
        log_prob = torch.stack([per_item(tree) for tree in trees], 1).flatten()
        how = config.normalise_advantage
        policy = policy_gradient(log_prob, score.flatten(), len(trees), normalise=how)
        loss = loss + config.policy_weight * policy
    variance = torch.stack([split_variance(tree) for tree in trees]).mean()
    if config.regulariser:
        loss = loss - config.regulariser * variance
    log = {"loss": number(loss), "score": number(score.mean()), "variance": number(variance)}
    return loss, log
