"""Compiled inner loops of the pointer merge: gates of a GRU, and attention over ragged nodes.

A pass over memory costs more here than its arithmetic, so each kernel makes only one. All loops
over the width vectorise, which a call to the library's tanh would prevent.
"""

from __future__ import annotations

import typing

import numpy as np
from numba import njit

from diconet.core.compiled import INNER, KERNEL

_FAST = {"reassoc", "contract", "arcp", "nsz"}
"""Fast-math flags that preserve infinities and NaN."""

_NEVER = np.float32(-1e30)
"""The score of an item that must not be chosen."""

_HALF, _ONE, _LIMIT = np.float32(0.5), np.float32(1), np.float32(7.90531110763549805)
_ODD_6, _ODD_5 = np.float32(-2.76076847742355e-16), np.float32(2.00018790482477e-13)
_ODD_4, _ODD_3 = np.float32(-8.60467152213735e-11), np.float32(5.12229709037114e-08)
_ODD_2, _ODD_1 = np.float32(1.48572235717979e-05), np.float32(6.37261928875436e-04)
_ODD_0 = np.float32(4.89352455891786e-03)
_EVEN_3, _EVEN_2 = np.float32(1.19825839466702e-06), np.float32(1.18534705686654e-04)
_EVEN_1, _EVEN_0 = np.float32(2.26843463243900e-03), np.float32(4.89352518554385e-03)
"""A rational approximation of tanh, to the last digits of single precision (as in Eigen)."""


@typing.no_type_check
@njit(**INNER, inline="always", fastmath=_FAST)
def _tanh(x):
    x = min(max(x, -_LIMIT), _LIMIT)
    s = x * x
    odd = ((((((_ODD_6 * s + _ODD_5) * s + _ODD_4) * s + _ODD_3) * s + _ODD_2) * s) + _ODD_1) * s
    even = ((_EVEN_3 * s + _EVEN_2) * s + _EVEN_1) * s + _EVEN_0
    return x * (odd + _ODD_0) / even


@typing.no_type_check
@njit(**INNER, inline="always", fastmath=_FAST)
def _sigmoid(x):
    return _HALF + _HALF * _tanh(_HALF * x)


@typing.no_type_check
@njit(**INNER, inline="always", fastmath=_FAST)
def _sum(out, a, b, c):
    for h in range(len(out)):
        out[h] = a[h] + b[h] + c[h]


@typing.no_type_check
@njit(**INNER, inline="always", fastmath=_FAST)
def _add(out, times, a):
    for h in range(len(out)):
        out[h] += times * a[h]


@typing.no_type_check
@njit(**KERNEL, fastmath=_FAST)
def gru_step(
    low, high, inputs, w_in, b_in, bias, recalled, previous, states, gates, product, begin
) -> None:
    """One step of a GRU for rows `low` to `high` of its states, given their recurrent part.

    Reset, update and new gates are adjacent: `gates` and `recalled` are (rows, 3, width), biases
    (3, width), the weights of the inputs (features, 3, width). The step's states begin at `begin`.
    """
    width = gates.shape[2]
    for b in range(low, high):
        past_r, past_u, past_n = recalled[b, 0], recalled[b, 1], recalled[b, 2]
        reset, update, new, mixed = gates[b, 0], gates[b, 1], gates[b, 2], product[b]
        _sum(reset, past_r, bias[0], b_in[0])
        _sum(update, past_u, bias[1], b_in[1])
        for f in range(len(w_in)):
            _add(reset, inputs[b, f], w_in[f, 0])
            _add(update, inputs[b, f], w_in[f, 1])
        for h in range(width):
            reset[h] = _sigmoid(reset[h])
        for h in range(width):
            update[h] = _sigmoid(update[h])
        for h in range(width):
            mixed[h] = past_n[h] + bias[2, h]
        for h in range(width):
            new[h] = reset[h] * mixed[h] + b_in[2, h]
        for f in range(len(w_in)):
            _add(new, inputs[b, f], w_in[f, 2])
        for h in range(width):
            new[h] = _tanh(new[h])
        old, now = states[previous[begin + b]], states[begin + b]
        for h in range(width):
            now[h] = new[h] + update[h] * (old[h] - new[h])


@typing.no_type_check
@njit(**KERNEL, fastmath=_FAST)
def gru_step_back(
    low, high, step, previous, states, gates, product, grad, d_recalled, d_new, first
) -> None:
    """The backward pass through rows `step[low:high]` of `states`, but for the weights' product.

    `grad` of their states is passed on to the previous rows; `gates` and `product` begin at row
    `first` of the states.
    """
    width = states.shape[1]
    for j in range(low, high):
        row, past = step[j], previous[step[j]]
        reset, update, new = gates[row - first, 0], gates[row - first, 1], gates[row - first, 2]
        old, down, mixed, up = states[past], grad[row], product[row - first], grad[past]
        past_r, past_u, past_n = d_recalled[j, 0], d_recalled[j, 1], d_recalled[j, 2]
        seen_n = d_new[j]
        for h in range(width):
            seen_n[h] = down[h] * (_ONE - update[h]) * (_ONE - new[h] * new[h])
        for h in range(width):
            past_n[h] = seen_n[h] * reset[h]
        for h in range(width):
            past_r[h] = past_n[h] * mixed[h] * (_ONE - reset[h])
        for h in range(width):
            past_u[h] = down[h] * (old[h] - new[h]) * update[h] * (_ONE - update[h])
        for h in range(width):
            up[h] += down[h] * update[h]


@typing.no_type_check
@njit(**INNER, inline="always", fastmath=_FAST)
def _score(key, query, weight):
    total = weight[0] * np.float32(0)
    for h in range(len(weight)):
        total += weight[h] * _tanh(key[h] + query[h])
    return total


@typing.no_type_check
@njit(**KERNEL, fastmath=_FAST)
def point(
    low,
    high,
    keys,
    key_row,
    sizes,
    node,
    queries,
    weight,
    end_key,
    free,
    may_end,
    prob,
    log_end,
    best,
) -> None:
    """The softmax over each node's free items and the end (eq. ptrnetatt), and its best item.

    Row b, of those from `low` to `high`, applies `queries[b]` to node i = `node[b]`, whose item k
    has its key in row `key_row[i, k]`.
    """
    for b in range(low, high):
        i = node[b]
        end = _score(end_key, queries[b], weight) if may_end else weight[0] * 0 + _NEVER
        peak, best[b] = end, -1
        highest = _NEVER
        for k in range(sizes[i]):
            if free[i, k]:
                prob[b, k] = _score(keys[key_row[i, k]], queries[b], weight)
                if best[b] < 0 or prob[b, k] > highest:
                    highest, best[b] = prob[b, k], k
        peak = max(peak, highest)
        total = np.exp(end - peak)
        for k in range(sizes[i]):
            if free[i, k]:
                prob[b, k] = np.exp(prob[b, k] - peak)
                total += prob[b, k]
        for k in range(sizes[i]):
            prob[b, k] /= total
        log_end[b] = end - peak - np.log(total)


@typing.no_type_check
@njit(**KERNEL, fastmath=_FAST)
def point_backward(
    keys,
    key_row,
    sizes,
    order,
    node,
    queries,
    weight,
    end_key,
    prob,
    log_end,
    d_prob,
    d_log_end,
    d_keys,
    d_queries,
    d_weight,
    d_end_key,
) -> None:
    """Adds the gradients of `point` for rows in this order; items of probability 0 have none.

    Adjacent rows of the same node find its keys still in the cache.
    """
    width = len(weight)
    for b in order:
        i = node[b]
        d_queries[b] = 0
        along = d_log_end[b]
        for k in range(sizes[i]):
            along += prob[b, k] * d_prob[b, k]
        for k in range(sizes[i] + 1):
            if k < sizes[i]:
                slope = prob[b, k] * (d_prob[b, k] - along)
                if slope == 0:
                    continue
                row = key_row[i, k]
                key, d_key = keys[row], d_keys[row]
            else:
                slope = d_log_end[b] - np.exp(log_end[b]) * along
                key, d_key = end_key, d_end_key
            for h in range(width):
                mixed = _tanh(key[h] + queries[b, h])
                d_weight[h] += slope * mixed
                inside = slope * weight[h] * (_ONE - mixed * mixed)
                d_key[h] += inside
                d_queries[b, h] += inside
