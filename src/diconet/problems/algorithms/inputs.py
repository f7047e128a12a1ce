"""Inputs of several kinds, in double precision: what an algorithm is tried on."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.core.sets import SetBatch

Kind = Literal["uniform", "normal", "clustered", "nearly sorted", "duplicates", "heavy tails"]

TEST_KINDS: tuple[Kind, ...] = (
    "uniform",
    "clustered",
    "nearly sorted",
    "duplicates",
    "heavy tails",
)
"""What answers are measured on, in turn."""

TRAIN_KINDS: tuple[Kind, ...] = ("uniform", "normal")
"""What networks learn from: neither heaps nor order, ties or outliers."""


def drawn(
    kinds: tuple[Kind, ...], num_sets: int, set_size: int, features: int, rng: torch.Generator
) -> SetBatch:
    """Sets of the kinds in turn, each moved and scaled at random."""
    sets = [_one(kinds[n % len(kinds)], set_size, features, rng) for n in range(num_sets)]
    moved = [_moved(items, kinds[n % len(kinds)], rng) for n, items in enumerate(sets)]
    return SetBatch.of(moved)


def check_kinds(kinds: tuple[str, ...]) -> None:
    """All of them must be known, and there must be one."""
    unknown = [kind for kind in kinds if kind not in get_args(Kind)]
    if unknown or not kinds:
        raise ValueError(f"kinds must be some of {', '.join(get_args(Kind))}; got {kinds}.")


def _one(
    kind: Kind, size: int, features: int, rng: torch.Generator
) -> Float[Tensor, "items features"]:
    shape = (size, features)
    if kind == "normal":
        return torch.randn(shape, generator=rng, dtype=torch.float64)
    even = torch.rand(shape, generator=rng, dtype=torch.float64)
    if kind == "clustered":
        heaps = max(2, math.isqrt(size) // 4)
        centre = torch.rand((heaps, features), generator=rng, dtype=torch.float64)
        which = torch.randint(heaps, (size,), generator=rng)
        width = 10.0 ** -torch.randint(2, 5, (heaps, 1), generator=rng).double()
        spread = torch.randn(shape, generator=rng, dtype=torch.float64)
        return centre[which] + width[which] * spread
    if kind == "nearly sorted":
        place = torch.arange(size, dtype=torch.float64)[:, None] / size
        return place + 2 * (even - 0.5) / math.sqrt(size)
    if kind == "duplicates":
        return torch.floor(even * max(2, size // 8))
    if kind == "heavy tails":
        return torch.tan(math.pi * (even - 0.5)).clamp(-1e6, 1e6)
    return even


def _moved(
    items: Float[Tensor, "items features"], kind: Kind, rng: torch.Generator
) -> Float[Tensor, "items features"]:
    """Somewhere else and of another size; equal numbers stay equal."""
    shift = torch.randn((1, items.shape[1]), generator=rng, dtype=torch.float64)
    scale = 0.5 + 1.5 * torch.rand(1, generator=rng, dtype=torch.float64)
    return items * scale + shift
