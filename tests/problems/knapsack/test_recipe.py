from __future__ import annotations

from dataclasses import replace

import pytest

from diconet.core.model import DiCoNet
from diconet.learn.loop import TrainConfig, batch_at, paper_loss, train
from diconet.learn.settings import read_settings
from diconet.problems.knapsack.call_loss import call_loss
from diconet.problems.knapsack.flip_score import flip_loss
from diconet.problems.knapsack.problem import PROBLEM
from diconet.problems.knapsack.recipe import (
    NOT_THE_PAPERS,
    PAPER,
    Settings,
    _Test,
    answer_of,
    reproduce,
    with_splits,
)
from diconet.problems.knapsack.solve import knapsack
from diconet.problems.knapsack.task import KnapsackTask

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
    return _Test.of(20, 200, "test", 5)


def small(seed: int) -> Settings:
    config = replace(SHORT, seed=seed)
    return Settings(split="fill", width=16, num_layers=2, num_splits=2, train=config)


@pytest.mark.parametrize("loss", [call_loss, paper_loss])
def test_a_short_training_gets_where_no_untrained_network_does(test_sets, loss):
    untrained = [test_sets.ratio(answer_of(small(s).build().eval())) for s in range(10)]
    settings = small(0)
    model = train(settings.build(), KnapsackTask(), settings.train, loss=loss, quiet=True)
    trained = test_sets.ratio(answer_of(model.eval()))
    assert trained < 1.04
    assert min(untrained) > 1.06


def test_scores_learn_what_is_flipped():
    config = replace(SHORT, tree_samples=1, split_optimiser="adam")
    settings, task = Settings(width=16, train=config), KnapsackTask()
    model = settings.build()
    held_out = batch_at(1_000, task, None, config)
    before = flip_loss(model, task, held_out, config)[0].item()
    train(model, task, config, loss=flip_loss, quiet=True)
    assert flip_loss(model, task, held_out, config)[0].item() < 0.98 * before


def test_the_paper_s_network_may_recurse_more_often_than_it_was_trained_to(test_sets):
    model = small(0).build().eval()
    deeper = with_splits(model, 5)
    sets = test_sets.sets
    assert model(sets).tree.depth == 3
    assert deeper(sets).tree.depth == 6


def test_evaluate_measures_what_solve_answers():
    instances = PROBLEM.fresh(20, 10, 0)
    model = Settings(width=4).build()
    data = zip(*instances.data, strict=True)
    packings = knapsack(*(list(one) for one in data), instances.given["capacity"], model=model)
    graded = PROBLEM.grade(instances, packings)
    records = PROBLEM.evaluate(model=model, sizes=[20], num_sets=10)
    assert {r["metric"]: r["value"] for r in records} == graded
    assert graded["ratio"] == graded["proven ratio"] == 1


def test_the_papers_cells_are_all_there_beside_our_own():
    def find(name: str) -> DiCoNet:
        splits = {"knapsack_baseline": 0, "knapsack_paper": 3}
        if name in splits:
            fill = {"split": "fill", "num_layers": 1}
            return Settings(**fill, width=4, num_splits=splits[name]).build()
        return Settings(width=4).build()

    records = reproduce(num_sets=2, find=find)
    blocks = list(dict.fromkeys(r["block"] for r in records))
    assert blocks == ["as in the paper", "what dividing and learning do", "ours"]
    cells = {(r["row"], r["column"], r["metric"]): r for r in records}
    for name, metrics in PAPER.items():
        row = name if name in ("Greedy", "Optimum") else name + NOT_THE_PAPERS
        for metric, figures in metrics.items():
            for column, figure in zip(("n=50", "n=100", "n=200"), figures, strict=True):
                assert cells[row, column, metric]["paper"] == figure
    assert all(r["ours"] >= 1 - 1e-9 for r in records if r["metric"] == "ratio")
    assert cells["core in halves", "n=1000", "exact"]["ours"] == 100
    ratio = cells["3 splits, value per weight", "n=50", "ratio"]["ours"]
    assert ratio < cells["3 splits, random order", "n=50", "ratio"]["ours"]


@pytest.mark.parametrize("preset", ["default", "paper", "baseline"])
def test_presets_build(preset):
    settings = read_settings(Settings, PROBLEM.folder("presets"), preset, [])
    assert settings.build().split is not None
