"""Learned forms: sums of products with coefficients that become small whole numbers when solving.

A network that is right at ten items and wrong at a million mostly errs on close calls. A form has
none: while it learns, its coefficients are any numbers; when it solves, they are rounded to halves
of the largest of them, so that "first less second" is exactly that, at every scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from diconet.core.host import to_host

STEP = 0.5
"""Coefficients are rounded to multiples of this, in units of the largest of a form."""


class Forms(nn.Module):
    """Forms in `num_inputs` numbers: sums over a constant, the numbers, and products of two.

    With `degrees`, over some of these three only.

    In training mode the coefficients are as learned; in evaluation mode they are in units of the
    largest of their form, rounded to multiples of a half.
    """

    pairs: Tensor

    def __init__(
        self, num_inputs: int, num_forms: int = 1, degrees: Sequence[int] = (0, 1, 2)
    ) -> None:
        super().__init__()
        if not degrees or not set(degrees) <= {0, 1, 2}:
            raise ValueError(f"degrees must be some of 0, 1, 2; got {degrees}.")
        self.config = {
            "num_inputs": num_inputs,
            "num_forms": num_forms,
            "degrees": list(degrees),
        }
        products = combinations_with_replacement(range(num_inputs + 1), 2)  # 0 stands for 1
        pairs = [pair for pair in products if sum(place > 0 for place in pair) in degrees]
        self.register_buffer("pairs", torch.tensor(pairs), persistent=False)
        self.weight = nn.Parameter(torch.randn(num_forms, len(pairs), dtype=torch.float64) / 2)

    @property
    def coefficients(self) -> Float[Tensor, "forms terms"]:
        """The coefficients in force: none above 1 in size while learning; then in whole halves."""
        largest = self.weight.abs().amax(1, keepdim=True)
        if self.training:
            return self.weight / largest.clamp(min=1)
        return torch.round(self.weight / largest.clamp(min=1e-30) / STEP) * STEP

    def forward(self, inputs: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows forms"]:
        inputs = inputs.to(self.weight.dtype)
        with_one = torch.cat([torch.ones_like(inputs[:, :1]), inputs], 1)
        weight, pairs = self.coefficients, self.pairs
        if not self.training:  # what counts nothing must not overflow either
            some = (weight != 0).any(0)
            weight, pairs = weight[:, some], pairs[some]
        return (with_one[:, pairs[:, 0]] * with_one[:, pairs[:, 1]]) @ weight.T

    def terms(self) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients that are not 0, (forms, terms), and the pairs of inputs they belong to.

        For compiled kernels, on the host.
        """
        weight = self.coefficients.detach()
        some = (weight != 0).any(0)
        return to_host(weight[:, some].contiguous()), to_host(self.pairs[some].contiguous())

    def in_words(self, names: Sequence[str]) -> list[str]:
        """Each form as one would write it down, with these names for its inputs."""
        weight, pairs = self.terms()
        products = [
            " ".join(names[place - 1] for place in pair if place) for pair in pairs.tolist()
        ]
        return [
            " ".join(f"{value:+g} {name}".rstrip() for value, name in terms if value) or "0"
            for row in weight.tolist()
            for terms in [list(zip(row, products, strict=True))]
        ]
