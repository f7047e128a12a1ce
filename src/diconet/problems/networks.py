"""Finds the network to solve with: shipped, from a file or run, or built by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import as_file
from pathlib import Path

import torch

from diconet.core.host import as_device
from diconet.core.leaf_solver import LeafSolver
from diconet.core.model import DiCoNet
from diconet.core.weights import allow_package, load
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem

WEIGHTS = "weights.safetensors"
"""The file of weights in a run folder."""


def as_network(
    problem: Problem, model: str | Path | DiCoNet | None, device: str | torch.device = "cpu"
) -> DiCoNet:
    """The requested network, on its device; a file is read once and cached.

    A network from a file must be for this problem; one built by the user is not checked.
    """
    place = as_device(device)
    if isinstance(model, DiCoNet):
        return model.to(place).eval()
    if model is not None and not isinstance(model, str | Path):
        raise ValueError(f"model must be a name, a file or a DiCoNet; got {type(model).__name__}.")
    for one in (problem, problem.task):  # weights may name classes of its own package
        allow_package(type(one).__module__.partition(".")[0])
    path = default_path(problem) if model is None else find_path(model)
    network = _kept(str(path.absolute()), path.stat().st_mtime_ns, str(place))
    if not problem.accepts(network):
        made_of = f"{type(network.split).__name__} and {type(network.merge).__name__}"
        raise ValueError(
            f"model must be a network for {problem.name}; {model or path.name} is of {made_of}."
        )
    if isinstance(network.merge, LeafSolver):  # weights do not store the solver
        network.merge.solver = getattr(problem.task, "leaf_solver", None)
    return network


@lru_cache(maxsize=32)
def _kept(path: str, changed: int, place: str) -> DiCoNet:
    """A network read from a file, cached until the file changes."""
    return load(path).to(place).eval()


def default_path(problem: Problem) -> Path:
    """The weights of a problem's default network: shipped, or from its default run."""
    if problem.name in problem.weights:
        with as_file(problem.weights[problem.name]) as path:
            return path
    run = Path("runs") / f"{problem.name}_default" / WEIGHTS
    if run.is_file():
        return run
    raise ValueError(
        f"model must be given, since {problem.name} has no weights in {run.parent}, where diconet"
        " train puts them."
    )


def shipped_names() -> list[str]:
    """The names of all weights shipped with the installed problems."""
    return [name for problem in problems() for name in problem.weights]


def find_path(model: str | Path, setting: str = "model") -> Path:
    """The weights file for a shipped name, a run folder or a path.

    A name takes precedence over a file of the same name; use a `Path` or "./" for the file.
    """
    if isinstance(model, str):
        for problem in problems():
            if model in problem.weights:
                with as_file(problem.weights[model]) as path:
                    return path
    path = Path(model)
    if path.is_dir() and (path / WEIGHTS).is_file():
        return path / WEIGHTS
    if path.is_file():
        return path
    parts = sorted(one.parent.name for one in path.glob(f"*/{WEIGHTS}"))
    if parts:
        raise ValueError(
            f"{setting} must be a finished run, or a part of one: {path} has {', '.join(parts)}."
        )
    names = ", ".join(sorted(shipped_names()))
    raise ValueError(
        f"{setting} must be a file, a run folder or one of {names}; got {str(model)!r}."
    )


def find(model: str | Path, setting: str = "model") -> DiCoNet:
    """A fresh copy of a network, by shipped name, run folder or file."""
    return load(find_path(model, setting))


def shipped(name: str) -> DiCoNet:
    """A fresh copy of a shipped network, such as "hull"."""
    if name not in shipped_names():
        names = ", ".join(sorted(shipped_names()))
        raise ValueError(f"name must be one of {names}; got {name!r}.")
    return find(name)


def from_runs(folders: Mapping[str, Path]) -> Callable[[str], DiCoNet]:
    """A function that gets networks by name: from the given run folders, or else as shipped."""

    def get(name: str) -> DiCoNet:
        return load(folders[name] / WEIGHTS) if name in folders else shipped(name)

    return get
