"""Weights on disk: safetensors with a description of the network, loaded without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import nn

from diconet.core.files import write_whole
from diconet.core.host import host_copy
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth

_packages: set[str] = {"diconet"}
"""Packages whose classes a weights file may name; no others are imported."""


def allow_package(package: str) -> None:
    """Lets weights files name classes of another package, such as a user's own problem."""
    _packages.add(package)


def describe(module: nn.Module) -> dict[str, Any]:
    """The class and constructor arguments that rebuild this module."""
    kind, config = type(module), getattr(module, "config", None)
    if not isinstance(config, Mapping):
        raise ValueError(
            f"{kind.__name__} must have a config, a dict of its constructor's arguments, to be"
            f" saved; got {config!r}."
        )
    arguments = {
        name: describe(value) if isinstance(value, nn.Module) else value
        for name, value in config.items()
    }
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **arguments}


def describe_network(model: DiCoNet) -> dict[str, Any]:
    """A network's description without its weights."""
    return {
        "split": describe(model.split),
        "merge": None if model.merge is None else describe(model.merge),
        "growth": asdict(model.growth),
    }


def build(description: dict[str, Any]) -> nn.Module:
    """The module for a description, with fresh weights."""
    arguments = {
        name: build(value) if isinstance(value, dict) else value
        for name, value in description.items()
        if name != "class"
    }
    return _class_at(description["class"])(**arguments)


def _class_at(path: str) -> type[nn.Module]:
    """The module class at a dotted path, if weights may name its package."""
    home, _, name = path.rpartition(".")
    if home.partition(".")[0] not in _packages:
        raise KeyError(path)
    try:
        kind = getattr(import_module(home), name)
    except ImportError as error:
        raise KeyError(path) from error
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise TypeError(f"{path}, which is not a module")
    return kind


def save(model: DiCoNet, path: str | Path, *, half: bool = True, **notes: str) -> None:
    """Writes a network to `path` atomically, in half precision unless `half` is False.

    A tensor with a value that half precision cannot hold keeps its type. `notes` are texts that
    `diconet.core.files.read_notes` returns.
    """
    path = Path(path)
    state = {
        name: (value.half() if half and _fits_half(value) else value).contiguous()
        for name, value in host_copy(model.state_dict()).items()
    }
    network = json.dumps(describe_network(model))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_bytes(state, metadata={"diconet": network, **notes}))


def _fits_half(value: torch.Tensor) -> bool:
    largest = torch.finfo(torch.float16).max
    return value.is_floating_point() and not bool((value.abs() > largest).any())


def load(path: str | Path, *, into: DiCoNet | None = None) -> DiCoNet:
    """Reads a network, or only its weights `into` one that is already built."""
    notes, state = _contents(path)
    # half precision is for files only
    state = {n: v.float() if v.dtype == torch.float16 else v for n, v in state.items()}
    if "diconet" not in notes:
        raise ValueError(f"model must be a diconet weights file; {path} is not.")
    if into is None:
        into = _network(notes["diconet"], path)
    fit(into, state, f"the weights in {path} do not fit the network")
    return into.eval()


def annotate(path: str | Path, **notes: str) -> None:
    """Adds notes to a weights file, or replaces those of the same name, atomically."""
    known, state = _contents(path)
    write_whole(path, to_bytes(state, metadata={**known, **notes}))


def _contents(path: str | Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """The notes and the tensors of a weights file."""
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"model must be a diconet weights file; {path}: {error}.") from error


def fit(module: nn.Module, state: Mapping[str, Any], complaint: str) -> None:
    """Loads weights into a module; raises a one-line error if they do not fit it."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = shorten(str(error), 240, placeholder=" ...")
        raise ValueError(f"{complaint}: {reason}") from error


def _network(description: str, path: str | Path) -> DiCoNet:
    try:
        network = json.loads(description)
        merge = network["merge"]
        return DiCoNet(
            build(network["split"]),
            None if merge is None else build(merge),
            Growth(**network["growth"]),
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"model must be a diconet weights file; {path}: {error}.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"model must use only modules of this version; {path} has {error}."
        ) from error


def parameters_of(module: nn.Module | None) -> list[torch.nn.Parameter]:
    """The trainable parameters of a module; none if there is no module."""
    return [] if module is None else [p for p in module.parameters() if p.requires_grad]
