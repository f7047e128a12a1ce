"""Credit node by node: every node of a tree is an instance of its own.

Where a reward adds up over the leaves, a node's cut can only change what its own leaves earn. So
each node on the way down is taken for a root: several cuts are drawn for it, each is followed by
the likeliest cuts below, and compared with the others at this node alone.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.losses import advantage, policy_gradient
from diconet.model import DiCoNet
from diconet.noise import mix
from diconet.segments import index_of, place_within, segment_logsumexp, segment_sum
from diconet.sets import SetBatch
from diconet.task import Task
from diconet.train import Batch, TrainConfig
from diconet.tree import Growth, ManyCuts, PartitionTree, children, grow

_LARGEST = 4.0
"""Bound on the credit of one coin, in units of the mean cost of an item."""


def tree_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE over whole trees, as the paper has it: one reward for all coins of a tree.

    As `loss_of` without targets, but for two things: rewards are relative to their mean over an
    input's trees, so that inputs of any scale count alike, and the first cut of an input's trees
    comes from one look at it.
    """
    samples = config.tree_samples
    tree = grow(model.split, batch.sets, model.growth, batch.seeds, copies=samples)
    score = task.reward(tree.roots, tree)
    relative = score / _group_mean(score, samples).abs().clamp(min=1e-30)
    per_item = tree.log_prob / tree.roots.sizes.clamp(min=1)
    loss = policy_gradient(per_item, relative, samples)
    return loss, {"loss": loss.item(), "score": score.mean().item()}


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

    To draw a cut costs next to nothing beside the look at a node that tells its chances, so every
    look is drawn from several times: `tree_samples` cuts of the root, `last` of each node above the
    leaves, `between` of those between, and every combination of them is a tree. A cut is compared
    with the others of its node, each by the mean reward of the trees it is part of. What the
    other nodes earn is then the same on both sides and cancels, so for a reward that adds up over
    leaves only those below the node are summed. Relative to the mean reward, as in `tree_loss`.
    """
    depth = model.growth.depth
    if not depth:
        raise ValueError(f"branch_loss needs trees of a fixed depth of at least 1; got {depth}.")
    times = [config.tree_samples, *[between] * (depth - 2), last][:depth]
    nodes, seeds, log_probs = batch.sets, batch.seeds, []
    for level, draws in enumerate(times):
        if level > 0:
            nodes = nodes.as_roots()
            seeds = mix(seeds.repeat_interleave(draws), _counted(draws, len(nodes)))
        cut = cast(ManyCuts, model.split).many(nodes, seeds)
        log_probs.append(cut.log_prob)
        nodes = children(nodes.repeat(draws), cut)
        seeds = mix(seeds.repeat_interleave(2), _counted(2, len(cut.log_prob)))
    leaves = nodes.as_roots()
    earned = task.reward(leaves, grow(model.split, leaves, Growth(depth=0)))
    terms = []
    for draws, log_prob in zip(reversed(times), reversed(log_probs), strict=True):
        earned = earned.reshape(-1, 2).sum(1)
        terms.append((advantage(earned, draws) * log_prob).reshape(len(batch.sets), -1).sum(1))
        earned = earned.reshape(-1, draws).mean(1)
    trees = torch.tensor(times).cumprod(0).tolist()
    total = torch.stack([term / number for term, number in zip(terms, trees[::-1], strict=True)])
    scale = earned.abs().clamp(min=1e-30) * batch.sets.sizes.clamp(min=1)
    loss = -(total.sum(0) / scale).mean()
    return loss, {"loss": loss.item(), "score": earned.mean().item()}


def _counted(times: int, num: int) -> Int[Tensor, "draws"]:
    """0 to times - 1, as often as there are nodes."""
    return torch.arange(times).repeat(num)


def move_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Credit coin by coin, where a task knows what moving one item to any leaf would change.

    The expected reward is linear in each coin's probability, all other coins as drawn, and its
    slope is the difference between the two sides. Below the other side of a cut, the item goes to
    the leaf where it fits best; at the last cut there is only one, and the slope is exact.
    """
    samples = config.tree_samples
    tree = grow(model.split, batch.sets, model.growth, batch.seeds, copies=samples)
    roots, leaves = tree.roots, tree.leaves
    score = task.reward(roots, tree)
    gains = cast(Any, task).move_reward(roots, leaves)
    scale = (score.abs().clamp(min=1e-30) / roots.sizes)[roots.owner]
    total = roots.items.new_zeros(())
    for level in tree.levels:
        if level.cut is None or level.cut.prob is None:
            continue
        rows = level.sets.take(level.inner).index
        gain = _across(tree, level.number, leaves, gains)[rows] / scale[rows]
        slope = torch.where(level.cut.side, -gain, gain).clamp(-_LARGEST, _LARGEST)
        total = total - (slope * level.cut.prob).sum()
    loss = total / roots.num_items
    return loss, {"loss": loss.item(), "score": score.mean().item()}


def _across(
    tree: PartitionTree,
    level: int,
    leaves: Int[Tensor, "items"],
    gains: Float[Tensor, "items leaves_and_new"],
) -> Float[Tensor, "items"]:
    """The best gain on the other side of an item's cut; as a leaf of its own if that is bare."""
    owner = tree.roots.owner
    width = gains.shape[1] - 1
    node, side = tree.nodes_at(level), tree.sides[level].long()
    # every leaf lies in one node of the level and on one side of its cut
    place = leaves.new_full((len(tree.roots) * width,), -1)
    place[owner * width + leaves] = 2 * node + side
    theirs = place.reshape(-1, width)[owner]
    other = theirs == (2 * node + 1 - side)[:, None]
    best = gains[:, :-1].masked_fill(~other, -torch.inf).amax(1)
    return torch.where(other.any(1), best, gains[:, -1])


def label_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE for a network that labels all items at once."""
    samples = config.tree_samples
    labels, log_prob = model.split(batch.sets, batch.seeds)
    copies = batch.sets.repeat(samples)
    score = cast(Any, task).label_reward(copies, labels)
    relative = score / _group_mean(score, samples).abs().clamp(min=1e-30)
    loss = policy_gradient(log_prob / copies.sizes.clamp(min=1), relative, samples)
    return loss, {"loss": loss.item(), "score": score.mean().item()}


def _group_mean(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    return score.reshape(-1, group).mean(1, keepdim=True).expand(-1, group).flatten()


def node_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """Policy gradient at one node of every input, in the order of cost it is there to lower.

    For each input, a node at a random level of its likeliest tree. The return is relative to the
    mean over the node's samples, so small nodes count as much as large ones. A node that ends in
    two leaves is not sampled if the task knows the reward of every cut (`cut_reward`): then the
    expectation is exact.
    """
    with torch.no_grad():
        tree = model(batch.sets).tree
        score = task.reward(batch.sets, tree)
    if len(tree.levels) == 1:  # nothing was cut
        return score.new_zeros(()), {"loss": 0.0, "score": score.mean().item()}
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
    return loss, {"loss": loss.item(), "score": score.mean().item()}


def _one_node_each(tree: PartitionTree, seeds: Tensor) -> tuple[SetBatch, Tensor]:
    """One inner node of every example, by chance; and whether all its children are leaves."""
    parts, example, last = [], [], []
    for level, below in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        parts.append(level.sets.take(level.inner))
        example.append(level.example[level.inner])
        last.append(below.is_leaf.reshape(-1, 2).all(1))
    everything = SetBatch.cat(parts)
    owner = torch.cat(example)
    key = mix(seeds[owner], place_within(owner, len(tree.roots)))
    order = torch.argsort(key)
    order = order[torch.argsort(owner[order], stable=True)]
    first = torch.ones(len(order), dtype=torch.bool)
    first[1:] = owner[order][1:] != owner[order][:-1]
    chosen = order[first]
    return everything.take(chosen), torch.cat(last)[chosen]


def _sampled(model: DiCoNet, task: Task, nodes: SetBatch, seeds: Tensor) -> Float[Tensor, "nodes"]:
    """The policy gradient's loss of every node, over its samples."""
    samples = len(seeds) // len(nodes)
    cut = cast(ManyCuts, model.split).many(nodes, seeds)
    copies = nodes.repeat(samples)
    with torch.no_grad():
        sides = children(copies, cut).as_roots()
        closed = None if cut.closed is None else cut.closed.flatten()
        below = _grow_open(model, sides, closed)
        cost = -task.reward(sides, below).reshape(-1, 2).sum(1)
        mean = _group_mean(cost, samples)
        relative = advantage(-cost / mean.abs().clamp(min=1e-30), samples)
    return (-relative * cut.log_prob).reshape(-1, samples).mean(1)


def _grow_open(model: DiCoNet, sides: SetBatch, closed: Tensor | None) -> Any:
    """The likeliest trees below; a closed side stays whole."""
    return grow(model.split, sides, model.growth, closed=closed)


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
