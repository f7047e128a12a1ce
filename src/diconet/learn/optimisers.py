"""The optimisers of a run: one for the split, one for the merge (appendix B)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.weights import parameters_of
from diconet.learn.config import TrainConfig
from diconet.learn.muon import Muon

Optimisers = dict[str, torch.optim.Optimizer]
"""Optimisers by the part of the network that they train."""

_KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "muon": Muon,
}


def make_optimisers(model: DiCoNet, config: TrainConfig) -> Optimisers:
    """One optimiser for each part of the network that has trainable parameters."""
    made: Optimisers = {}
    for name in ("split", "merge"):
        kind: Any = _KINDS[getattr(config, f"{name}_optimiser")]
        if parameters := parameters_of(getattr(model, name)):
            made[name] = kind(parameters, lr=getattr(config, f"{name}_lr"))
    if not made:
        raise ValueError("the network has no parameters to train.")
    return made


def set_rates(optimisers: Optimisers, config: TrainConfig, factor: float) -> None:
    """Sets the learning rates to `factor` times those of the settings."""
    for name, optimiser in optimisers.items():
        for group in optimiser.param_groups:
            group["lr"] = getattr(config, f"{name}_lr") * factor


def update(model: DiCoNet, optimisers: Optimisers, config: TrainConfig) -> dict[str, float]:
    """Steps each optimiser with clipped gradients; returns their norms before clipping.

    A part whose gradient is not finite is not updated.
    """
    norms: dict[str, float] = {}
    for name, optimiser in optimisers.items():
        largest = getattr(config, f"{name}_clip")
        norm = number(clip_grad_norm_(parameters_of(getattr(model, name)), largest))
        norms[f"{name}_grad"] = norm
        if norm < float("inf"):  # also false for nan
            optimiser.step()
    return norms
