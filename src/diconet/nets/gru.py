"""Gated recurrent units over many sequences at once, without padding.

The gradient is written by hand. Autograd would store and traverse a dozen small tensors per step;
here a step is one matrix product and one compiled pass, forwards and backwards, and the gradients
of the weights are one product over all steps.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.host import move
from diconet.core.segments import inverse, offsets_of, owner_of
from diconet.core.threads import over_rows
from diconet.nets.pointer_kernels import gru_step, gru_step_back

_PER_GATE = 50
"""About how many multiplications an activation takes the time of."""


class Tape:
    """The steps of a GRU over ragged sequences, stored (`learns`) for the backward pass.

    `states` holds the start states, if any, and then the rows of step after step; `previous` is
    the row that each one continued from. There are at most `rows` of them, `many` in one step.
    """

    def __init__(
        self,
        weights: tuple[Tensor, ...],
        start: Float[Tensor, "many width"] | None,
        rows: int,
        many: int,
        learns: bool,
    ) -> None:
        self.w_in, self.weight, self.b_in, self.bias = weights
        width = self.weight.shape[1]
        self.first = many
        self.states = self.weight.new_empty(many + rows, width)
        self.states[:many] = 0 if start is None else start
        self.starts, self.learns, self.end = start is not None, learns, many
        kept = rows if learns else many
        self.gates = self.weight.new_empty(kept, 3, width)
        self.product = self.weight.new_empty(kept, width)
        self.inputs = self.weight.new_empty(kept, self.w_in.shape[1])
        self.previous = torch.empty(many + rows, dtype=torch.long, device="cpu")
        self._recalled = self.weight.new_zeros(many, 3 * width)
        self._before = self.weight.new_empty(many, width)
        self._in = self.w_in.t().reshape(-1, 3, width)

    def step(
        self, inputs: Float[Tensor, "now features"], previous: Int[Tensor, "now"]
    ) -> Int[Tensor, "now"]:
        """Makes one step from the rows `previous`; returns the rows of its states."""
        now, begin = len(previous), self.end
        self.end = end = begin + now
        self.previous[begin:end] = previous
        recalled = self._recalled[:now]
        if self.starts or begin > self.first:
            before = self._before[:now]
            torch.index_select(self.states, 0, previous, out=before)
            torch.mm(before, self.weight.t(), out=recalled)
        low = begin - self.first if self.learns else 0
        kept = slice(low, low + now)
        self.inputs[kept] = inputs
        known = (
            *arrays(self.inputs[kept], self._in, *_by_gate(self.b_in, self.bias, recalled)),
            *arrays(self.previous, self.states, self.gates[kept], self.product[kept]),
        )
        work = _PER_GATE * recalled.numel()
        over_rows(lambda low, high: gru_step(low, high, *known, begin), now, work=work)
        return torch.arange(begin, end, device="cpu")

    def back(
        self, grad: Float[Tensor, "rows width"], steps: list[Int[Tensor, "_"]]
    ) -> tuple[Tensor, ...]:
        """The gradients of the weights, and that of the inputs of the first step.

        `grad` is that of the states from outside, and becomes that of the start; `steps` are the
        nonempty rows of every step.
        """
        rows = torch.cat(steps)
        d_recalled = self.weight.new_empty(len(rows), len(self.weight))
        d_new = self.weight.new_empty(len(rows), self.weight.shape[1])
        end = len(rows)
        for t in reversed(range(len(steps))):
            begin = end - len(steps[t])
            here = d_recalled[begin:end], d_new[begin:end]
            self._step_back(steps[t], grad, *here)
            if t > 0 or self.starts:
                grad.index_add_(0, self.previous[steps[t]], here[0] @ self.weight)
            end = begin
        after = 0 if self.starts else len(steps[0])  # before that, there is no previous state
        d_weight = d_recalled[after:].t() @ self.states[self.previous[rows[after:]]]
        seen = nn.functional.pad(self.inputs[rows - self.first], (0, 1), value=1.0)
        d_bias = (seen.t() @ d_recalled).t()
        d_in = torch.cat([d_bias[: -d_new.shape[1]], (seen.t() @ d_new).t()])
        first = slice(0, len(steps[0]))
        both = d_recalled[first, : -d_new.shape[1]].sum(0), d_new[first].sum(0)
        return d_in[:, :-1], d_weight, d_in[:, -1], d_bias[:, -1], torch.cat(both)

    def _step_back(self, step: Tensor, grad: Tensor, d_recalled: Tensor, d_new: Tensor) -> None:
        """The gradients of one step's gates; adds what reaches previous states past them."""
        known = step, self.previous, self.states, self.gates, self.product, grad
        given = *arrays(*known, *_by_gate(d_recalled), d_new), self.first
        work = _PER_GATE * d_recalled.numel()
        over_rows(lambda low, high: gru_step_back(low, high, *given), len(step), work=work)


def _by_gate(*parts: Tensor) -> tuple[Tensor, ...]:
    """Tensors with three numbers per unit, one for each gate, as (..., 3, width)."""
    return tuple(part.unflatten(-1, (3, -1)) for part in parts)


def arrays(*tensors: Tensor) -> tuple[Any, ...]:
    """Tensors as arrays for the compiled kernels."""
    return tuple(tensor.detach().numpy() for tensor in tensors)


def encode(
    gru: nn.GRU, items: Float[Tensor, "items features"], sizes: Int[Tensor, "sequences"]
) -> tuple[Float[Tensor, "items width"], Float[Tensor, "sequences width"], Int[Tensor, "items"]]:
    """Reads packed sequences: all states, the last of each, and the row of each item's state.

    The states are in reading order: step after step, the longest sequence first.
    """
    device, items, sizes = items.device, move(items, "cpu"), move(sizes, "cpu")
    by_length = torch.argsort(sizes, descending=True, stable=True)
    rank = inverse(by_length)
    owner = owner_of(sizes)
    step = torch.arange(len(owner), device="cpu") - offsets_of(sizes)[:-1][owner]
    start = offsets_of(torch.bincount(step))
    rows = start[step] + rank[owner]
    inputs = torch.empty_like(items)
    inputs[rows] = items
    weights = (move(weight, "cpu") for weight in gru.all_weights[0])
    states = _Encode.apply(inputs, start.tolist(), *weights)
    last = states.new_zeros(len(sizes), gru.hidden_size)
    some = by_length[: int((sizes > 0).sum())]
    last = last.index_copy(0, some, states[rows[offsets_of(sizes)[1:][some] - 1]])
    return move(states, device), move(last, device), move(rows, device)


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, bounds: list[int], *weights: Tensor) -> Tensor:
        many = bounds[1] if len(bounds) > 1 else 0
        ctx.tape = tape = Tape(weights, None, len(inputs), many, any(ctx.needs_input_grad))
        before = torch.arange(many, device="cpu")
        ctx.steps = steps = []
        for begin, end in pairwise(bounds):
            before = tape.step(inputs[begin:end], before[: end - begin])
            steps.append(before)
        return tape.states[many:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if not ctx.steps:
            return (None,) * 6
        grad = nn.functional.pad(grads[0], (0, 0, ctx.tape.first, 0))
        return None, None, *ctx.tape.back(grad, ctx.steps)[:-1]
