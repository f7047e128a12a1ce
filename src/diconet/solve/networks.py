"""The network that answers: one that ships, one from a file, or one the user has built."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from diconet.model import DiCoNet
from diconet.weights import find, shipped


def as_network(
    model: str | Path | DiCoNet | None,
    *,
    default: str,
    task: str,
    parts: tuple[type[nn.Module], ...],
    device: str | torch.device = "cpu",
) -> DiCoNet:
    """The network asked for, ready on its device.

    One that was read must have one of the `parts` that this task is solved with; one that a user
    has built is trusted.
    """
    place = as_device(device)
    if isinstance(model, DiCoNet):
        return model.to(place).eval()
    if model is not None and not isinstance(model, str | Path):
        raise ValueError(f"model must be a name, a file or a DiCoNet; got {type(model).__name__}.")
    network = shipped(default) if model is None else find(model)
    if not isinstance(network.split, parts) and not isinstance(network.merge, parts):
        made_of = f"{type(network.split).__name__} and {type(network.merge).__name__}"
        raise ValueError(f"model must be a network for {task}; {model} is of {made_of}.")
    return network.to(place).eval()


def as_device(device: str | torch.device) -> torch.device:
    """A device that is there."""
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        raise ValueError(f"device must be one that torch has here; got {device!r}.") from None
    return place
