"""Muon: steps of the same length in every direction of a matrix.

Where Adam gives every entry of a gradient its own length, Muon (Jordan et al., 2024) gives one to
every singular value. PyTorch's own computes in bfloat16, for which many CPUs have no use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

_SMALLEST = 16
"""Matrices with fewer rows or columns are too thin for their directions to mean much."""

_ITERATIONS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Jordan's polynomial: brings what lies between 0 and 1 near 1, in few iterations."""

_ADAMS_LENGTH = 0.2
"""Root mean square of Adam's usual steps (Liu et al., 2025), so that its rates fit here as well."""


class Muon(torch.optim.Optimizer):
    """Muon for matrices, Adam for vectors and thin matrices, with one rate for both.

    What stacks several square matrices, such as the gates of a GRU, is taken apart.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-2,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step along the gradients that are there, or that the `closure` makes."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.ndim == 2 and min(parameter.shape) >= _SMALLEST:
                    self._muon(parameter, group)
                else:
                    self._adam(parameter, group)
        return loss

    def _muon(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        state, grad = self.state[weight], weight.grad
        assert grad is not None
        mean = state.setdefault("mean", torch.zeros_like(weight))
        mean.lerp_(grad, 1 - group["momentum"])
        ahead = grad.lerp(mean, group["momentum"])
        rows, columns = weight.shape
        squares = ahead.reshape(-1, columns, columns) if rows % columns == 0 else ahead[None]
        length = _ADAMS_LENGTH * max(squares.shape[1:]) ** 0.5
        weight.add_(orthogonal(squares).reshape(weight.shape), alpha=-group["lr"] * length)

    def _adam(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        state, grad = self.state[weight], weight.grad
        assert grad is not None
        first, second = group["betas"]
        state["step"] = state.get("step", 0) + 1
        mean = state.setdefault("mean", torch.zeros_like(weight))
        square = state.setdefault("square", torch.zeros_like(weight))
        mean.lerp_(grad, 1 - first)
        square.lerp_(grad.square(), 1 - second)
        size = (square / (1 - second ** state["step"])).sqrt_().add_(group["eps"])
        weight.addcdiv_(mean, size, value=-group["lr"] / (1 - first ** state["step"]))


def orthogonal(matrices: Float[Tensor, "matrices rows columns"]) -> Tensor:
    """Each matrix with its singular values brought near 1 (0.7 to 1.2), by Newton and Schulz."""
    a, b, c = _QUINTIC
    wide = matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        outer = x @ x.mT
        x = a * x + (b * outer + c * outer @ outer) @ x
    return x.mT if wide is not matrices else x
