"""Gated recurrent units over many sequences at once, none padded: a step works on what goes on.

The gradient is written out by hand. Autograd keeps and walks a dozen small tensors per step; here a
step is one product of matrices and one compiled pass, forwards and backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.host import move
from diconet.core.segments import offsets_of, owner_of
from diconet.nets.pointer_kernels import gru_gates, gru_gates_backward


@dataclass(frozen=True, eq=False)
class Step:
    """What one step leaves for the way back: old and new states, gates, and the recalled part."""

    before: Float[Tensor, "rows width"]
    after: Float[Tensor, "rows width"]
    gates: Float[Tensor, "rows 3 width"]
    recalled: Float[Tensor, "rows 3 width"]

    @classmethod
    def take(
        cls,
        seen: Float[Tensor, "rows three_widths"],
        before: Float[Tensor, "rows width"],
        weight: Float[Tensor, "three_widths width"],
        bias: Float[Tensor, "three_widths"],
    ) -> Step:
        """One step from inputs that were multiplied already."""
        rows, width = before.shape
        recalled = torch.addmm(bias, before, weight.t())
        gates, after = torch.empty_like(recalled), torch.empty_like(before)
        step = cls(before, after, gates.view(rows, 3, width), recalled.view(rows, 3, width))
        parts = (seen.view(rows, 3, width), step.recalled, before, step.gates, after)
        gru_gates(*(part.numpy() for part in parts))
        return step

    def back(
        self, grad: Float[Tensor, "rows width"], weight: Float[Tensor, "three_widths width"]
    ) -> tuple[Float[Tensor, "rows three_widths"], Float[Tensor, "rows three_widths"]]:
        """Makes `grad` that of the old states; gives those of the seen and the recalled part."""
        d_seen, d_recalled = torch.empty_like(self.gates), torch.empty_like(self.gates)
        parts = (grad, self.recalled, self.before, self.gates, d_seen, d_recalled)
        gru_gates_backward(*(part.numpy() for part in parts))
        grad.addmm_(d_recalled.flatten(1), weight)
        return d_seen.flatten(1), d_recalled.flatten(1)


@dataclass(frozen=True, eq=False)
class Packing:
    """Sequences side by side, the longest first: step t holds rows `bounds[t]` to `bounds[t + 1]`.

    `rows` says which row each item of the packed sequences moves to.
    """

    rows: Int[Tensor, "items"]
    by_length: Int[Tensor, "longer"]
    bounds: list[int]

    @classmethod
    def of(cls, sizes: Int[Tensor, "sequences"]) -> Packing:
        """For sequences of these sizes; empty ones have no rows."""
        by_length = torch.argsort(sizes, descending=True, stable=True)
        rank = torch.empty_like(by_length)
        rank[by_length] = torch.arange(len(sizes), device=sizes.device)
        owner = owner_of(sizes)
        step = torch.arange(len(owner), device=owner.device) - offsets_of(sizes)[:-1][owner]
        start = offsets_of(torch.bincount(step))
        return cls(start[step] + rank[owner], by_length[: int((sizes > 0).sum())], start.tolist())


def encode(
    gru: nn.GRU, items: Float[Tensor, "items features"], sizes: Int[Tensor, "sequences"]
) -> tuple[Float[Tensor, "items width"], Float[Tensor, "sequences width"], Int[Tensor, "items"]]:
    """Reads packed sequences: all states, each sequence's last, and the row of each item's state.

    The states lie in the order of reading, step after step.
    """
    device, items, sizes = items.device, move(items, "cpu"), move(sizes, "cpu")
    packing = Packing.of(sizes)
    inputs = torch.empty_like(items)
    inputs[packing.rows] = items
    weights = (move(weight, "cpu") for weight in gru.all_weights[0])
    states = _Encode.apply(inputs, packing.bounds, *weights)
    last = states.new_zeros(len(sizes), gru.hidden_size)
    if len(packing.by_length):
        ends = offsets_of(sizes)[1:][packing.by_length] - 1
        last = last.index_copy(0, packing.by_length, states[packing.rows[ends]])
    return move(states, device), move(last, device), move(packing.rows, device)


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        bounds: list[int],
        weight_in: Tensor,
        weight: Tensor,
        bias_in: Tensor,
        bias: Tensor,
    ) -> Tensor:
        width = weight.shape[1]
        states = inputs.new_empty(len(inputs), width)
        if len(bounds) < 2:
            return states
        seen = torch.addmm(bias_in, inputs, weight_in.t())
        before = inputs.new_zeros(bounds[1], width)
        steps = []
        for begin, end in pairwise(bounds):
            step = Step.take(seen[begin:end], before[: end - begin], weight, bias)
            states[begin:end] = before = step.after
            if any(ctx.needs_input_grad):
                steps.append(step)
        ctx.bounds, ctx.steps = bounds, steps
        ctx.save_for_backward(inputs, weight)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        grads_in = inputs.new_empty(len(inputs), len(weight))
        d_weight, d_bias = torch.zeros_like(weight), weight.new_zeros(len(weight))
        carry = grads[0].new_zeros(0, weight.shape[1])
        for step, begin, end in zip(
            reversed(ctx.steps), ctx.bounds[-2::-1], ctx.bounds[:0:-1], strict=True
        ):
            grad = grads[0][begin:end].clone()
            grad[: len(carry)] += carry
            grads_in[begin:end], d_recalled = step.back(grad, weight)
            d_weight.addmm_(d_recalled.t(), step.before)
            d_bias += d_recalled.sum(0)
            carry = grad
        return None, None, grads_in.t() @ inputs, d_weight, grads_in.sum(0), d_bias
