"""What training minimises (section 5 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.tree import PartitionTree


def advantage(score: Float[Tensor, "samples"], group: int) -> Float[Tensor, "samples"]:
    """Score less the mean score of the *other* samples of the same input (leave one out).

    `group` samples of one input stand in a row. With a single sample there is no baseline. The
    mean over all samples, as the paper has it, differs only by the factor 1 - 1/group.
    """
    if group == 1:
        return score
    by_input = score.reshape(-1, group)
    others = (by_input.sum(1, keepdim=True) - by_input) / (group - 1)
    return (by_input - others).flatten()


def policy_gradient(
    log_prob: Float[Tensor, "samples"], score: Float[Tensor, "samples"], group: int
) -> Float[Tensor, ""]:
    """A loss whose gradient is that of minus the expected score (REINFORCE, eq. saq1)."""
    return -(advantage(score.detach(), group) * log_prob).mean()


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


def clip(parameters: Sequence[Tensor], largest: float) -> Float[Tensor, ""]:
    """Scales gradients down to a norm of at most `largest`; gives the norm they had."""
    with_grad = [p for p in parameters if p.grad is not None]
    return torch.nn.utils.clip_grad_norm_(with_grad, largest) if with_grad else torch.zeros(())
