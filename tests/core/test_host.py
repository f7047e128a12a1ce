"""Small tensors get one thread, large ones as many as torch may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from diconet.core.host import one_thread


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("items", "threads"), [(0, 1), (20, 1), (100_000, 2)])
def test_small_tensors_get_one_thread(items: int, threads: int) -> None:
    with one_thread(items):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_comes_back_after_an_error() -> None:
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 2
