from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diconet.core.weights import load
from diconet.learn.config import TrainConfig
from diconet.learn.settings import read_settings
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.recipe import (
    LARGE_SIZES,
    ROWS,
    ROWS_PRESET,
    SIZES,
    TRIPLES,
    Settings,
    reproduce,
    train_model,
)
from diconet.problems.hull.train_rows import PointerSettings, row_loss
from diconet.problems.networks import shipped
from diconet.problems.table import PARTS_BLOCK

PRESETS = PROBLEM.folder("presets")
TINY = TrainConfig(steps=3, batch_size=4, tree_samples=2, max_size=14, checkpoint_every=3)
SMALL = PointerSettings(width=8, halve_to=6.0, alone_steps=2, hard_steps=2)


@pytest.mark.parametrize("row", ["baseline", "random", "diconet", "diconet_reg"])
def test_every_row_of_the_paper_trains_alike(row: str, tmp_path: Path) -> None:
    model = train_model(Settings(row, TINY, pointer=SMALL), tmp_path, quiet=True)
    kept = load(tmp_path / "weights.safetensors")
    for name, value in kept.state_dict().items():
        assert torch.allclose(value, model.state_dict()[name], atol=2e-3), name
    assert kept.merge.binarise
    assert not load(tmp_path / "soft" / "weights.safetensors").merge.binarise
    trained = {path.parent.name for path in tmp_path.rglob("checkpoint.pt")}
    assert trained == {tmp_path.name, "alone", "soft"}


def test_rows_start_from_the_given_pointer_network(tmp_path: Path) -> None:
    train_model(Settings("baseline", TINY, pointer=SMALL), tmp_path / "start", quiet=True)
    start = tmp_path / "start" / "alone"
    slow = replace(TINY, steps=1, merge_lr=1e-12, split_lr=1e-12)
    pointer = replace(SMALL, init=str(start), hard_steps=1)
    model = train_model(Settings("diconet", slow, pointer=pointer), tmp_path / "row", quiet=True)
    assert not (tmp_path / "row" / "alone").exists()
    for name, value in load(start / "weights.safetensors").merge.state_dict().items():
        assert torch.allclose(value, model.merge.state_dict()[name], atol=1e-5), name


@pytest.mark.parametrize("init", ["hull", "kmeans"])
def test_rows_do_not_start_from_networks_of_another_kind(init: str, tmp_path: Path) -> None:
    settings = Settings("diconet", TINY, pointer=replace(SMALL, init=init))
    with pytest.raises(ValueError, match=f"init must have a pointer merge of width 8; {init} does"):
        train_model(settings, tmp_path, quiet=True)


def test_trees_that_cannot_differ_are_one(rng: torch.Generator) -> None:
    """Below `halve_to`, two samples per example would have the loss of one."""
    from diconet.learn.batches import batch_at
    from diconet.problems.hull.task import HullTask
    from diconet.problems.hull.train_rows import build_row

    model, task = build_row("diconet", SMALL, 0), HullTask()
    config = replace(TINY, min_size=5, max_size=5)
    batch = batch_at(0, task, task.oracle, config)
    _, parts = row_loss(model, task, batch, config)
    sets = batch.sets.repeat(2)
    twice = model(sets, batch.seeds, batch.target.repeat(2)).log_prob
    assert parts["loss"] == pytest.approx(-twice.mean().item(), abs=1e-5)


def test_one_tree_teaches_the_merge_and_all_the_split() -> None:
    """Gradients as those of the paper's loss: the merge's of one tree, the split's of three."""
    from diconet.learn.batches import batch_at
    from diconet.learn.estimators import paper_loss
    from diconet.problems.hull.task import HullTask
    from diconet.problems.hull.train_rows import build_row

    model, task = build_row("diconet", replace(SMALL, split_gain=6.0), 0), HullTask()
    many = replace(TINY, tree_samples=3, min_size=14, normalise_advantage=False, regulariser=0.5)
    batch = batch_at(0, task, task.oracle, many)
    first = replace(batch, seeds=batch.seeds[::3])

    def gradients(loss, batch, config) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        model.zero_grad()
        loss(model, task, batch, config)[0].backward()
        return [[p.grad.clone() for p in m.parameters()] for m in (model.merge, model.split)]

    got = gradients(row_loss, batch, many)
    merge = gradients(paper_loss, first, replace(many, tree_samples=1))[0]
    split = gradients(paper_loss, batch, many)[1]
    assert sum(float(p.abs().sum()) for p in split) > 0
    for ours, theirs in zip([*got[0], *got[1]], [*merge, *split], strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_presets_of_the_paper_and_ours() -> None:
    assert set(PROBLEM.presets) >= {"default", "paper", ROWS_PRESET}
    assert read_settings(Settings, PRESETS, "default", []) == Settings()
    paper = read_settings(Settings, PRESETS, "paper", [])
    sizes = paper.pointer.width, paper.pointer.split_layers, paper.pointer.split_width
    assert sizes == (512, 5, 15)
    rates = paper.train.batch_size, paper.train.split_lr, paper.train.merge_lr
    assert rates == (128, 0.01, 0.001)
    rows = read_settings(Settings, PRESETS, ROWS_PRESET, ["--train.steps", "7"])
    free = ("steps", "epoch_steps", "merge_lr", "merge_optimiser", "size_scale")
    same = {name: getattr(rows.train, name) for name in free}
    assert rows.train == replace(paper.train, **same)


def test_the_default_network_is_right_on_small_sets() -> None:
    records = PROBLEM.evaluate(sizes=[25], num_sets=256, seed=5)
    accuracy = next(r["value"] for r in records if r["metric"] == "accuracy")
    assert accuracy >= 99


def test_rows_answer_as_they_should() -> None:
    """With room for the draw of the sets; an untrained network reaches 0%."""
    accuracy = {
        row: PROBLEM.evaluate(model=shipped(f"hull_{row}"), sizes=[50], num_sets=128)[0]["value"]
        for row, _ in ROWS.values()
    }
    assert min(accuracy.values()) > 15


def test_the_table_has_every_cell() -> None:
    records = reproduce(num_sets=8, seed=1)
    cells = {(r["row"], r["column"], r["metric"]): r for r in records}
    for row, (_, paper) in ROWS.items():
        for n, figure in zip(SIZES, paper, strict=True):
            width = shipped("hull_baseline").merge.config["width"]
            shown = f"{row}, width {width}, from the lowest corner"
            assert cells[shown, f"n={n}", "accuracy"]["paper"] == figure
            assert 0 <= cells[shown, f"n={n}", "f1"]["ours"] <= 100
    for n in (*SIZES, *LARGE_SIZES):
        assert cells[TRIPLES, f"n={n}", "accuracy"]["paper"] is None
    undivided = cells["last row, no division", "n=100", "accuracy"]
    assert undivided["block"] == PARTS_BLOCK
    assert undivided["ours"] < cells[TRIPLES, "n=100", "accuracy"]["ours"]
    assert undivided["error"] is not None
