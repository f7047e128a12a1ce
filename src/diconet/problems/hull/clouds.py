"""Point clouds of many kinds, to learn hulls from and to test them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diconet.core.sets import SetBatch
from diconet.problems.hull.task import HullTask

Cloud = Callable[[int, int, torch.Generator], Tensor]
"""(sets, points per set, generator) -> coordinates of shape (sets, points, 2), double precision."""


def uniform(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """The unit square."""
    return torch.rand(num_sets, size, 2, generator=rng, dtype=torch.float64)


def gaussian(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """A standard normal cloud."""
    return torch.randn(num_sets, size, 2, generator=rng, dtype=torch.float64)


def circle(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """The unit circle: nearly every point is a corner."""
    angle = 2 * torch.pi * torch.rand(num_sets, size, generator=rng, dtype=torch.float64)
    return torch.stack([angle.cos(), angle.sin()], 2)


def clustered(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """Four tight clusters."""
    centre = uniform(num_sets, 4, rng)
    which = torch.randint(4, (num_sets, size, 1), generator=rng).expand(-1, -1, 2)
    return centre.gather(1, which) + 0.05 * gaussian(num_sets, size, rng)


def stretched(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """A disc stretched a thousandfold in a random direction."""
    radius = uniform(num_sets, size, rng)[..., :1].sqrt()
    disc = radius * circle(num_sets, size, rng)
    turn = circle(num_sets, 1, rng)
    along = disc[..., :1] * turn
    across = 1e-3 * disc[..., 1:] * turn.flip(2) * turn.new_tensor([-1.0, 1.0])
    return along + across


def shifted(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """A unit square at a distance of a million from the origin."""
    return uniform(num_sets, size, rng) + 1e6 * circle(num_sets, 1, rng)


def sides(num_sets: int, size: int, rng: torch.Generator) -> Float[Tensor, "sets points 2"]:
    """Points beside the sides of a triangle, off by 1e-1 to 1e-8, one distance per set.

    Random clouds have few close calls; here nearly every turn is one.
    """
    corner = uniform(num_sets, 3, rng)
    which = torch.randint(3, (num_sets, size, 1), generator=rng).expand(-1, -1, 2)
    start, end = corner.gather(1, which), corner.gather(1, (which + 1) % 3)
    at = torch.rand(num_sets, size, 1, generator=rng, dtype=torch.float64)
    exponent = -1 - 7 * torch.rand(num_sets, 1, 1, generator=rng, dtype=torch.float64)
    return start + at * (end - start) + 10**exponent * gaussian(num_sets, size, rng)


CLOUDS: dict[str, Cloud] = {
    cloud.__name__: cloud
    for cloud in (uniform, gaussian, circle, clustered, stretched, shifted, sides)
}
"""All kinds of clouds by name."""


@dataclass(frozen=True)
class CloudTask(HullTask):
    """Hulls of clouds of several kinds, which alternate from set to set."""

    kinds: tuple[str, ...] = ("uniform", "gaussian", "circle", "sides")

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in CLOUDS]
        if unknown or not self.kinds:
            raise ValueError(f"kinds must be among {', '.join(CLOUDS)}; got {self.kinds}.")

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        """Fresh clouds, in double precision."""
        share = -(-num_sets // len(self.kinds))
        clouds = torch.stack([CLOUDS[kind](share, set_size, rng) for kind in self.kinds], 1)
        items = clouds.flatten(0, 1)[:num_sets].reshape(-1, 2)
        return SetBatch.pack(items, torch.full((num_sets,), set_size, device=rng.device))
