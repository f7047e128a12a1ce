"""The losses that training can minimise: `train(model, task, config, loss=...)`.

| loss | learns from | by |
|---|---|---|
| `paper_loss` | an oracle's targets | their likelihood (eq. 12), REINFORCE for the split (eq. 13) |
| `paper_loss` | any reward | REINFORCE over the trees of each input (eq. 14) |
| `tree_loss` | a reward of leaves | REINFORCE; rewards relative to their mean |
| `branch_loss` | a sum over leaves | the same over trees that share their upper cuts |
| `node_loss` | a sum over leaves | REINFORCE at single nodes, each as a separate root |
| `label_loss` | `label_reward` | REINFORCE for a network that labels all items at once |

You can pass any function of this form: it takes the network, the task, a batch and the settings,
and returns the value to minimise and numbers for the log, including `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.noise import mix
from diconet.core.segments import (
    index_of,
    place_within,
    segment_argmax,
    segment_logsumexp,
    segment_sum,
)
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.core.tree import Cut, Growth, PartitionTree, children, grow
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.learn.processes import mean_over_processes

_ROUNDING = 1e-5
"""Relative differences of scores up to which they may be rounding errors."""


def group_mean(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """For each sample, the mean score of all samples of the same input."""
    return score.reshape(-1, group).mean(1).repeat_interleave(group)


def advantage(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """Score minus the mean score of the *other* samples of the same input (leave one out).

    The `group` samples of an input are adjacent. With a single sample there is no baseline. With
    the mean over all samples, as in the paper, it would be smaller by the factor 1 - 1/group.
    """
    if group == 1:
        return score
    return (score - group_mean(score, group)) * (group / (group - 1))


def relative(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """Scores divided by their mean over an input's samples, so that scale does not matter."""
    return score / group_mean(score, group).abs().clamp(min=1e-30)


def normalised(
    gain: Float[Tensor, "samples"], score: Float[Tensor, "samples"]
) -> Float[Tensor, "samples"]:
    """Advantages divided by their standard deviation over the batch, across all processes.

    Differences that are tiny relative to the scores are rounding errors, and stay small.
    """
    square, size = mean_over_processes(torch.stack([gain.square().mean(), score.abs().mean()]))
    return gain / torch.maximum(square.sqrt(), _ROUNDING * size).clamp(min=1e-30)


def policy_gradient(
    log_prob: Float[Tensor, "samples"],
    score: Float[Tensor, "samples"],
    group: int,
    *,
    normalise: bool = False,
) -> Float[Tensor, ""]:
    """A loss whose gradient is that of minus the expected score (REINFORCE, eq. 13).

    With `normalise`, it is divided by the spread of the score, so that its scale does not matter.
    """
    gain = advantage(score.detach(), group)
    return -((normalised(gain, score.detach()) if normalise else gain) * log_prob).mean()


def split_variance(tree: PartitionTree) -> Float[Tensor, ""]:
    """Variance of an item's split probability within its node (eq. split_reg), mean over nodes.

    It is largest if half of a node's items are sure of each side, so maximising it balances the
    tree. Trees have equal weight, whatever their number of nodes, so that parts of a batch add up.
    """
    total = tree.roots.items.new_zeros(len(tree.roots))
    nodes = torch.zeros_like(total)
    for level in tree.levels:
        if level.cut is None or level.cut.prob is None:
            continue
        sets = level.sets.take(level.inner)
        mean = sets.mean(level.cut.prob)
        variance = sets.mean(level.cut.prob.square()) - mean.square()
        example = level.example[level.inner]
        total = total.index_add(0, example, variance.to(total.dtype))
        nodes = nodes.index_add(0, example, torch.ones_like(variance, dtype=total.dtype))
    return (total / nodes.clamp(min=1)).mean()


Loss = Callable[[DiCoNet, Task, Batch, TrainConfig], tuple[Tensor, dict[str, float]]]
"""Returns the value that a step minimises, and numbers for the log."""


def paper_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """The paper's loss (section 5), the default.

    With targets, the merge maximises their likelihood over random trees (eq. 12), and so does the
    split, by policy gradient (eq. 13). Without, the split maximises the task's reward (eq. 14).
    """
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
    if tree.log_prob.requires_grad and batch.share >= config.policy_from:
        normalise = config.normalise_advantage
        policy = policy_gradient(per_item(tree), score, samples, normalise=normalise)
        loss = loss + config.policy_weight * policy
    variance = split_variance(tree)
    if config.regulariser:
        loss = loss - config.regulariser * variance
    return loss, {**_parts(loss, score), "variance": number(variance)}


def per_item(tree: PartitionTree) -> Float[Tensor, "sets"]:
    """The log-probability of each tree per item, so that inputs of all sizes count alike."""
    return tree.log_prob / tree.roots.sizes.clamp(min=1)


def _parts(loss: Tensor, score: Tensor) -> dict[str, float]:
    """The numbers that every loss logs."""
    return {"loss": number(loss), "score": number(score.mean())}


def tree_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE over whole trees, as in the paper: one reward for all coin flips of a tree.

    It differs from `paper_loss` without targets in two ways: rewards are relative to their mean
    over an input's trees, so that inputs of any scale count alike, and one forward pass per input
    gives the first cut of all its trees.
    """
    tree = grow(model.split, batch.sets, model.growth, batch.seeds, copies=config.tree_samples)
    return _by_reward(per_item(tree), task.reward(tree.roots, tree), config)


def _by_reward(
    log_prob: Float[Tensor, "samples"], score: Float[Tensor, "samples"], config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """The policy gradient of rewards relative to their mean over an input's samples."""
    samples, normalise = config.tree_samples, config.normalise_advantage
    loss = policy_gradient(log_prob, relative(score, samples), samples, normalise=normalise)
    return loss, _parts(loss, score)


def branch_loss(
    model: DiCoNet,
    task: Task,
    batch: Batch,
    config: TrainConfig,
    *,
    between: int = 2,
    last: int = 16,
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE over whole trees of a fixed depth that share their upper cuts.

    Drawing a cut is cheap compared with the forward pass that gives its probabilities, so each
    forward pass yields several cuts: `tree_samples` of the root, `last` of each node above the
    leaves, `between` of the nodes in between; every combination of them is a tree. A cut is
    compared with the others of its node, by the mean reward of the trees that contain it. The
    reward of other nodes is the same for all of these and cancels, so for a reward that adds up
    over leaves only those below the node are summed. Rewards are relative to their mean, as in
    `tree_loss`.
    """
    depth = model.growth.depth
    if not depth:
        raise ValueError(f"branch_loss needs trees of a fixed depth of at least 1; got {depth}.")
    times = [config.tree_samples, *[between] * (depth - 2), last][:depth]
    leaves, log_probs = _branches(model.split, batch, times)
    earned = task.reward(leaves, grow(model.split, leaves, Growth(depth=0)))
    terms = []
    for draws, log_prob in zip(reversed(times), reversed(log_probs), strict=True):
        earned = earned.reshape(-1, 2).sum(1)
        terms.append((advantage(earned, draws) * log_prob).reshape(len(batch.sets), -1).sum(1))
        earned = earned.reshape(-1, draws).mean(1)
    trees = list(accumulate(times, mul))[::-1]
    total = torch.stack([term / many for term, many in zip(terms, trees, strict=True)]).sum(0)
    scale = earned.abs().clamp(min=1e-30) * batch.sets.sizes.clamp(min=1)
    loss = -(total / scale).mean()
    return loss, _parts(loss, earned)


def _branches(
    split: nn.Module, batch: Batch, times: Sequence[int]
) -> tuple[SetBatch, list[Float[Tensor, "_"]]]:
    """The leaves of all trees, and the log-probabilities of the cuts at every level."""
    nodes, seeds, log_probs = batch.sets, batch.seeds, []
    for level, draws in enumerate(times):
        if level > 0:
            nodes = nodes.as_roots()
            seeds = mix(seeds.repeat_interleave(draws), _counted(draws, seeds))
        cut = _many_cuts(split, nodes, seeds)
        log_probs.append(cut.log_prob)
        nodes = children(nodes.repeat(draws), cut)
        seeds = mix(seeds.repeat_interleave(2), _counted(2, seeds))
    return nodes.as_roots(), log_probs


def _counted(times: int, seeds: Int[Tensor, "nodes"]) -> Int[Tensor, "draws"]:
    """0 to times - 1, repeated for each node."""
    return torch.arange(times, device=seeds.device).repeat(len(seeds))


def _many_cuts(split: nn.Module, nodes: SetBatch, seeds: Int[Tensor, "draws"]) -> Cut:
    """Several cuts of every node, from one forward pass if the split supports it."""
    shared = getattr(split, "many", False)
    return cast(Cut, split(nodes if shared else nodes.repeat(len(seeds) // len(nodes)), seeds))


def label_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE for a network that labels all items at once."""
    labels, log_prob = model.split(batch.sets, batch.seeds)
    copies = batch.sets.repeat(config.tree_samples)
    score = cast(Any, task).label_reward(copies, labels)
    return _by_reward(log_prob / copies.sizes.clamp(min=1), score, config)


def node_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Policy gradient at one node of every input.

    Each input contributes one node at a random level of its likeliest tree. The return is relative
    to the mean over the node's samples, so small nodes count as much as large ones. A node that
    ends in two leaves is not sampled if the task gives the reward of every cut (`cut_reward`): then
    the expectation is exact.
    """
    with torch.no_grad():
        tree = model(batch.sets).tree
        score = task.reward(batch.sets, tree)
    if len(tree.levels) == 1:  # nothing was cut
        return score.new_zeros(()), _parts(score.new_zeros(()), score)
    nodes, last = _one_node_each(tree, batch.seeds[:: config.tree_samples])
    exact = last if hasattr(task, "cut_reward") else torch.zeros_like(last)
    losses = []
    if bool(exact.any()):
        losses.append(_exact(model, task, nodes.take(index_of(exact)).as_roots()))
    if not bool(exact.all()):
        which = index_of(~exact)
        seeds = batch.seeds.reshape(-1, config.tree_samples)[which].flatten()
        losses.append(_sampled(model, task, nodes.take(which).as_roots(), seeds))
    loss = torch.cat(losses).sum() / len(batch.sets)
    return loss, _parts(loss, score)


def _one_node_each(tree: PartitionTree, seeds: Tensor) -> tuple[SetBatch, Tensor]:
    """A random inner node of every example, and whether all its children are leaves."""
    parts, example, last = [], [], []
    for level, below in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        parts.append(level.sets.take(level.inner))
        example.append(level.example[level.inner])
        last.append(below.is_leaf.reshape(-1, 2).all(1))
    everything = SetBatch.cat(parts)
    owner = torch.cat(example)
    key = mix(seeds[owner], place_within(owner, len(tree.roots)))
    chosen = segment_argmax(-key.double(), owner, len(tree.roots))
    chosen = chosen[chosen < len(owner)]  # an example that was not cut has none
    return everything.take(chosen), torch.cat(last)[chosen]


def _sampled(model: DiCoNet, task: Task, nodes: SetBatch, seeds: Tensor) -> Float[Tensor, "nodes"]:
    """The policy-gradient loss of every node, over its samples."""
    samples = len(seeds) // len(nodes)
    cut = _many_cuts(model.split, nodes, seeds)
    copies = nodes.repeat(samples)
    with torch.no_grad():
        sides = children(copies, cut).as_roots()
        closed = None if cut.closed is None else cut.closed.flatten()
        below = grow(model.split, sides, model.growth, closed=closed)  # a closed side is not cut
        cost = -task.reward(sides, below).reshape(-1, 2).sum(1)
        gain = advantage(relative(-cost, samples), samples)
    return (-gain * cut.log_prob).reshape(-1, samples).mean(1)


def _exact(model: DiCoNet, task: Any, nodes: SetBatch) -> Float[Tensor, "nodes"]:
    """log of the expected cost over all cuts of nodes that end in two leaves."""
    split = cast(Any, model.split)
    cuts = split.candidates(nodes)
    logits = split.logits(cuts)
    owner, num = cuts.owner, len(nodes)
    log_prob = logits - segment_logsumexp(logits, owner, num)[owner]
    cost = -task.cut_reward(nodes, cuts)
    expected = segment_sum(log_prob.exp() * cost, owner, num)
    return torch.log(expected.clamp(min=1e-30))
