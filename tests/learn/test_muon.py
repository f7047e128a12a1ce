"""Muon against the singular value decomposition, PyTorch's Adam, and matrices taken one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diconet.learn.muon import Muon, orthogonal


def _steps(optimiser: torch.optim.Optimizer, weight: nn.Parameter, num: int = 4) -> torch.Tensor:
    """Applies the same gradients, whatever the optimiser."""
    rng = torch.Generator().manual_seed(1)
    for _ in range(num):
        weight.grad = torch.randn(weight.shape, generator=rng)
        optimiser.step()
    return weight.detach()


@pytest.mark.parametrize("shape", [(32, 32), (20, 64), (64, 20)])
def test_orthogonal_keeps_directions_and_equalises_lengths(shape: tuple[int, int]) -> None:
    """The same singular vectors, singular values near 1, whatever the scale of the matrix."""
    noise = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    u, _, v = torch.linalg.svd(noise, full_matrices=False)
    found = orthogonal(1e-3 * u @ torch.diag(torch.logspace(-1, 0, min(shape))) @ v)
    turned = u.mT @ found @ v.mT
    lengths = turned.diagonal(dim1=1, dim2=2)
    assert lengths.min() > 0.6
    assert lengths.max() < 1.3
    assert (turned - torch.diag_embed(lengths)).abs().max() < 1e-4


def test_a_zero_matrix_stays_zero() -> None:
    assert orthogonal(torch.zeros(1, 16, 16)).eq(0).all()


@pytest.mark.parametrize("shape", [(7,), (1, 40), (40, 2)])
def test_vectors_and_thin_matrices_follow_adam(shape: tuple[int, ...]) -> None:
    ours, theirs = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.ones(shape))
    found = _steps(Muon([ours], lr=0.01), ours)
    torch.testing.assert_close(found, _steps(torch.optim.Adam([theirs], lr=0.01), theirs))


def test_stacked_gates_count_as_several_matrices() -> None:
    """A GRU's three gates in one matrix move as they would alone, one loud and one quiet."""
    stacked = nn.Parameter(torch.zeros(60, 20))
    alone = [nn.Parameter(torch.zeros(20, 20)) for _ in range(3)]
    together, apart = Muon([stacked], lr=0.01), Muon(alone, lr=0.01)
    rng = torch.Generator().manual_seed(2)
    for _ in range(3):
        stacked.grad = torch.randn(60, 20, generator=rng) * torch.logspace(-3, 3, 60)[:, None]
        for weight, grad in zip(alone, stacked.grad.split(20), strict=True):
            weight.grad = grad.clone()
        together.step()
        apart.step()
    torch.testing.assert_close(stacked.detach(), torch.cat(alone).detach())


def test_a_step_is_as_long_as_one_of_adams() -> None:
    """A fifth of the rate per entry, in the root mean square, whatever the shape."""
    for shape in [(64, 64), (64, 128), (192, 64), (100, 64)]:
        weight = nn.Parameter(torch.zeros(shape))
        moved = _steps(Muon([weight], lr=0.01), weight, num=1)
        assert 0.7 < moved.square().mean().sqrt().item() / 0.002 < 1.2, shape
