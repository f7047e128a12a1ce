from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.core.weights import load
from diconet.problems.hull.train_triples import (
    MERGE_TRAIN,
    TripleSettings,
    build_triples,
    train_triples,
)
from diconet.problems.hull.triples import TripleMerge

MERGE = replace(MERGE_TRAIN, steps=3, batch_size=4, max_size=12)


def brief() -> TripleSettings:
    default = TripleSettings()
    split = replace(default.split_train, steps=2, batch_size=2, tree_samples=2)
    return replace(default, resolutions=(1e-1, 1e-2), split_train=split)


def trained(run: Path) -> DiCoNet:
    return train_triples(brief(), MERGE, run, quiet=True)


def test_training_writes_weights_that_solve(tmp_path: Path) -> None:
    model = trained(tmp_path)
    again = load(tmp_path / "weights.safetensors")
    assert isinstance(again.merge, TripleMerge)
    assert again.merge.judge.resolution == 1e-2
    for name, value in model.state_dict().items():
        assert value.equal(again.state_dict()[name]), name


def test_merge_and_split_move_their_own_weights_only(tmp_path: Path) -> None:
    start = build_triples(brief(), MERGE.seed).state_dict()
    model = trained(tmp_path)
    after_merge = load(tmp_path / "merge_1" / "weights.safetensors")
    assert not model.merge.judge.forms.equal(start["merge.judge.forms"])
    torch.testing.assert_close(
        model.merge.judge.forms, after_merge.merge.judge.forms, atol=1e-3, rtol=1e-3
    )
    head = "split.split.head.weight"
    assert not model.state_dict()["split.split.split.head.weight"].equal(start[head])


def test_resolutions_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"resolutions must all be above 0; got \(0.1, 0\)"):
        TripleSettings(resolutions=(0.1, 0))
    TripleSettings(resolutions=(0.1,))
