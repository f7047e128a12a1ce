"""Additive attention over ragged pairs, the inner loop of the pointer merge."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


def additive_scores(
    keys: Float[Tensor, "items width"],
    queries: Float[Tensor, "steps width"],
    weight: Float[Tensor, "width"],
    column: Int[Tensor, "pairs"],
    row: Int[Tensor, "pairs"],
    seen: Float[Tensor, "pairs features"] | None = None,
    seen_weight: Float[Tensor, "features width"] | None = None,
) -> Float[Tensor, "pairs"]:
    """v . tanh(key + query) for every listed (query row, key column) pair (eq. ptrnetatt).

    What is `seen` of an item from a step, a property of the pair, may join the sum.
    """
    if (seen is None) != (seen_weight is None):
        raise ValueError("seen and seen_weight must be given together.")
    scores: Tensor = _AdditiveScores.apply(keys, queries, weight, column, row, seen, seen_weight)
    return scores


class _AdditiveScores(torch.autograd.Function):
    """Written out because the pairs are many: autograd's own version makes twice the passes."""

    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        queries: Tensor,
        weight: Tensor,
        column: Tensor,
        row: Tensor,
        seen: Tensor | None,
        seen_weight: Tensor | None,
    ) -> Tensor:
        mixed = keys.index_select(0, column).add_(queries.index_select(0, row))
        if seen is not None and seen_weight is not None:
            mixed.addmm_(seen, seen_weight)
        mixed.tanh_()
        ctx.save_for_backward(mixed, weight, column, row, seen, seen_weight)
        ctx.sizes = len(keys), len(queries)
        return mixed.mv(weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        mixed, weight, column, row, seen, seen_weight = ctx.saved_tensors
        num_keys, num_queries = ctx.sizes
        inside = torch.ops.aten.tanh_backward(torch.outer(grad, weight), mixed)
        grad_keys = inside.new_zeros(num_keys, len(weight)).index_add_(0, column, inside)
        grad_queries = inside.new_zeros(num_queries, len(weight)).index_add_(0, row, inside)
        grad_weight = mixed.t().mv(grad)
        grad_seen = inside.mm(seen_weight.t()) if ctx.needs_input_grad[5] else None
        grad_seen_weight = None if seen is None else seen.t().mm(inside)
        return grad_keys, grad_queries, grad_weight, None, None, grad_seen, grad_seen_weight
