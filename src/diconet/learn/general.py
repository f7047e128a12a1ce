"""The loss for user tasks: reward or likelihood, for any kind of answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from diconet.core.host import number
from diconet.core.model import DiCoNet, Outcome
from diconet.core.noise import phase_generator, seeds_from
from diconet.core.sets import SetBatch
from diconet.core.task import Oracle, Task
from diconet.core.tree import Growth, Merge, fold, grow
from diconet.core.weights import parameters_of
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.learn.estimators import advantage, branch_loss, normalised, split_variance

_GROWN = 0.4
"""The share of a run after which trees have their full depth."""

_MANY_EDGES = 8
"""The number of edges per item above which edges dominate the cost of a step."""

_SURPRISE, _SURPRISED = 0.1, 0.5
"""The initial bonus per nat of surprise, in spreads of the reward; the share of a run it lasts."""


def surprise_weight(share: float) -> float:
    """The bonus for an unlikely answer, relative to its reward, at a share of a run."""
    return _SURPRISE * max(0.0, 1 - share / _SURPRISED)


def is_general(model: DiCoNet) -> bool:
    """Whether the network comes from `network_for`, as its split says."""
    return bool(getattr(model.split, "general", False))


def usual_config(model: DiCoNet, task: Task) -> TrainConfig:
    """The default settings; fewer inputs per step if each has many edges or nested cuts."""
    if not is_general(model):
        return TrainConfig()
    size = (TrainConfig.min_size + TrainConfig.max_size) // 2
    look = task.sample(4, size, rng=phase_generator("look", 0))
    edges = 0 if look.relations is None else look.relations.num_edges
    crowded = max(1.0, edges / (_MANY_EDGES * max(look.num_items, 1)))
    crowded *= max(1, model.growth.depth or 1)
    return TrainConfig(batch_size=max(8, round(TrainConfig.batch_size / crowded)))


def own_oracle(model: DiCoNet, task: Any) -> Oracle | None:
    """The task's own oracle, if it has one and a merge can learn from it."""
    return getattr(task, "oracle", None) if parameters_of(model.merge) else None


def grown_so_far(growth: Growth, share: float) -> Growth:
    """The depth of trees at a share of a run: one cut at first, then one more at a time.

    A first cut that is good by itself is a start for the next ones; learning all cuts at once
    shares one reward among too many draws.
    """
    if growth.depth is None or growth.depth < 2:
        return growth
    depth = 1 + int(share / _GROWN * growth.depth)
    return replace(growth, depth=min(depth, growth.depth))


def trees_per_input(batch: Batch, config: TrainConfig) -> int:
    """The number of trees per input: with a target, two suffice to compare the split's draws."""
    return min(config.tree_samples, 2) if batch.target is not None else config.tree_samples


def drawn(model: DiCoNet, batch: Batch, config: TrainConfig) -> Outcome:
    """`tree_samples` trees per input, and the merge's answers."""
    samples = trees_per_input(batch, config)
    seeds = batch.seeds.reshape(len(batch.sets), -1)[:, :samples].flatten()
    growth = grown_so_far(model.growth, batch.share)
    tree = grow(model.split, batch.sets, growth, seeds, copies=samples)
    if model.merge is None:
        return Outcome(tree)
    target = None if batch.target is None else batch.target.repeat(samples)
    return Outcome(tree, fold(cast(Merge, model.merge), tree, target))


def general_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Likelihood of the target, if there is one, and the policy gradient of every draw.

    Without a target, the reward scores the draws of split and merge together. With one, the
    merge maximises its likelihood, which also scores the split's draws.

    Deep trees begin with one cut and grow during the run. If a task's reward is `additive`, the sum
    of what the leaves earn by themselves, cuts get credit node by node.
    """
    if getattr(task, "additive", False) and model.merge is None and (model.growth.depth or 0) > 1:
        return branch_loss(model, task, batch, config)
    outcome = drawn(model, batch, config)
    roots = outcome.tree.roots
    log_prob: Any = outcome.tree.log_prob
    if outcome.log_prob is not None:
        score = outcome.log_prob
        loss = -(score / roots.sizes.clamp(min=1)).mean()
    else:
        score = task.reward(roots, outcome.solution)
        loss = score.new_zeros(())
        draws = getattr(outcome.answer, "draw_log_prob", None)
        log_prob = log_prob if draws is None else log_prob + draws
    if log_prob.requires_grad and batch.share >= config.policy_from:
        samples, normalise = trees_per_input(batch, config), config.normalise_advantage
        gain = advantage(score.detach(), samples)
        gain = normalised(gain, score.detach()) if normalise else gain
        if outcome.log_prob is None:
            # Early on, unlikely answers get a small bonus: taking all items or none often beats
            # chance, and a network that is sure of it would never leave it.
            surprise = advantage(-log_prob.detach(), samples)
            gain = gain + surprise_weight(batch.share) * surprise
        per_item = gain * log_prob / roots.sizes.clamp(min=1)
        loss = loss - config.policy_weight * per_item.mean()
    if config.regulariser:
        loss = loss - config.regulariser * split_variance(outcome.tree)
    return loss, {"loss": number(loss), "score": number(score.mean())}


@torch.no_grad()
def best_of(
    model: DiCoNet, task: Task, sets: SetBatch, draws: int = 8, *, seed: int = 0
) -> Outcome:
    """The best of several answers drawn for each set, by the task's reward.

    Args:
        model: A trained network.
        task: The task it was trained for.
        sets: The inputs.
        draws: The number of answers drawn per set.
        seed: Determines the draws.
    """
    rng = phase_generator("best", seed)
    seeds = seeds_from(rng, len(sets) * draws).to(sets.sizes.device)
    copies = sets.repeat(draws)
    score = task.reward(copies, model(copies, seeds).solution).reshape(-1, draws)
    best = seeds.reshape(-1, draws).gather(1, score.argmax(1, keepdim=True)).squeeze(1)
    return cast(Outcome, model(sets, best))  # the same seeds draw the same answer
