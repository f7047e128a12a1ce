"""The loss for anyone's task: reward or likelihood, whatever kind of answer the network gives."""

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
"""Trees are as deep as they will get from this share of a run on, at the latest."""

_MANY_EDGES = 8
"""From this many edges per item on, edges are what a step costs."""

_SURPRISE, _SURPRISED = 0.1, 0.5
"""The worth of a nat of surprise at first, in spreads of the reward; until which share of a run."""


def surprise_weight(share: float) -> float:
    """How much an unlikely answer is worth at a share of a run, beside its reward."""
    return _SURPRISE * max(0.0, 1 - share / _SURPRISED)


def is_general(model: DiCoNet) -> bool:
    """Whether the network is one of `network_for`, whose split says so."""
    return bool(getattr(model.split, "general", False))


def usual_config(model: DiCoNet, task: Task) -> TrainConfig:
    """The default settings; fewer inputs per step where each has many edges or cuts below cuts."""
    if not is_general(model):
        return TrainConfig()
    size = (TrainConfig.min_size + TrainConfig.max_size) // 2
    look = task.sample(4, size, rng=phase_generator("look", 0))
    edges = 0 if look.relations is None else look.relations.num_edges
    crowded = max(1.0, edges / (_MANY_EDGES * max(look.num_items, 1)))
    crowded *= max(1, model.growth.depth or 1)
    return TrainConfig(batch_size=max(8, round(TrainConfig.batch_size / crowded)))


def own_oracle(model: DiCoNet, task: Any) -> Oracle | None:
    """The task's own oracle, where it has one and a merge can learn from it."""
    return getattr(task, "oracle", None) if parameters_of(model.merge) else None


def grown_so_far(growth: Growth, share: float) -> Growth:
    """How deep trees are at a share of a run: one cut at first, then one more at a time.

    A first cut that is good by itself is a start for the next ones; all cuts at once share one
    reward among too many draws.
    """
    if growth.depth is None or growth.depth < 2:
        return growth
    depth = 1 + int(share / _GROWN * growth.depth)
    return replace(growth, depth=min(depth, growth.depth))


def trees_per_input(batch: Batch, config: TrainConfig) -> int:
    """With a target, two trees tell what a cut is worth: only the split's draws are compared."""
    return min(config.tree_samples, 2) if batch.target is not None else config.tree_samples


def drawn(model: DiCoNet, batch: Batch, config: TrainConfig) -> Outcome:
    """`tree_samples` trees per input, and what the merge makes of them."""
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
    """Likelihood of the target where there is one, and the policy gradient of every draw made.

    Without a target, the draws of split and merge together earn the task's reward. With one, the
    merge learns from the likelihood, and the split's draws earn it.

    Deep trees begin with one cut and grow as the run goes on. Where a task says that its reward is
    `additive`, the sum of what the leaves earn by themselves, cuts get their credit node by node.
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
            # at first, an answer is worth a little more the less likely it was: to take all or
            # nothing is often better than chance, and a network that is sure of it stays there
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
    """Of several answers drawn for each set, the one that the task rewards most.

    Args:
        model: A trained network.
        task: What it was trained for.
        sets: The inputs.
        draws: How many answers to draw for each.
        seed: Another one draws other answers.
    """
    rng = phase_generator("best", seed)
    seeds = seeds_from(rng, len(sets) * draws).to(sets.sizes.device)
    copies = sets.repeat(draws)
    score = task.reward(copies, model(copies, seeds).solution).reshape(-1, draws)
    best = seeds.reshape(-1, draws).gather(1, score.argmax(1, keepdim=True)).squeeze(1)
    return cast(Outcome, model(sets, best))  # the same seeds draw the same answer
