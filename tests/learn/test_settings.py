"""Presets say what matters themselves, so that better defaults change no network that ships."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import diconet

PRESETS = sorted(Path(diconet.__file__).parent.glob("problems/*/presets/*.yaml"))

SPELLED_OUT = {
    "steps",
    "batch_size",
    "tree_samples",
    "split_lr",
    "merge_lr",
    "split_optimiser",
    "merge_optimiser",
    "schedule",
    "split_clip",
    "merge_clip",
    "normalise_advantage",
}
"""Settings whose defaults are ours and may get better; the paper's are in its presets."""


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_preset_spells_out_how_it_trains(path: Path) -> None:
    for name, stage in yaml.safe_load(path.read_text()).items():
        if isinstance(stage, dict) and "steps" in stage:
            wanted = SPELLED_OUT if stage["schedule"] == "epoch" else SPELLED_OUT | {"warmup"}
            assert wanted <= stage.keys(), f"{name}: {sorted(wanted - stage.keys())}"
