"""The merge for orders: interleaves two ordered halves by learned keys."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.model import Part
from diconet.core.noise import gumbel, mix, uniform
from diconet.core.segments import index_of, inverse, offsets_of, owner_of, segment_sort
from diconet.core.sets import SetBatch
from diconet.core.tree import Level
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed

_STEEPEST = 10.0
"""Keys within a node are clipped to this distance from their mean, for the random times."""


class OrderMerge(Part):
    """Compares the heads of two ordered halves until one half is used up.

    Every item of a node gets a key from the node's set; of two heads a and b, a goes first with
    probability sigmoid(key b - key a). A leaf's own items are drawn one by one, by a softmax of
    minus their keys over those left. The likelihood of a target is exact: a node's part of the
    target is the only order from which the root can still reach it.
    """

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        self.encoder = SetEncoder(extra=HAND_FEATURES, **encoder)
        self.head = nn.Linear(self.encoder.width, 1)

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        node = handed.sets
        key = self.head(self.encoder(node, handed.seeds, handed.signals(torch.float32))).squeeze(1)
        if target is not None:
            order = handed.in_order_of(target, level)
        else:
            order = segment_sort(_times(handed, key.detach()), node.owner)
        log_prob = node.sum(_order_log_prob(handed, key, order))
        answer = node.select(order, node.sizes)
        return Chosen.by_steps(level, below, answer, log_prob, target)


def _times(handed: Handed, key: Float[Tensor, "items"]) -> Float[Tensor, "items"]:
    """The time of each item: sorting a node's items by it gives the order.

    Two heads race, each with an exponential time of rate exp(-key); the loser keeps its lead, as
    such times are memoryless. So an item's time is the sum of those up to it in its half. Without
    seeds the smaller key goes first: an item waits for the largest key before it in its half.
    """
    node = handed.sets
    half = 2 * node.owner + handed.half
    if handed.seeds is None:
        rank = inverse(torch.argsort(key, stable=True))
        waits = torch.cummax(half * (len(key) + 1) + rank, 0)[0] - half * (len(key) + 1)
        return torch.where(handed.is_leaf > 0, rank, waits).double()
    centred = (key - node.mean(key)[node.owner]).clamp(-_STEEPEST, _STEEPEST).double()
    chance = mix(handed.seeds[node.owner], node.position)
    wait = -torch.log(uniform(chance).double()) * torch.exp(centred)
    total = torch.cumsum(wait, 0)
    sizes = torch.bincount(half, minlength=2 * len(node))
    start = torch.cat([total.new_zeros(1), total])[offsets_of(sizes)[:-1]][half]
    return torch.where(handed.is_leaf > 0, centred - gumbel(chance), total - start)


def _order_log_prob(
    handed: Handed, key: Float[Tensor, "items"], order: Int[Tensor, "items"]
) -> Float[Tensor, "items"]:
    """The log-probability of each choice along an order, item by item."""
    node, leaf = handed.sets, handed.is_leaf[order] > 0
    other, contested = _other_heads(handed, order)
    key = key[order]
    rival = key[other.clamp(max=max(len(key) - 1, 0))]
    log_prob = torch.where(contested & ~leaf, F.logsigmoid(rival - key), 0.0)
    if bool(leaf.any()):
        log_prob = log_prob.index_add(0, index_of(leaf), _softmax_in_turn(node, key, leaf))
    return log_prob


def rivals(
    handed: Handed, order: Int[Tensor, "items"]
) -> tuple[Int[Tensor, "contests"], Int[Tensor, "contests"]]:
    """The winner and the loser of every choice along an order, as rows.

    The loser is the other half's head; at a leaf, the next item of its own.
    """
    other, contested = _other_heads(handed, order)
    here = index_of(contested)
    return order[here], order[other[here]]


def _other_heads(
    handed: Handed, order: Int[Tensor, "items"]
) -> tuple[Int[Tensor, "items"], Tensor]:
    """The position of every item's rival along an order, and whether it has one.

    The head of the other half is the next item of that half in the order.
    """
    half, leaf = handed.half[order], handed.is_leaf[order] > 0
    places = torch.arange(len(order), device=order.device)
    ahead = torch.stack([_next_of(half == side, places) for side in (0, 1)], 1)
    other = ahead.gather(1, (1 - half)[:, None]).squeeze(1)
    other = torch.where(leaf, places + 1, other)
    return other, other < handed.sets.offsets[1:][handed.sets.owner]


def _next_of(mask: Tensor, places: Int[Tensor, "items"]) -> Int[Tensor, "items"]:
    """The first position from each on where the mask is True (the number of positions if none)."""
    found = torch.where(mask, places, len(places))
    return torch.cummin(found.flip(0), 0)[0].flip(0)


def _softmax_in_turn(
    node: SetBatch, key: Float[Tensor, "items"], leaf: Tensor
) -> Float[Tensor, "leaf_items"]:
    """The log-probability of every item among those not yet taken, at leaves."""
    rows = index_of(leaf)
    sizes = torch.bincount(node.owner[rows], minlength=len(node))
    sizes = sizes[sizes > 0]
    owner = owner_of(sizes, len(rows))
    place = torch.arange(len(rows), device=rows.device) - offsets_of(sizes)[:-1][owner]
    padded = key.new_full((len(sizes), int(sizes.max())), -torch.inf)
    padded = padded.index_put((owner, place), -key[rows])
    left = torch.logcumsumexp(padded.flip(1), 1).flip(1)
    return -key[rows] - left[owner, place]
