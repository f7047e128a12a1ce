"""Small tensors get one thread, large ones as many as torch may use."""

from __future__ import annotations

import pytest
import torch

from diconet.core.host import available_threads, one_thread

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.mark.parametrize(("items", "threads"), [(0, 1), (20, 1), (100_000, 2)])
def test_small_tensors_get_one_thread(items: int, threads: int) -> None:
    with one_thread(items):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_comes_back_after_an_error() -> None:
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 2


def test_other_work_keeps_the_threads_that_torch_had() -> None:
    with one_thread(), one_thread():
        assert (torch.get_num_threads(), available_threads()) == (1, 2)
    torch.set_num_threads(1)
    assert available_threads() == 1
