"""Weights on disk: safetensors with a description of the network, loaded without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import nn

from diconet.io.output import write_whole
from diconet.merges import PointerMerge, TripleJudge, TripleMerge
from diconet.merges.edges import EdgeMerge
from diconet.merges.exchange import ExchangeMerge
from diconet.merges.length import LengthMerge
from diconet.merges.neighbour_net import NeighbourNet
from diconet.merges.pack import PackMerge
from diconet.merges.pair_net import PairNet
from diconet.merges.pairs import PairMerge, PairSplit
from diconet.model import DiCoNet
from diconet.splits import Balanced, MedianSplit, RandomSplit, SetSplit
from diconet.splits.across import AcrossSplit
from diconet.splits.aligned import Aligned
from diconet.splits.fill import FillSplit
from diconet.splits.graph import GraphSplit
from diconet.splits.similarity import SimilarityNet
from diconet.splits.softmax import SoftmaxLabels
from diconet.splits.sweep import SweepSplit
from diconet.splits.takeleave import TakeLeave
from diconet.tree import Growth

MODULES: dict[str, type[nn.Module]] = {
    module.__name__: module
    for module in (
        AcrossSplit,
        Aligned,
        Balanced,
        EdgeMerge,
        ExchangeMerge,
        FillSplit,
        GraphSplit,
        LengthMerge,
        MedianSplit,
        NeighbourNet,
        PackMerge,
        PairMerge,
        PairNet,
        PairSplit,
        PointerMerge,
        RandomSplit,
        SetSplit,
        SimilarityNet,
        SoftmaxLabels,
        SweepSplit,
        TakeLeave,
        TripleJudge,
        TripleMerge,
    )
}
"""The modules that a weights file may name; a file with others needs `load(path, into=model)`."""


def describe(module: nn.Module) -> dict[str, Any]:
    """The class and the arguments that make this module again."""
    kind, config = type(module).__name__, getattr(module, "config", None)
    if not isinstance(config, Mapping):
        raise ValueError(
            f"{kind} must have a config, a dict of the arguments that make it again, to be kept on"
            f" disk; got {config!r}."
        )
    arguments = {
        name: describe(value) if isinstance(value, nn.Module) else value
        for name, value in config.items()
    }
    return {"class": kind, **arguments}


def describe_network(model: DiCoNet) -> dict[str, Any]:
    """What makes a network again, but for its weights."""
    return {
        "split": describe(model.split),
        "merge": None if model.merge is None else describe(model.merge),
        "growth": asdict(model.growth),
    }


def build(description: dict[str, Any]) -> nn.Module:
    """The module of a description, with fresh weights."""
    arguments = {
        name: build(value) if isinstance(value, dict) else value
        for name, value in description.items()
        if name != "class"
    }
    return MODULES[description["class"]](**arguments)


def save(model: DiCoNet, path: str | Path, *, half: bool = True, **notes: str) -> None:
    """Writes a network to `path`, in half precision unless told otherwise; all or nothing.

    A tensor with a value that half precision cannot hold stays as it is.
    """
    path = Path(path)
    state = {
        name: (value.half() if half and _fits_half(value) else value).contiguous()
        for name, value in model.state_dict().items()
    }
    network = json.dumps(describe_network(model))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_bytes(state, metadata={"diconet": network, **notes}))


def _fits_half(value: torch.Tensor) -> bool:
    largest = torch.finfo(torch.float16).max
    return value.is_floating_point() and not bool((value.abs() > largest).any())


def load(path: str | Path, *, into: DiCoNet | None = None) -> DiCoNet:
    """Reads a network, or only its weights `into` one that is already built."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            state = {name: _widened(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"model must be a diconet weights file; {path}: {error}.") from error
    if "diconet" not in notes:
        raise ValueError(f"model must be a diconet weights file; {path} is of another program.")
    if into is None:
        into = _network(notes["diconet"], path)
    fit(into, state, f"the weights in {path} do not fit the network")
    return into.eval()


def fit(module: nn.Module, state: Mapping[str, Any], complaint: str) -> None:
    """Puts weights in place; where they are not this module's, complains in one line."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = shorten(str(error), 240, placeholder=" ...")
        raise ValueError(f"{complaint}: {reason}") from error


def start_from(model: DiCoNet, weights: str, setting: str) -> None:
    """Begins with all the weights that a setting names, shipped ones or a file's."""
    complaint = f"{setting} must name weights of this network; {weights} does not fit"
    fit(model, find(weights, setting).state_dict(), complaint)


def _widened(value: torch.Tensor) -> torch.Tensor:
    """Half precision is for files only."""
    return value.float() if value.dtype == torch.float16 else value


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
            f"model must name modules this version knows; {path} has {error}."
        ) from error


def shipped(name: str, setting: str = "model") -> DiCoNet:
    """A network whose weights come with the package, such as "hull_diconet_reg".

    A complaint names the `setting` that asked for it.
    """
    resource = files("diconet") / "weights" / f"{name}.safetensors"
    if not resource.is_file():
        names = ", ".join(sorted(shipped_names()))
        raise ValueError(f"{setting} must be a file or one of {names}; got {name!r}.")
    with as_file(resource) as path:
        return load(path)


def find(model: str | Path, setting: str = "model") -> DiCoNet:
    """Shipped weights by name, or those of a file.

    A name wins over a file that is called the same, which a `Path` or "./" in front still names.
    """
    named = isinstance(model, str) and model in shipped_names()
    return load(model) if not named and Path(model).exists() else shipped(str(model), setting)


def from_runs(folders: Mapping[str, Path]) -> Callable[[str], DiCoNet]:
    """Gets networks by name: those with a run folder from there, all others as shipped."""

    def get(name: str) -> DiCoNet:
        return load(folders[name] / "weights.safetensors") if name in folders else shipped(name)

    return get


def shipped_names() -> list[str]:
    """The names of all weights that come with the package."""
    folder = files("diconet") / "weights"
    return [f.name.removesuffix(".safetensors") for f in folder.iterdir() if "safet" in f.name]


def parameters_of(module: nn.Module | None) -> list[torch.nn.Parameter]:
    """The trainable parameters of a module that may not be there."""
    return [] if module is None else [p for p in module.parameters() if p.requires_grad]
