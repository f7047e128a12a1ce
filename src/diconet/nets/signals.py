"""Inputs of a general network besides item features: ranks, degrees, noise."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.noise import mix, uniform
from diconet.core.segments import segment_sort, segment_sum
from diconet.core.sets import SetBatch

_SMOOTHINGS = 12
"""How often random numbers are averaged over neighbours to tell the ends of a graph apart."""


def ranks(sets: SetBatch) -> Float[Tensor, "items features"]:
    """Each item's rank within its set, feature by feature, from -1/2 to 1/2."""
    ranks = torch.empty_like(sets.items)
    level = ((sets.position + 0.5) / sets.sizes[sets.owner] - 0.5).to(ranks.dtype)
    for feature in range(sets.num_features):
        ranks[segment_sort(sets.items[:, feature], sets.owner), feature] = level
    return ranks


def degrees(sets: SetBatch) -> Float[Tensor, "items 2"]:
    """The number of edges that leave and reach each item, on a log scale."""
    if sets.relations is None:
        return sets.items.new_zeros(sets.num_items, 2)
    counts = [torch.bincount(end, minlength=sets.num_items) for end in sets.edges()]
    return torch.stack(counts, 1).to(sets.items.dtype).add(1).log() / 2


def one_seed_each(sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Int[Tensor, "sets"]:
    """The first seed of each set or, without seeds, one made from its size."""
    if seeds is None:
        return mix(sets.sizes, 0)
    return seeds[:: max(1, len(seeds) // max(1, len(sets)))]


def noise_channels(
    sets: SetBatch, seeds: Int[Tensor, "sets"], channels: int
) -> Float[Tensor, "items channels"]:
    """Random channels that spread like standardised features; on a graph also as many smoothed."""
    per_item = mix(mix(seeds, 3)[sets.owner], sets.position)
    drawn = [uniform(mix(per_item, channel)) for channel in range(channels)]
    white = (torch.stack(drawn, 1) - 0.5) * 12**0.5
    if sets.relations is None:
        return white
    return torch.cat([white, smoothed(sets, seeds, channels).to(white.dtype)], 1)


def smoothed(sets: SetBatch, seeds: Int[Tensor, "sets"], ways: int) -> Float[Tensor, "items ways"]:
    """Random numbers, averaged over neighbours until only the slowest patterns are left.

    Half of them move towards their neighbours, which divides a graph where it is sparse; the others
    move away, which divides it where it is dense.
    """
    source, target = sets.edges()
    # edges sorted by target read memory in order: four times as fast
    order = torch.argsort(target, stable=True)
    source, target = source[order], target[order]
    degree = torch.bincount(target, minlength=sets.num_items).clamp(min=1).double()
    x = normals(mix(mix(seeds, 6)[sets.owner], sets.position), ways).double()
    sign = torch.ones(ways, dtype=x.dtype, device=x.device)
    sign[ways // 2 :] = -1
    for _ in range(_SMOOTHINGS):
        near = segment_sum(x[source], target, sets.num_items) / degree[:, None]
        x = x + sign * near
        x = x - (sets.sum(x * degree[:, None]) / sets.sum(degree)[:, None])[sets.owner]
        x = x / (sets.mean(x.square()).sqrt() + 1e-12)[sets.owner]
    return x


def normals(seeds: Int[Tensor, "rows"], many: int) -> Float[Tensor, "rows many"]:
    """Standard normal numbers (Box and Muller)."""
    if many == 0:
        return torch.zeros(len(seeds), 0, device=seeds.device)
    each = [mix(seeds, number) for number in range(many)]
    length = [(-2 * uniform(mix(one, 1)).log()).sqrt() for one in each]
    turn = [torch.cos(2 * torch.pi * uniform(mix(one, 2))) for one in each]
    return torch.stack([a * b for a, b in zip(length, turn, strict=True)], 1)
