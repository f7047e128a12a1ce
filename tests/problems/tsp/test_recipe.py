from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.core.weights import load, save
from diconet.learn.loop import TrainConfig
from diconet.learn.settings import read_settings
from diconet.nets.pair_net import PairNet, Pairs
from diconet.problems.tsp.pairs import (
    MERGE_EDGE_INPUTS,
    MERGE_NODE_INPUTS,
    PairMerge,
    PairSignal,
    PairSplit,
    handed_up,
)
from diconet.problems.tsp.problem import PROBLEM
from diconet.problems.tsp.recipe import Settings, build, labels, train_model
from diconet.problems.tsp.table import PAPER, Exam, Leaves, OneSide, beamed, num_right, swapped

QUICK = TrainConfig(steps=3, batch_size=2, tree_samples=2, min_size=6, max_size=8)
TINY = Settings(width=4, num_layers=1, leaf_size=5, num_labels=6, label_seconds=0.001, train=QUICK)


def preset(name: str) -> Settings:
    return read_settings(Settings, PROBLEM.folder("presets"), name, [])


def test_presets_are_the_papers_and_have_equal_budgets() -> None:
    assert preset("default").network == "near"
    for name, size, leaf in (("bs1", 10, None), ("bs2", 20, None), ("paper", 20, "tsp_bs1")):
        settings = preset(name)
        assert (settings.network, settings.width, settings.num_layers) == ("pairs", 20, 20)
        assert (settings.leaf, settings.train.min_size, settings.train.max_size) == (
            leaf,
            size,
            size,
        )
        assert leaf is None or settings.leaf_size == preset("bs1").train.max_size
        assert settings.num_labels == 20_000
        train = settings.train
        assert (train.steps, train.batch_size, train.merge_clip) == (1_250, 32, 40)
        assert (train.merge_optimiser, train.merge_lr) == ("adamax", 1e-3)


def test_training_lowers_the_loss_of_a_small_network() -> None:
    config = replace(QUICK, steps=60, batch_size=4, merge_lr=1e-2, schedule="cosine", warmup=5)
    settings = replace(TINY, width=8, num_layers=2, train=config)
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
    deep = replace(flat, leaf_size=4, leaf=str(tmp_path / "leaf.safetensors"))
    exam = Exam.of(8, 2, 0)
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
    settings = replace(TINY, network="pairs", leaf=str(tmp_path / "near.safetensors"))
    with pytest.raises(ValueError, match="leaf must be a network over pairs"):
        build(settings)


def test_a_leaf_of_another_width_is_refused(tmp_path: Path) -> None:
    save(build(replace(TINY, network="pairs")), tmp_path / "leaf.safetensors")
    settings = replace(TINY, network="pairs", leaf=str(tmp_path / "leaf.safetensors"))
    build(settings)
    with pytest.raises(ValueError, match=r"leaf must be a network of width 8; .* has width 4"):
        build(replace(settings, width=8))


def test_grades_of_the_oracle_itself() -> None:
    exam = Exam.of(9, 4, 0)
    grades = exam.grade(exam.tours)
    assert grades["ratio"].tolist() == pytest.approx([1] * 4)


def test_accuracy_is_that_of_the_two_likeliest_neighbours() -> None:
    """Five cities on a ring; a signal that swaps 3 and 4 is right at city 1 only."""
    sets = SetBatch.of([torch.rand(5, 2)])
    pairs = Pairs.of(sets)
    logits = torch.zeros(len(pairs.one))
    likely = torch.tensor([0, 1, 2, 4, 3])
    logits[pairs.number(likely, likely.roll(1))] = 5.0
    signal = PairSignal(pairs, logits)
    assert num_right(signal, Sequences.of([likely])) == [5]
    assert num_right(signal, Sequences.of([torch.arange(5)])) == [1]


def test_swapping_parts_changes_what_it_should() -> None:
    exam = Exam.of(24, 2, 0)
    torch.manual_seed(0)
    above = PairNet(MERGE_NODE_INPUTS, MERGE_EDGE_INPUTS, 4, 1)
    merge = PairMerge(PairNet(3, 1, 4, 1), above, binarise=True)
    model = DiCoNet(PairSplit(PairNet(3, 1, 4, 1)), merge, Growth(halve_to=8))
    flat = DiCoNet(RandomSplit(), PairMerge(PairNet(3, 1, 4, 1)), depth=0)
    with torch.no_grad():
        signals = {
            row: one(exam.sets, target=exam.tours).answer.logits
            for row, one in swapped(model, flat).items()
        }
    whole = signals.pop("learned split")
    assert len(signals) == 12
    for signal in signals.values():
        assert not torch.allclose(signal, whole)


class Copies(torch.nn.Module):
    """A merge that says what the leaves said, and nothing across the cut."""

    def forward(self, level: Any, below: PairSignal | None, target: Any) -> PairSignal:
        pairs = Pairs.of(level.sets)
        if below is None:
            return PairSignal(pairs, torch.zeros(len(pairs.one)))
        said, known = handed_up(pairs, below)
        return PairSignal(pairs, torch.where(known > 0, said, -20.0))


def test_leaves_that_are_told_say_the_best_tour() -> None:
    """With all cities in one leaf, a merge that hands on what it hears is right everywhere."""
    exam = Exam.of(10, 12, 0)
    told = DiCoNet(OneSide(), Leaves(Copies(), "oracle"), depth=1)
    found = beamed(told, exam)
    assert found["acc"].tolist() == [100] * 12
    assert found["ratio"].tolist() == pytest.approx([1] * 12)
    silent = DiCoNet(OneSide(), Leaves(Copies(), "silent"), depth=1)
    assert beamed(silent, exam)["acc"].mean() < 20


def test_the_paper_s_cells_are_consistent() -> None:
    """Cost over ratio is the oracle's cost, the same in every row up to rounding."""
    for size in (10, 20, 40, 80):
        best = [cost / ratio for _, cost, ratio in (row[size] for row in PAPER.values())]
        assert max(best) / min(best) < 1.02
