"""Where a pointer wants to go next, and the bearings of the places it may go to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diconet.segments import offsets_of, owner_of


class Course(nn.Module):
    """A direction read off the decoder's state, as long as it is binding.

    The length is learned as its logarithm: telling two neighbours apart that lie in nearly the same
    direction takes a factor of hundreds, which a bounded state would be long to reach. It is
    bounded, because beyond that a choice gets no surer, and a wrong one no gradient.
    """

    log_limit = 6.0

    def __init__(self, width: int, num_features: int) -> None:
        super().__init__()
        self.signal = nn.Linear(width, num_features + 1)

    def forward(self, states: Float[Tensor, "steps width"]) -> Float[Tensor, "steps features"]:
        signal = self.signal(states)
        log_length = self.log_limit * torch.tanh(signal[:, -1:] / self.log_limit)
        return nn.functional.normalize(signal[:, :-1], dim=1) * log_length.exp()


@dataclass(frozen=True, eq=False)
class Way:
    """How far each answer has come: where its last item lies, and its first, once it has begun.

    `arrival` is the direction in which the last item was reached, zero at the first.
    """

    here: Float[Tensor, "steps features"]
    first: Float[Tensor, "steps features"]
    arrival: Float[Tensor, "steps features"]
    begun: Bool[Tensor, "steps"]

    @classmethod
    def before(cls, like: Float[Tensor, "sets features"]) -> Way:
        """Answers that have not begun, one for each row."""
        nowhere = torch.zeros_like(like)
        return cls(nowhere, nowhere, nowhere, nowhere[:, 0] > 0)

    @classmethod
    def along(cls, points: Float[Tensor, "items features"], sizes: Int[Tensor, "sets"]) -> Way:
        """Answers already known, at every step: before the first item, and after each."""
        start = offsets_of(sizes + 1)[:-1]
        begun = points.new_ones(len(points) + len(sizes), dtype=torch.bool)
        begun[start] = False
        here = points.new_zeros(len(begun), points.shape[1])
        here[begun] = points
        first = here[(start + 1).clamp(max=len(here) - 1)][owner_of(sizes + 1)]
        arrival = nn.functional.normalize(here - here.roll(1, 0), dim=1)
        second = begun & ~begun.roll(1)
        return cls(
            here,
            torch.where(begun[:, None], first, 0),
            torch.where((begun & ~second)[:, None], arrival, 0),
            begun,
        )

    def take(self, kept: Bool[Tensor, "steps"]) -> Way:
        """Some of the answers."""
        return Way(self.here[kept], self.first[kept], self.arrival[kept], self.begun[kept])

    def on_to(self, there: Float[Tensor, "steps features"]) -> Way:
        """Every answer one item further."""
        begun = self.begun[:, None]
        arrival = nn.functional.normalize(there - self.here, dim=1)
        return Way(
            there,
            torch.where(begun, self.first, there),
            torch.where(begun, arrival, 0),
            torch.ones_like(self.begun),
        )

    def bearing(
        self, there: Float[Tensor, "pairs features"], step: Int[Tensor, "pairs"]
    ) -> Float[Tensor, "pairs features"]:
        """The direction of places from the last item; at first, seen from the mean, the places.

        So the item farthest along a course comes first, and then the one least to its side.
        """
        way = there - self.here[step]
        return torch.where(self.begun[step, None], nn.functional.normalize(way, dim=1), way)

    def homeward(self, course: Float[Tensor, "steps features"]) -> Float[Tensor, "steps"]:
        """How far a course leads to the first item, where an answer that goes around ends.

        From the first item itself it is all the way around: nothing lies less ahead.
        """
        ahead = (course * nn.functional.normalize(self.first - self.here, dim=1)).sum(1)
        at_home = (self.first == self.here).all(1)
        return torch.where(at_home, -course.norm(dim=1), ahead)
