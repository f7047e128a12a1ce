from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diconet.merges import TripleMerge
from diconet.recipes.hull_triples import ROW, Settings, build, evaluate, reproduce, train_model
from diconet.weights import load, shipped


def brief() -> Settings:
    default = Settings()
    return replace(
        default,
        resolutions=(1e-1, 1e-2),
        train=replace(default.train, steps=3, batch_size=4, max_size=12),
        split_train=replace(default.split_train, steps=2, batch_size=2, tree_samples=2),
    )


def test_training_writes_weights_that_solve(tmp_path: Path) -> None:
    model = train_model(brief(), tmp_path, quiet=True)
    again = load(tmp_path / "weights.safetensors")
    assert isinstance(again.merge, TripleMerge)
    assert again.merge.judge.resolution == 1e-2
    for name, value in model.state_dict().items():
        assert value.equal(again.state_dict()[name]), name


def test_both_stages_move_their_own_weights_only(tmp_path: Path) -> None:
    start = build(brief()).state_dict()
    trained = train_model(brief(), tmp_path, quiet=True)
    after_merge = load(tmp_path / "merge_1" / "weights.safetensors")
    assert not trained.merge.judge.forms.equal(start["merge.judge.forms"])
    torch.testing.assert_close(
        trained.merge.judge.forms, after_merge.merge.judge.forms, atol=1e-3, rtol=1e-3
    )
    head = "split.split.head.weight"
    assert not trained.state_dict()["split.split.split.head.weight"].equal(start[head])


def test_the_shipped_network_is_right_on_small_sets() -> None:
    records = evaluate(shipped("hull"), sizes=[25], num_sets=256, seed=5)
    accuracy = next(r["value"] for r in records if r["metric"] == "accuracy")
    assert accuracy >= 99


def test_reproduce_gives_one_record_a_column_and_metric() -> None:
    records = reproduce(num_sets=2, seed=0)
    assert {record["row"] for record in records} == {ROW}
    assert {"n=25", "n=200", "n=10000"} <= {record["column"] for record in records}
    assert all(record["paper"] is None and record["ours"] > 50 for record in records)


def test_resolutions_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"resolutions must all be above 0; got \(0.1, 0\)"):
        Settings(resolutions=(0.1, 0))
    Settings(resolutions=(0.1,))
