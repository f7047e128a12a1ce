from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diconet.model import DiCoNet
from diconet.presets import read_settings
from diconet.recipes.knapsack import (
    PAPER,
    Settings,
    _Test,
    evaluate,
    greedy_answer,
    reproduce,
    train_model,
    with_splits,
)
from diconet.tasks.knapsack import KnapsackTask
from diconet.train import TrainConfig, train

SHORT = TrainConfig(
    steps=30,
    batch_size=16,
    tree_samples=10,
    min_size=20,
    max_size=20,
    split_lr=0.02,
    split_optimiser="adamax",
    schedule="cosine",
    warmup=5,
)


@pytest.fixture(scope="module")
def test_sets() -> _Test:
    return _Test.of(20, 200, seed=5)


def small(seed: int) -> Settings:
    config = replace(SHORT, seed=seed)
    return Settings(split="fill", width=16, num_layers=2, num_splits=2, train=config)


def test_a_short_training_gets_where_no_untrained_network_does(test_sets):
    untrained = [test_sets.ratio(greedy_answer(small(s).build().eval())) for s in range(10)]
    settings = small(0)
    model = train(settings.build(), KnapsackTask(), settings.train, quiet=True)
    trained = test_sets.ratio(greedy_answer(model.eval()))
    assert trained < 1.05
    assert min(untrained) > 1.08


def test_imitating_the_best_of_its_samples_beats_what_it_started_from(test_sets):
    config = replace(SHORT, estimator="imitate", split_optimiser="adam", split_lr=0.005)
    settings = Settings(width=32, train=config)
    model = settings.build()
    with torch.no_grad():
        model.split.trust.zero_()  # so that it starts from nothing
        model.split.head.bias.fill_(-0.1)  # and leaves where it does not know
    before = test_sets.ratio(greedy_answer(model.eval()))
    train(model, KnapsackTask(), settings.train, quiet=True)
    after = test_sets.ratio(greedy_answer(model.eval()))
    assert before > 1.1
    assert after < 1.02


def test_the_paper_s_network_may_recurse_more_often_than_it_was_trained_to(test_sets):
    model = small(0).build().eval()
    deeper = with_splits(model, 5)
    sets = test_sets.sets
    assert model(sets).tree.depth == 3
    assert deeper(sets).tree.depth == 6
    filled = with_splits(model, 5, fill=True)
    assert test_sets.ratio(greedy_answer(filled)) < test_sets.ratio(greedy_answer(deeper))


def test_evaluation_reports_ratios_of_at_least_one():
    records = evaluate(Settings(width=8).build(), sizes=[12], num_sets=20)
    figures = {record["metric"]: record["value"] for record in records}
    assert figures["ratio"] >= figures["ratio_beam_16"] >= 1
    assert figures["proven_ratio"] > figures["ratio"]
    assert {record["size"] for record in records} == {12}


def test_the_papers_cells_are_all_there_beside_our_own():
    def find(name: str) -> DiCoNet:
        splits = {"knapsack_baseline": 0, "knapsack_paper": 3}
        if name in splits:
            return Settings(split="fill", width=4, num_layers=1, num_splits=splits[name]).build()
        return Settings(width=4).build()

    records = reproduce(num_sets=2, find=find)
    assert all(set(r) == {"row", "column", "metric", "ours", "paper"} for r in records)
    cells = {(r["row"], r["column"], r["metric"]): r for r in records}
    for row, metrics in PAPER.items():
        for metric, figures in metrics.items():
            for column, figure in zip(("n=50", "n=100", "n=200"), figures, strict=True):
                assert cells[row, column, metric]["paper"] == figure
    assert all(r["ours"] >= 1 - 1e-9 for r in records if r["metric"] == "ratio")
    beam, alone = "Take or leave, beam of 16", "Take or leave, greedy"
    assert cells[beam, "n=1000", "ratio"]["ours"] <= cells[alone, "n=1000", "ratio"]["ours"]


@pytest.mark.parametrize("preset", ["paper", "baseline", "small"])
def test_presets_build(preset):
    settings = read_settings(Settings, "knapsack", preset, [])
    assert settings.build().split is not None


def test_init_must_fit(tmp_path):
    settings = Settings(width=4, init="hull", train=SHORT)
    with pytest.raises(ValueError, match="init must name weights of this network; hull does not"):
        train_model(settings, tmp_path, quiet=True)
