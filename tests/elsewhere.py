"""A stand-in for a device that this machine does not have."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

MAKERS = (torch.arange, torch.empty, torch.eye, torch.full, torch.ones, torch.tensor, torch.zeros)


class Elsewhere(TorchFunctionMode):
    """Complains of what fails where tensors do not lie on the CPU.

    That is tensors made without a device, and arrays of tensors that nobody brought back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._back: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in MAKERS:
            assert "device" in kwargs, f"{func.__name__} must be told a device"
        if func is torch.Tensor.numpy:
            assert any(args[0] is one for one in self._back), "numpy() must come after cpu()"
        made = func(*args, **kwargs)
        if func is torch.Tensor.cpu:
            self._back.append(made)
        return made
