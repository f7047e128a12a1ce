"""The pointing half of a pointer network: a recurrent unit that points at items, one per step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.host import move
from diconet.core.segments import index_of
from diconet.nets.gru import Step
from diconet.nets.pointer_kernels import point, point_backward

T = TypeVar("T", "Items", "Forced")

LOST = -1
"""Stands for an item that is no longer among those to point at."""

ENDED = -2
"""Stands where a node had ended before."""


@dataclass(frozen=True, eq=False)
class Items:
    """What each node may point at: places, and the rows of their keys, padded on the right."""

    points: Float[Tensor, "nodes items features"]
    key_row: Int[Tensor, "nodes items"]
    sizes: Int[Tensor, "nodes"]


@dataclass(frozen=True, eq=False)
class Forced:
    """Answers to follow instead of one's own: their places, and which items those are, if any."""

    points: Float[Tensor, "nodes steps features"]
    items: Int[Tensor, "nodes steps"]
    sizes: Int[Tensor, "nodes"]


@dataclass(frozen=True, eq=False)
class Pointing:
    """Where each node pointed: items by step, how many, and all probabilities (eq. ptrnetatt).

    What a row of `prob` lacks to 1 is the chance of ending there; `log_end` is that of ending
    after the last item.
    """

    chosen: Int[Tensor, "nodes steps"]
    sizes: Int[Tensor, "nodes"]
    prob: Float[Tensor, "nodes kept_steps items"]
    log_end: Float[Tensor, "nodes"]


class PointerDecoder(nn.Module):
    """Points, step by step, at an item that it has not taken yet, or at the end symbol.

    Attention is additive: v . tanh(W1 e + W2 d), with the end symbol's own key for one of the e.
    """

    def __init__(self, num_features: int, width: int) -> None:
        super().__init__()
        self.config = {"num_features": num_features, "width": width}
        self.gru = nn.GRU(num_features, width)
        self.key = nn.Linear(width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.first_input = nn.Parameter(torch.zeros(num_features))
        self.end_key = nn.Parameter(torch.zeros(width))

    def forward(
        self,
        states: Float[Tensor, "rows width"],
        start: Float[Tensor, "nodes width"],
        items: Items,
        patience: float | None = None,
        forced: Forced | None = None,
    ) -> Pointing:
        """Points at the likeliest, until the end is likelier or, with `patience`, that likely.

        With `forced` answers, it follows them instead.
        """
        tensors = (
            self.key(states),
            start,
            *self.gru.all_weights[0],
            self.first_input,
            self.query.weight,
            self.score.weight[0],
            self.end_key,
        )
        decoded = _Decode.apply(
            _on_host(items),
            patience,
            None if forced is None else _on_host(forced),
            *(move(tensor, "cpu") for tensor in tensors),
        )
        chosen, prob, log_end = (move(tensor, states.device) for tensor in decoded)
        return Pointing(chosen, (chosen != ENDED).sum(1), prob, log_end)


@dataclass(frozen=True, eq=False)
class _Look:
    """One step: the nodes at it, what they read, how that moved them, and what they saw.

    `on` lists those of its rows that point at an item and go on to the next step.
    """

    node: Int[Tensor, "rows"]
    inputs: Float[Tensor, "rows features"]
    step: Step
    queries: Float[Tensor, "rows width"]
    prob: Float[Tensor, "rows items"]
    log_end: Float[Tensor, "rows"]
    on: Int[Tensor, "on"]


class _Decode(torch.autograd.Function):
    """The loop over steps, forwards and, through what each step has left, backwards."""

    @staticmethod
    def forward(
        ctx: Any, items: Items, patience: float | None, forced: Forced | None, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        keys, start, w_in, w, b_in, b, first_input, w_query, score, end_key = tensors
        known = _arrays(keys, items.key_row, items.sizes, score, end_key)
        learns = any(ctx.needs_input_grad)
        free = torch.ones_like(items.key_row, dtype=torch.bool)
        log_end = start.new_zeros(len(start))
        looks: list[_Look] = []
        chosen: list[Tensor] = []
        node = index_of(items.sizes > 0)
        state, inputs = start[node], first_input.expand(len(node), -1)
        while len(node):
            t = len(chosen)
            step = Step.take(torch.addmm(b_in, inputs, w_in.t()), state, w, b)
            queries = step.after @ w_query.t()
            prob, end, best = _attend(known, node, queries, free, may_end=t > 0)
            if forced is None:
                on = index_of(_goes_on(prob, end, best, patience, is_first=t == 0))
                item, there = best[on], items.points[node[on], best[on]]
            else:
                on = index_of(forced.sizes[node] > t)
                item, there = forced.items[node[on], t], forced.points[node[on], t]
            if learns or forced is not None:
                looks.append(_Look(node, inputs, step, queries, prob, end, on))
            log_end[node] = end
            node, state, inputs = node[on], step.after[on], there
            chosen.append(node.new_full((len(start),), ENDED))
            chosen[-1][node] = item
            left = index_of(item != LOST)
            free[node[left], item[left]] = False
        rows = torch.stack(chosen[:-1], 1) if chosen[:-1] else free.new_zeros(len(start), 0).long()
        ctx.looks, ctx.known = looks if learns else [], known
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(rows)
        return rows, _stacked(looks, len(start), rows.shape[1], free.shape[1], start), log_end

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        _, d_rows, d_log_end = grads
        _, start, w_in, w, *_, w_query, _, _ = ctx.saved_tensors
        d_keys, d_start, d_in, d_w, d_b_in, d_b, d_first, d_query, d_score, d_end = (
            torch.zeros_like(tensor) for tensor in ctx.saved_tensors
        )
        summed = _arrays(d_keys, d_score, d_end)
        carry = start.new_zeros(0, start.shape[1])
        for t in reversed(range(len(ctx.looks))):
            look: _Look = ctx.looks[t]
            d_prob = torch.zeros_like(look.prob)
            if len(look.on):
                d_prob[look.on] = d_rows[look.node[look.on], t]
            d_last = d_log_end[look.node]
            d_last[look.on] = 0
            d_queries = _attend_back(ctx.known, look, d_prob, d_last, summed)
            d_query.addmm_(d_queries.t(), look.step.after)
            grad = (d_queries @ w_query).index_add_(0, look.on, carry)
            d_seen, d_recalled = look.step.back(grad, w)
            d_w.addmm_(d_recalled.t(), look.step.before)
            d_in.addmm_(d_seen.t(), look.inputs)
            d_b += d_recalled.sum(0)
            d_b_in += d_seen.sum(0)
            carry = grad
            if t == 0:
                d_start[look.node] = carry
                d_first += d_seen.sum(0) @ w_in
        inputs = d_keys, d_start, d_in, d_w, d_b_in, d_b, d_first, d_query, d_score, d_end
        return None, None, None, *inputs


def _on_host(given: T) -> T:
    """Items or answers where the compiled kernels are."""
    return type(given)(*(move(getattr(given, one.name), "cpu") for one in fields(given)))


def _arrays(*tensors: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.detach().numpy() for tensor in tensors)


def _attend(
    known: tuple[Any, ...],
    node: Int[Tensor, "rows"],
    queries: Float[Tensor, "rows width"],
    free: Bool[Tensor, "nodes items"],
    may_end: bool,
) -> tuple[Float[Tensor, "rows items"], Float[Tensor, "rows"], Int[Tensor, "rows"]]:
    """Of every node asked: its items' probabilities, the log of the end's, and the best item."""
    keys, key_row, sizes, score, end_key = known
    prob = queries.new_zeros(len(node), free.shape[1])
    log_end, best = queries.new_empty(len(node)), torch.empty_like(node)
    asked = keys, key_row, sizes, *_arrays(node, queries)
    point(*asked, score, end_key, free.numpy(), may_end, *_arrays(prob, log_end, best))
    return prob, log_end, best


def _attend_back(
    known: tuple[Any, ...],
    look: _Look,
    d_prob: Float[Tensor, "rows items"],
    d_log_end: Float[Tensor, "rows"],
    summed: tuple[Any, ...],
) -> Float[Tensor, "rows width"]:
    """The gradient of a step's queries; those of keys, score and end key are added to `summed`."""
    keys, key_row, sizes, score, end_key = known
    d_queries = torch.empty_like(look.queries)
    d_keys, d_score, d_end_key = summed
    asked = keys, key_row, sizes, *_arrays(look.node, look.queries)
    given = _arrays(look.prob, look.log_end, d_prob, d_log_end)
    point_backward(*asked, score, end_key, *given, d_keys, d_queries.numpy(), d_score, d_end_key)
    return d_queries


def _goes_on(
    prob: Float[Tensor, "rows items"],
    log_end: Float[Tensor, "rows"],
    best: Int[Tensor, "rows"],
    patience: float | None,
    is_first: bool,
) -> Bool[Tensor, "rows"]:
    """Which nodes point at another item: the first is a must, and then while any is left."""
    some = best >= 0
    if is_first:
        return some
    if patience is not None:
        return some & (log_end.exp() < patience)
    highest = prob.gather(1, best.clamp(min=0)[:, None]).squeeze(1)
    return some & (highest >= log_end.exp())


def _stacked(
    looks: list[_Look], nodes: int, steps: int, items: int, like: Tensor
) -> Float[Tensor, "nodes steps items"]:
    """The rows of all matrices, zeros where a node had ended."""
    rows = like.new_zeros(nodes, steps if looks else 0, items)
    for t, look in enumerate(looks):
        if len(look.on):
            rows[look.node[look.on], t] = look.prob[look.on]
    return rows
