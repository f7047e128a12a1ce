"""Copies between device and host, all in one place.

Networks work on any device; compiled kernels, files and logs need arrays and numbers on the host.
Every such copy goes through here, so that none goes unnoticed: on a GPU each one waits for all
earlier work.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

Moved = TypeVar("Moved", bound="Movable")


def as_device(device: str | torch.device) -> torch.device:
    """The torch device, checked to be available."""
    try:
        place = torch.device(device)
        torch.zeros(1, device=place).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        raise ValueError(f"device must be available to torch here; got {device!r}.") from None
    return place


_FEW_ITEMS = 2_000
"""Up to this many items a second thread gains nothing, and burns processor time while it waits."""

_before: ContextVar[int | None] = ContextVar("_before", default=None)


@contextmanager
def one_thread(items: int = 0) -> Iterator[None]:
    """Limits torch to one thread if tensors are small: several would wait for each other."""
    before = torch.get_num_threads()
    outside = _before.set(available_threads())
    torch.set_num_threads(1 if items <= _FEW_ITEMS else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _before.reset(outside)


def available_threads() -> int:
    """As many threads as torch may use, or could before `one_thread`: for work without torch."""
    return _before.get() or torch.get_num_threads()


def to_host(values: Tensor) -> np.ndarray:
    """A tensor as an array, sharing memory on the CPU if NumPy supports its type."""
    dense = values.detach().to_dense().cpu()
    return (dense.float() if dense.dtype == torch.bfloat16 else dense).numpy()


def host_copy(nested: Any) -> Any:
    """Nested dicts, lists and tuples with their tensors on the CPU, such as a state to save."""
    if isinstance(nested, Tensor):
        return nested.detach().cpu()
    if isinstance(nested, dict):
        return {name: host_copy(one) for name, one in nested.items()}
    if isinstance(nested, list | tuple):
        return type(nested)(host_copy(one) for one in nested)
    return nested


class Movable:
    """A dataclass that can move to another device."""

    def to(self: Moved, device: torch.device | str) -> Moved:
        """The same with its tensors, and any other members that can move, on another device."""
        thing: Any = self
        parts = {one.name: getattr(thing, one.name) for one in fields(thing)}
        there = {name: part.to(device) for name, part in parts.items() if hasattr(part, "to")}
        moved: Moved = replace(thing, **there)
        return moved


class _Move(torch.autograd.Function):
    """A copy on another device whose gradient moves back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, device: torch.device) -> Tensor:
        ctx.home = values.device
        return values.to(device)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].to(ctx.home), None


def move(values: Tensor, device: torch.device | str) -> Tensor:
    """A differentiable copy on another device, such as the CPU for a compiled kernel."""
    there = torch.device(device)
    return values if values.device == there else cast(Tensor, _Move.apply(values, there))


def from_host(array: np.ndarray, like: Tensor) -> Tensor:
    """An array as a tensor on the device of `like`, with its own dtype."""
    return torch.from_numpy(array).to(like.device)


def number(value: Tensor) -> float:
    """The value of a one-element tensor, such as a mean for the log."""
    return float(value.item())


def count(value: Tensor) -> int:
    """The value of a one-element integer tensor, such as a total that a shape depends on."""
    return int(value.item())


def numbers(values: Tensor) -> list[Any]:
    """The values of a tensor as a list, such as sizes to split by."""
    listed: list[Any] = values.tolist()
    return listed


def keep_freed_memory() -> None:
    """Asks glibc to keep the memory of freed tensors: returning it costs a fifth of a step.

    The setting is process-wide, so programs call this (training, the command line), not functions.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
