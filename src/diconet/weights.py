"""Weights on disk: safetensors with a description of the network, loaded without pickle."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import nn

from diconet.io.output import write_whole
from diconet.merges import BestOfViews, PointerMerge, TripleJudge, TripleMerge
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
        BestOfViews,
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
    arguments = {
        name: describe(value) if isinstance(value, nn.Module) else value
        for name, value in module.config.items()  # type: ignore[union-attr, operator]
    }
    return {"class": type(module).__name__, **arguments}


def build(description: dict[str, Any]) -> nn.Module:
    """The module of a description, with fresh weights."""
    arguments = {
        name: build(value) if isinstance(value, dict) else value
        for name, value in description.items()
        if name != "class"
    }
    return MODULES[description["class"]](**arguments)


def save(model: DiCoNet, path: str | Path, *, half: bool = True, **notes: str) -> None:
    """Writes a network to `path`, in half precision unless told otherwise; all or nothing."""
    path = Path(path)
    state = {
        name: (value.half() if half and value.is_floating_point() else value).contiguous()
        for name, value in model.state_dict().items()
    }
    network = {
        "split": describe(model.split),
        "merge": None if model.merge is None else describe(model.merge),
        "growth": asdict(model.growth),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_bytes(state, metadata={"diconet": json.dumps(network), **notes}))


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
    try:
        into.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the weights in {path} do not fit the network: {reason}.") from error
    return into.eval()


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


def shipped(name: str) -> DiCoNet:
    """A network whose weights come with the package, such as "hull_diconet_reg"."""
    resource = files("diconet") / "weights" / f"{name}.safetensors"
    if not resource.is_file():
        names = ", ".join(sorted(shipped_names()))
        raise ValueError(f"model must be a file or one of {names}; got {name!r}.")
    with as_file(resource) as path:
        return load(path)


def find(model: str | Path) -> DiCoNet:
    """Those of a file, or shipped weights by name, even where a folder is called the same."""
    path = Path(model)
    folder = path.is_dir() and str(model) in shipped_names()
    return load(model) if path.exists() and not folder else shipped(str(model))


def shipped_names() -> list[str]:
    """The names of all weights that come with the package."""
    folder = files("diconet") / "weights"
    return [f.name.removesuffix(".safetensors") for f in folder.iterdir() if "safet" in f.name]


def parameters_of(module: nn.Module | None) -> list[torch.nn.Parameter]:
    """The trainable parameters of a module that may not be there."""
    return [] if module is None else [p for p in module.parameters() if p.requires_grad]
