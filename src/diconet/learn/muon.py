"""Muon: steps of the same length in every direction of a matrix (Jordan et al., 2024).

Adam scales every entry of a gradient, Muon every singular value. The recurrent networks of the hull
rows learn several times faster with it. PyTorch's own runs in bfloat16, which many CPUs lack.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

_SMALLEST = 16
"""Matrices with fewer rows or columns follow Adam: they have too few directions."""

_MOMENTUM = 0.95
_BETAS = (0.9, 0.999)
_TINY = 1e-8
_ITERATIONS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Jordan's polynomial, which moves singular values between 0 and 1 close to 1 in few iterations."""

_ADAMS_LENGTH = 0.2
"""The root mean square of Adam's usual steps (Liu et al., 2025), so that its rates fit here."""


class Muon(torch.optim.Optimizer):
    """Muon for matrices, Adam for vectors and thin matrices, with one learning rate for both.

    A matrix that stacks several square ones, such as the gates of a GRU, counts as several.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float = 1e-2) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    is_matrix = weight.ndim == 2 and min(weight.shape) >= _SMALLEST
                    how = self._muon if is_matrix else self._adam
                    how(weight, weight.grad, group["lr"])
        return loss

    def _muon(self, weight: nn.Parameter, grad: Tensor, rate: float) -> None:
        mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
        mean.lerp_(grad, 1 - _MOMENTUM)
        ahead = grad.lerp(mean, _MOMENTUM)
        rows, columns = weight.shape
        squares = ahead.reshape(-1, columns, columns) if rows % columns == 0 else ahead[None]
        length = _ADAMS_LENGTH * max(squares.shape[1:]) ** 0.5
        weight.add_(orthogonal(squares).reshape(weight.shape), alpha=-rate * length)

    def _adam(self, weight: nn.Parameter, grad: Tensor, rate: float) -> None:
        state = self.state[weight]
        state["step"] = state.get("step", 0) + 1
        mean = state.setdefault("mean", torch.zeros_like(weight)).lerp_(grad, 1 - _BETAS[0])
        square = state.setdefault("square", torch.zeros_like(weight))
        square.mul_(_BETAS[1]).addcmul_(grad, grad, value=1 - _BETAS[1])
        size = (square / (1 - _BETAS[1] ** state["step"])).sqrt_().add_(_TINY)
        weight.addcdiv_(mean, size, value=-rate / (1 - _BETAS[0] ** state["step"]))


def orthogonal(matrices: Float[Tensor, "matrices rows columns"]) -> Tensor:
    """Each matrix with singular values near 1 (0.7 to 1.2), by Newton and Schulz' iteration."""
    a, b, c = _QUINTIC
    wide = matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        outer = x @ x.mT
        x = a * x + (b * outer + c * outer @ outer) @ x
    return x.mT if wide is not matrices else x
