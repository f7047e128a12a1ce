"""The decoder of a pointer network: a recurrent unit that points at one item per step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.core.host import move
from diconet.core.segments import index_of, offsets_of
from diconet.core.threads import over_rows
from diconet.nets.gru import Tape, arrays
from diconet.nets.pointer_kernels import point, point_backward

T = TypeVar("T", "Items", "Forced")

_PER_SCORE = 50
"""About how many multiplications a unit's share of a score takes the time of."""

LOST = -1
"""Marks an item that is no longer among those to point at."""

ENDED = -2
"""Marks steps after a node's end."""


@dataclass(frozen=True, eq=False)
class Items:
    """The items each node may point at: their points and the rows of their keys, right-padded."""

    points: Float[Tensor, "nodes items features"]
    key_row: Int[Tensor, "nodes items"]
    sizes: Int[Tensor, "nodes"]


@dataclass(frozen=True, eq=False)
class Forced:
    """Answers to follow instead of the decoder's own: their points and items, if any."""

    points: Float[Tensor, "nodes steps features"]
    items: Int[Tensor, "nodes steps"]
    sizes: Int[Tensor, "nodes"]


@dataclass(frozen=True, eq=False)
class Pointing:
    """The items each node pointed at by step, their number, and all probabilities (eq. ptrnetatt).

    What a row of `prob` lacks to 1 is the probability of ending there; `log_end` is that of ending
    after the last item.
    """

    chosen: Int[Tensor, "nodes steps"]
    sizes: Int[Tensor, "nodes"]
    prob: Float[Tensor, "nodes kept_steps items"]
    log_end: Float[Tensor, "nodes"]


class PointerDecoder(nn.Module):
    """Points, step by step, at an item not yet taken, or at the end symbol.

    Attention is additive: v . tanh(W1 e + W2 d); the end symbol has its own key.
    """

    def __init__(self, num_features: int, width: int) -> None:
        super().__init__()
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
        matrices: bool = True,
    ) -> Pointing:
        """Points at the likeliest item until the end is likelier or, with `patience`, that likely.

        With `forced` answers, it follows them instead. Without `matrices`, `prob` stays empty.
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
            matrices,
            *(move(tensor, "cpu") for tensor in tensors),
        )
        chosen, prob, log_end = (move(tensor, states.device) for tensor in decoded)
        return Pointing(chosen, (chosen != ENDED).sum(1), prob, log_end)


class _Trace:
    """A trace of all attention steps of all nodes: node, step, query and probabilities.

    `on` marks those that point at an item and continue with the next step.
    """

    def __init__(self, items: Items, rows: int, width: int, like: Tensor) -> None:
        self.items = items
        self.node, self.step = torch.empty(2, rows, dtype=torch.long, device="cpu")
        self.on = torch.zeros(rows, dtype=torch.bool, device="cpu")
        self.queries = like.new_empty(rows, width)
        self.prob = like.new_zeros(rows, items.key_row.shape[1])
        self.log_end = like.new_empty(rows)
        self.free = torch.ones_like(items.key_row, dtype=torch.bool)
        self.end = 0

    def attend(
        self,
        known: tuple[Any, ...],
        node: Int[Tensor, "now"],
        step: int,
        states: Float[Tensor, "now width"],
        w_query: Float[Tensor, "width width"],
    ) -> tuple[slice, Int[Tensor, "now"]]:
        """Makes one attention step for each node; returns its rows, and the best free item."""
        here = slice(self.end, self.end + len(node))
        self.end = here.stop
        self.node[here], self.step[here] = node, step
        torch.mm(states, w_query.t(), out=self.queries[here])
        best = torch.empty_like(node)
        keys, score, end_key = known
        item = arrays(self.items.key_row, self.items.sizes)
        seen = arrays(self.free, self.prob[here], self.log_end[here], best)
        asked = arrays(node, self.queries[here])
        given = keys, *item, *asked, score, end_key, seen[0], step > 0, *seen[1:]
        work = _PER_SCORE * self.items.key_row.shape[1] * states.numel()
        over_rows(lambda low, high: point(low, high, *given), len(node), work=work)
        return here, best

    def take(
        self, here: slice, on: Int[Tensor, "on"], item: Int[Tensor, "on"]
    ) -> Int[Tensor, "on"]:
        """Takes an item for each row that continues, if it is present; returns their nodes."""
        self.on[here.start + on] = True
        node = self.node[here][on]
        left = index_of(item != LOST)
        self.free[node[left], item[left]] = False
        return node

    def matrices(self, nodes: int, steps: int) -> Float[Tensor, "nodes steps items"]:
        """The rows of all matrices, zero after a node's end."""
        out = self.prob.new_zeros(nodes, steps, self.prob.shape[1])
        on = index_of(self.on & (steps > 0))
        out[self.node[on], self.step[on]] = self.prob[on]
        return out


class _Decode(torch.autograd.Function):
    """The loop over steps, with a hand-written backward pass over what each step stored."""

    @staticmethod
    def forward(
        ctx: Any,
        items: Items,
        patience: float | None,
        forced: Forced | None,
        matrices: bool,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        keys, start, *weights, first_input, w_query, score, end_key = tensors
        ctx.set_materialize_grads(False)
        ctx.known = arrays(keys, score, end_key)
        ctx.node = node = index_of(items.sizes > 0)
        longest = items.sizes if forced is None else forced.sizes
        rows = int(longest[node].sum()) + (0 if forced is None else len(node))
        learns = any(ctx.needs_input_grad)
        ctx.tape = tape = Tape(tuple(weights), start[node], rows, len(node), learns)
        ctx.trace = trace = _Trace(items, rows, start.shape[1], start)
        log_end = start.new_zeros(len(start))
        answers = node.new_full((len(start), 1 + max([0, *longest.tolist()])), ENDED)
        t, previous = 0, torch.arange(len(node), device="cpu")
        inputs = first_input.expand(len(node), -1)
        while len(node):
            states = tape.step(inputs, previous)
            now = tape.states[int(states[0]) : tape.end]
            here, best = trace.attend(ctx.known, node, t, now, w_query)
            log_end[node] = end = trace.log_end[here]
            if forced is None:
                on = index_of(_goes_on(trace.prob[here], end, best, patience, is_first=t == 0))
                item, inputs = best[on], items.points[node[on], best[on]]
            else:
                on = index_of(forced.sizes[node] > t)
                item, inputs = forced.items[node[on], t], forced.points[node[on], t]
            node, previous = trace.take(here, on, item), states[on]
            answers[node, t] = item
            t += 1
            if forced is None:  # once all items are taken, the end is certain
                log_end[node] = 0
                some = index_of(items.sizes[node] > t)
                node, previous, inputs = node[some], previous[some], inputs[some]
        answers = answers[:, : max([0, *(answers != ENDED).sum(1).tolist()])]
        prob = trace.matrices(len(start), answers.shape[1] if matrices else 0)
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(answers)
        return answers, prob, log_end

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        _, d_rows, d_log_end = grads
        trace, tape = ctx.trace, ctx.tape
        keys, start, w_in, *_, w_query, score, end_key = ctx.saved_tensors
        d_keys, d_start, d_score, d_end = map(torch.zeros_like, (keys, start, score, end_key))
        # without a gradient of the end, the last step of a node does not matter
        live = index_of(trace.on) if d_log_end is None else torch.arange(trace.end, device="cpu")
        d_queries = _backward(trace, live, d_rows, d_log_end, ctx.known, (d_keys, d_score, d_end))
        rows = live + tape.first
        d_query = d_queries.t() @ tape.states[rows]
        grad = start.new_zeros(tape.end, start.shape[1])
        grad.index_copy_(0, rows, d_queries @ w_query)
        per_step = torch.bincount(trace.step[live]).tolist()
        *d_weights, d_first = tape.back(grad, list(rows.split(per_step)))
        d_start[ctx.node] = grad[: tape.first]
        inputs = d_keys, d_start, *d_weights, d_first @ w_in, d_query, d_score, d_end
        return None, None, None, None, *inputs


def _on_host(given: T) -> T:
    """Items or answers on the host, where the compiled kernels run."""
    return type(given)(*(move(getattr(given, one.name), "cpu") for one in fields(given)))


def _backward(
    trace: _Trace,
    live: Int[Tensor, "live"],
    d_rows: Float[Tensor, "nodes steps items"] | None,
    d_log_end: Float[Tensor, "nodes"] | None,
    known: tuple[Any, ...],
    summed: tuple[Tensor, ...],
) -> Float[Tensor, "live width"]:
    """The gradient of the queries of live steps; those of keys, score and end are accumulated."""
    on = index_of(trace.on)
    d_prob, d_last = torch.zeros_like(trace.prob), torch.zeros_like(trace.log_end)
    if d_rows is not None:
        d_prob[on] = d_rows[trace.node[on], trace.step[on]]
    if d_log_end is not None:
        last = index_of(~trace.on[: trace.end])
        d_last[last] = d_log_end[trace.node[last]]
    d_queries = torch.empty_like(trace.queries)
    keys, score, end_key = known
    d_keys, d_score, d_end = summed
    by_node = live[torch.argsort(trace.node[live], stable=True)]
    starts = offsets_of(torch.bincount(trace.node[live], minlength=len(trace.items.sizes)))
    items = arrays(trace.items.key_row, trace.items.sizes)
    asked = arrays(trace.node, trace.queries)
    seen = arrays(trace.prob, trace.log_end, d_prob, d_last)

    def back(low: int, high: int) -> tuple[Tensor, Tensor]:
        """The gradients of some nodes: those of what all nodes share are returned apart."""
        shared = torch.zeros_like(d_score), torch.zeros_like(d_end)
        order = by_node[starts[low] : starts[high]].numpy()
        out = arrays(d_keys, d_queries, *shared)
        point_backward(keys, *items, order, *asked, score, end_key, *seen, *out)
        return shared

    work = _PER_SCORE * trace.prob.shape[1] * d_queries.numel()
    for d_score_of, d_end_of in over_rows(back, len(starts) - 1, work=work):
        d_score += d_score_of
        d_end += d_end_of
    return d_queries if len(live) == len(d_queries) else d_queries[live]


def _goes_on(
    prob: Float[Tensor, "rows items"],
    log_end: Float[Tensor, "rows"],
    best: Int[Tensor, "rows"],
    patience: float | None,
    is_first: bool,
) -> Bool[Tensor, "rows"]:
    """Which nodes point at another item: always at the first step, then while any is left."""
    some = best >= 0
    if is_first:
        return some
    if patience is not None:
        return some & (log_end.exp() < patience)
    highest = prob.gather(1, best.clamp(min=0)[:, None]).squeeze(1)
    return some & (highest >= log_end.exp())
