from __future__ import annotations

import os

import pytest
import torch

# Sums depend on how many threads share them in the last bits, so every test uses one: in the
# processes that it starts, and in fixtures that are made before `_one_thread` runs.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def two_threads(_one_thread: None) -> None:
    """For tests of what threads share; the next test has one again."""
    torch.set_num_threads(2)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(1)
