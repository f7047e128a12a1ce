from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import torch
import yaml

from diconet.merges.edges import EdgeMerge
from diconet.merges.pairs import PairMerge
from diconet.recipes.tsp import PAPER, Exam, Settings, build, control, evaluate, train_model
from diconet.train import TrainConfig
from diconet.weights import load, save, shipped

QUICK = TrainConfig(steps=3, batch_size=2, tree_samples=2, min_size=6, max_size=8)
TINY = Settings(width=4, num_layers=1, leaf_size=5, num_labels=6, label_seconds=0.001, train=QUICK)


def preset(name: str) -> Settings:
    kept = yaml.safe_load((files("diconet") / "presets" / f"tsp_{name}.yaml").read_text())
    return Settings(**{**kept, "train": TrainConfig(**kept["train"])})


def test_presets_fit_the_settings() -> None:
    assert preset("small") == Settings()
    for name, size, depth in (("bs1", 10, 0), ("bs2", 20, 0), ("paper", 60, 1)):
        settings = preset(name)
        assert (settings.network, settings.width, settings.num_layers) == ("pairs", 20, 20)
        assert (settings.depth, settings.train.max_size) == (depth, size)
        assert settings.num_labels == 20_000


def test_the_second_reference_begins_as_the_first() -> None:
    begun = build(preset("bs2")).state_dict()
    for name, value in shipped("tsp_bs1").state_dict().items():
        assert torch.equal(begun[name], value)


def test_labels_are_made_once(tmp_path: Path) -> None:
    settings = replace(TINY, labels=str(tmp_path / "book.npz"))
    train_model(settings, quiet=True)
    kept = (tmp_path / "book.npz").stat().st_mtime_ns
    train_model(settings, quiet=True)
    assert (tmp_path / "book.npz").stat().st_mtime_ns == kept


def test_training_lowers_the_loss_of_a_small_network() -> None:
    config = replace(QUICK, steps=60, batch_size=4, merge_lr=1e-2, schedule="cosine", warmup=5)
    settings = replace(TINY, width=8, num_layers=2, train=config)
    from diconet.recipes.tsp import labels

    book = labels(settings)
    sets = book.sample(6, 7, rng=torch.Generator().manual_seed(0))
    before, after = build(settings), train_model(settings, quiet=True)
    with torch.no_grad():
        first = before(sets, None, book.oracle(sets)).log_prob.mean()
        last = after(sets, None, book.oracle(sets)).log_prob.mean()
    assert last > first + 0.3


def test_a_reference_becomes_the_leaves_of_the_paper_s_network(tmp_path: Path) -> None:
    flat = replace(TINY, network="pairs", width=4)
    save(train_model(flat, quiet=True), tmp_path / "leaf.safetensors", half=False)
    deep = replace(flat, depth=1, leaf=str(tmp_path / "leaf.safetensors"))
    exam = Exam.of(8, 2, 0)
    with torch.no_grad():  # untrained, it answers as the reference does
        untrained = build(deep)(exam.sets).answer.logits
        assert torch.allclose(untrained, load(deep.leaf)(exam.sets).answer.logits, atol=1e-5)
    model = train_model(deep, quiet=True)
    assert isinstance(model.merge, PairMerge)
    reference = load(tmp_path / "leaf.safetensors").merge
    assert isinstance(reference, PairMerge)
    for kept, trained in zip(
        reference.leaf.parameters(), model.merge.leaf.parameters(), strict=True
    ):
        assert torch.equal(kept, trained)
    save(model, tmp_path / "deep.safetensors", half=False)
    again = load(tmp_path / "deep.safetensors")
    with torch.no_grad():
        assert torch.equal(again(exam.sets).answer.logits, model(exam.sets).answer.logits)


def test_a_network_over_neighbours_cannot_be_a_leaf_over_pairs(tmp_path: Path) -> None:
    save(build(TINY), tmp_path / "near.safetensors")
    settings = replace(TINY, network="pairs", depth=1, leaf=str(tmp_path / "near.safetensors"))
    with pytest.raises(ValueError, match="leaf must be a network over pairs"):
        build(settings)


def test_a_leaf_of_another_width_is_refused(tmp_path: Path) -> None:
    save(build(replace(TINY, network="pairs")), tmp_path / "leaf.safetensors")
    settings = replace(TINY, network="pairs", depth=1, leaf=str(tmp_path / "leaf.safetensors"))
    build(settings)
    with pytest.raises(ValueError, match=r"leaf must be a network of width 8; .* is of width 4"):
        build(replace(settings, width=8))


def test_start_must_fit() -> None:
    with pytest.raises(ValueError, match="start must name weights of this network; hull does not"):
        build(replace(TINY, start="hull"))


def test_start_goes_on_from_weights(tmp_path: Path) -> None:
    model = build(replace(TINY, train=replace(QUICK, seed=5)))
    save(model, tmp_path / "start.safetensors", half=False)
    again = build(replace(TINY, start=str(tmp_path / "start.safetensors")))
    assert isinstance(again.merge, EdgeMerge)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_grades_of_the_oracle_itself() -> None:
    exam = Exam.of(9, 4, 0)
    grades = exam.grade(exam.tours)
    assert grades["acc"] == 100
    assert grades["ratio"] == pytest.approx(1)


def test_evaluation_puts_the_control_beside() -> None:
    records = evaluate(control(), sizes=[8], num_sets=3)
    assert [record["refine"] for record in records] == ["none", "2opt", "lk"]
    for record in records:
        assert record["ratio"] == pytest.approx(record["control"])
        assert record["ratio"] >= 1 - 1e-6


def test_the_paper_s_cells_are_consistent() -> None:
    """Cost over ratio is the oracle's cost, the same in every row up to rounding."""
    for size in (10, 20, 40, 80):
        best = [cost / ratio for _, cost, ratio in (row[size] for row in PAPER.values())]
        assert max(best) / min(best) < 1.02
