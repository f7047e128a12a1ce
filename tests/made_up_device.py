"""A device that no machine has, to see that nothing mixes it with the CPU or copies unseen.

Tensors "there" report the device "lazy" and wrap an ordinary tensor that does the work. Inside the
mode, code runs as it would on a GPU, but complains louder:

- an operation on tensors of both devices fails (a single number from the CPU may take part);
- a copy back to the CPU fails, unless `diconet.core.host` makes it, and so does an array;
- a tensor made without saying where fails;
- with `read_numbers=False`, reading a single number outside `diconet.core.host` fails, too.

    with MadeUpDevice() as device:
        train(model, task, config, device=device, quiet=True)

What other threads do is not seen: batches are made in one, on the CPU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map

THERE = torch.device("lazy", 0)
"""A kind of device that torch knows by name and never runs on; backward works in this thread."""

_TORCH = str(Path(torch.__file__).parent)
_PLUMBING = (__file__, f"{_TORCH}/_compile", f"{_TORCH}/_dynamo", f"{_TORCH}/overrides")
_HOST = str(Path("diconet", "core", "host.py"))
_aten = torch.ops.aten

_MAKERS = {
    *(torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.rand),
    *(torch.randint, torch.randn, torch.randperm, torch.tensor, torch.zeros),
}
_ARRAYS = {Tensor.numpy, Tensor.__array__}
_FROM_DATA = {torch.tensor, torch.as_tensor}
_MOVES = {_aten._to_copy, _aten.to}  # in inference mode, the second is not taken apart
_READS = {_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default}


class DeviceError(AssertionError):
    """What would fail, or copy unseen, where tensors do not lie on the CPU."""


class Elsewhere(torch.Tensor):
    """A tensor on the made-up device."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> Elsewhere:
        with torch.inference_mode(False):  # views of weights need tensors with a version
            made = torch.Tensor._make_wrapper_subclass(
                cls,
                inner.shape,
                strides=inner.stride(),
                storage_offset=inner.storage_offset(),
                dtype=inner.dtype,
                device=THERE,
            )
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Elsewhere({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, lenient=True)


class MadeUpDevice:
    """Inside it there is the made-up device, and its rules hold."""

    def __init__(self, *, read_numbers: bool = True) -> None:
        self._modes = (_Calls(read_numbers), _Operations(read_numbers))

    def __enter__(self) -> torch.device:
        for mode in self._modes:
            mode.__enter__()
        return THERE

    def __exit__(self, *what: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*what)


class _Calls(TorchFunctionMode):
    """Sees calls as they are written, so also what they do not say."""

    def __init__(self, read_numbers: bool) -> None:
        super().__init__()
        self._lenient = read_numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _MAKERS and not (kwargs.get("device") or kwargs.get("generator")):
            frame = _caller(sys._getframe(1))
            if not _is_of_torch(frame) and not _builds_module(frame):
                raise DeviceError(f"torch.{func.__name__} must say a device; {_place(frame)}")
        if func is Tensor.tolist and isinstance(args[0], Elsewhere):
            _check_read(self._lenient)
            return args[0].inner.tolist()
        if func in _ARRAYS and isinstance(args[0], Elsewhere):
            raise DeviceError(f"an array must come from core/host.py; {_place(_blamed())}")
        if func is Tensor.new_tensor and isinstance(args[0], Elsewhere):
            func, kwargs = torch.tensor, {"dtype": args[0].dtype, "device": THERE} | kwargs
            args = args[1:]
        is_data = func in _FROM_DATA and not isinstance(args[0], Tensor)
        if is_data and torch.device(kwargs.get("device") or "cpu") == THERE:
            # torch fills these in before any mode sees them
            return func(*args, **kwargs | {"device": "cpu"}).to(THERE)
        return func(*args, **kwargs)


class _Operations(TorchDispatchMode):
    """Sees every operation that is carried out, on tensors of either device."""

    def __init__(self, read_numbers: bool) -> None:
        super().__init__()
        self._lenient = read_numbers

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, self._lenient)


def _run(func: Any, args: Any, kwargs: dict[str, Any], lenient: bool) -> Any:
    """Carries out an operation by the rules of the device."""
    tensors = [one for one in _flat((args, kwargs)) if isinstance(one, Tensor)]
    there = [one for one in tensors if isinstance(one, Elsewhere)]
    asked = kwargs.get("device") or next(filter(_is_device, _flat(args)), None)
    place = None if asked is None else torch.device(asked)
    if not there and (place is None or place.type != THERE.type):
        return func(*args, **kwargs)
    if there:
        _check(func, tensors, place, lenient)
    inner_kwargs = tree_map(_unwrapped, kwargs)
    if kwargs.get("device") is not None:
        inner_kwargs["device"] = torch.device("cpu")
    inner_args = [torch.device("cpu") if _is_device(one) else one for one in args]
    made = func(*tree_map(_unwrapped, inner_args), **inner_kwargs)
    if place is not None and place.type == "cpu":
        return made.clone() if there and made is there[0].inner else made
    if not there:
        # a copy, even where the tensor that does the work could be the same
        return _wrapped(made.clone() if any(made is one for one in tensors) else made)
    return return_and_correct_aliasing(func, args, kwargs, tree_map(_wrapped, made))


def _check(func: Any, tensors: list[Tensor], place: torch.device | None, lenient: bool) -> None:
    here = [one for one in tensors if not isinstance(one, Elsewhere)]
    restores = func is _aten.copy_.default and _is_of_torch(_caller(sys._getframe(1)))
    if not restores and any(one.dim() > 0 or func is _aten.copy_.default for one in here):
        raise DeviceError(f"{func} must not mix devices; {_place(_blamed())}")
    moves = getattr(func, "overloadpacket", None) in _MOVES
    if moves and place == torch.device("cpu") and not _in_host():
        raise DeviceError(f"a copy to the CPU must go through core/host.py; {_place(_blamed())}")
    if func in _READS:
        _check_read(lenient)


def _check_read(lenient: bool) -> None:
    if not lenient and not _in_host() and not _is_of_torch(_caller(sys._getframe(1))):
        raise DeviceError(f"numbers must be read through core/host.py; {_place(_blamed())}")


def _wrapped(one: Any) -> Any:
    is_plain = isinstance(one, Tensor) and not isinstance(one, Elsewhere)
    return Elsewhere(one) if is_plain else one


def _is_device(one: Any) -> bool:
    return isinstance(one, torch.device)


def _unwrapped(one: Any) -> Any:
    return one.inner if isinstance(one, Elsewhere) else one


def _flat(nested: Any) -> list[Any]:
    if isinstance(nested, list | tuple):
        return [one for part in nested for one in _flat(part)]
    if isinstance(nested, dict):
        return _flat(list(nested.values()))
    return [nested]


def _caller(frame: FrameType | None) -> FrameType:
    """The frame that called torch, past this file and how torch calls a mode."""
    while frame is not None and frame.f_code.co_filename.startswith(_PLUMBING):
        frame = frame.f_back
    assert frame is not None
    return frame


def _blamed() -> FrameType:
    """The nearest frame that is neither of this file nor of torch."""
    frame = _caller(sys._getframe(1))
    while _is_of_torch(frame) and frame.f_back is not None:
        frame = _caller(frame.f_back)
    return frame


def _is_of_torch(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_TORCH)


def _builds_module(frame: FrameType | None) -> bool:
    """Whether a module is being built, which may be moved as a whole afterwards."""
    while frame is not None:
        if frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), nn.Module):
            return True
        frame = frame.f_back
    return False


def _in_host() -> bool:
    """Whether the one module that may copies."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(_HOST):
            return True
        frame = frame.f_back
    return False


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
