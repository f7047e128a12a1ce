"""What training minimises (section 5 and appendix A)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.core.tree import PartitionTree
from diconet.learn.processes import mean_over_processes

_ROUNDING = 1e-5
"""Relative differences of scores that may come from rounding alone."""


def group_mean(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """The mean score of the samples of the same input, for each of them."""
    return score.reshape(-1, group).mean(1).repeat_interleave(group)


def advantage(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """Score less the mean score of the *other* samples of the same input (leave one out).

    `group` samples of one input stand in a row. With a single sample there is no baseline. With
    the mean over all samples, as in the paper, it would be smaller by the factor 1 - 1/group.
    """
    if group == 1:
        return score
    return (score - group_mean(score, group)) * (group / (group - 1))


def relative(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """Scores in units of their mean over an input's samples, so that all scales count alike."""
    return score / group_mean(score, group).abs().clamp(min=1e-30)


def normalised(
    gain: Float[Tensor, "samples"], score: Float[Tensor, "samples"]
) -> Float[Tensor, "samples"]:
    """Advantages in units of their spread over the batch, that of all processes together.

    Differences that are next to nothing beside the scores themselves are rounding, and stay small.
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

    With `normalise`, the same up to a factor that makes all scales of the score alike.
    """
    gain = advantage(score.detach(), group)
    return -((normalised(gain, score.detach()) if normalise else gain) * log_prob).mean()


def split_variance(tree: PartitionTree) -> Float[Tensor, ""]:
    """Variance of an item's probability within its node (eq. split_reg), mean over nodes.

    It is largest where each half of a node is sure of its side, so maximising it balances the tree.
    Trees count alike, however many nodes they have, so that parts of a batch add up to the whole.
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
