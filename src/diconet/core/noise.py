"""Random draws that belong to an example, not to its process or batch.

Every set carries one 64-bit seed; each draw is a hash of that seed and of what it is drawn for.
So an example gets the same tree alone or in a batch, on one machine or on four, and a run resumed
at step t draws what the uninterrupted run would, with no generator state to keep.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed integer
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Logical (not arithmetic) shift of signed 64-bit integers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _wrapped(number: int) -> int:
    """A whole number wrapped to 64 signed bits."""
    return (number + 2**63) % 2**64 - 2**63


def mix(seeds: Int[Tensor, "*shape"], salt: int | Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """New seeds from old ones and a salt: the finaliser of SplitMix64 (Steele et al., 2014)."""
    step = (salt + 1) * _GOLDEN
    x = seeds + (_wrapped(step) if isinstance(step, int) else step)
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def uniform(seeds: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """One number in the open interval (0, 1) for every seed."""
    return (_shift_right(seeds, 41).to(torch.float32) + 0.5) * 2.0**-23


def gumbel(seeds: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """One standard Gumbel number per seed: add it to logits and take the largest to sample."""
    return -torch.log(-torch.log(uniform(seeds)))


def gumbels(seeds: Int[Tensor, "rows"], many: int) -> Float[Tensor, "rows many"]:
    """Several standard Gumbel numbers per seed."""
    each = seeds[:, None].expand(-1, many)
    return gumbel(mix(each, torch.arange(many, device=seeds.device).expand_as(each)))


def seeds_from(generator: torch.Generator, num: int) -> Int[Tensor, "num"]:
    """Fresh seeds for `num` sets."""
    return torch.randint(-(2**63), 2**63 - 1, (num,), generator=generator, device="cpu")


def step_generator(seed: int, step: int) -> torch.Generator:
    """The generator of one training step, a pure function of the run's seed and the step."""
    state = mix(torch.tensor(seed, device="cpu"), step)
    return torch.Generator().manual_seed(int(state) & (2**63 - 1))


def phase_generator(phase: str, *numbers: int) -> torch.Generator:
    """The generator of a phase other than training, such as "test", and of its purpose.

    The phase is part of the hash, so no seed of a training run leads to the same draws.
    """
    code = int.from_bytes(phase.encode()[:7].ljust(7, b"\0"), "big")
    state = torch.tensor(code, device="cpu")
    for number in numbers:
        state = mix(state, number)
    return torch.Generator().manual_seed(int(mix(state, len(numbers))) & (2**63 - 1))
