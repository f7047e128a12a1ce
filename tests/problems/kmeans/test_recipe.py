from __future__ import annotations

from pathlib import Path

import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.core.weights import load
from diconet.learn.batches import batch_at
from diconet.learn.config import TrainConfig
from diconet.learn.settings import read_settings
from diconet.nets.graph_split import GraphSplit, SoftmaxLabels
from diconet.nets.sweep import SweepSplit
from diconet.problems.kmeans import recipe, references, table
from diconet.problems.kmeans.problem import PROBLEM
from diconet.problems.kmeans.task import Gaussian, KMeansTask


def test_reproduce_gives_every_cell_of_the_paper_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(table.CIFAR_VARIABLE, raising=False)
    sweep = DiCoNet(SweepSplit(8), growth=Growth())
    ways = [
        ("ours", *row)
        for name in ("DiCoNet", "Sweep")
        for row in table.before_and_after_exchange(name, sweep)
    ]
    monkeypatch.setattr(table, "rows", lambda data, find: ways)
    records = recipe.reproduce(num_sets=2, seed=3)
    cells = {(r["row"], r["column"]): r for r in records}
    # two rows of the paper's, and with exchange: 2 + 1, and 2
    assert len(cells) == len(records) == 5 * 9
    cell = cells["DiCoNet / Lloyd", "Gaussian (d=10) k=8"]
    assert cell["paper"] == 6.3
    assert cell["ours"] == pytest.approx(1, abs=0.2)
    assert cells["DiCoNet / Rec. Lloyd", "Gaussian (d=2) k=4"]["paper"] == 0.9
    # without CIFAR-10 the last columns are of photographs, of which the paper has none
    assert cells["DiCoNet / Lloyd", "photograph patches k=16"]["paper"] is None
    assert cells["Sweep / Lloyd", "Gaussian (d=2) k=4"]["paper"] is None


def test_lloyd_over_lloyd_is_one_and_more_starts_cost_less() -> None:
    sets = KMeansTask(Gaussian(2), (8,)).sample(6, 160, rng=torch.Generator().manual_seed(0))
    ten, one = (
        table.costs(lambda s, r=r: references.lloyd(s, restarts=r), sets).mean() for r in (10, 1)
    )
    assert ten <= one
    recursive = table.costs(references.recursive_lloyd, sets).mean()
    assert recursive > ten


def test_a_row_says_how_many_layers_its_network_has(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = DiCoNet(GraphSplit(2, width=4, num_layers=3), depth=1)
    deep = DiCoNet(GraphSplit(2, width=4, num_layers=20), depth=1)
    ways = [("as in the paper", *table._paper_row("DiCoNet", one, 2)) for one in (graph, deep)]
    monkeypatch.setattr(table, "kinds", lambda cifar: {"Gaussian (d=2)": "gaussian2"})
    monkeypatch.setattr(table, "rows", lambda data, find: ways)
    records = recipe.reproduce(num_sets=1)
    cells = {(r["row"], r["column"][-3:]): r["paper"] for r in records}
    assert cells["DiCoNet, 3 layers / Lloyd", "k=8"] == cells["DiCoNet / Lloyd", "k=8"] == 2.1
    assert cells["DiCoNet, 3 layers / Rec. Lloyd", "k=4"] == 0.9


def test_test_sets_are_none_that_a_training_draws() -> None:
    settings = recipe.Settings(network="graph", clusters=(4,))
    tested = {tuple(sets.items[0].tolist()) for _, sets in table.columns(None, 20, 0).values()}
    for seed in range(20):
        config = TrainConfig(seed=seed, batch_size=20, tree_samples=1)
        batch = batch_at(0, settings.task(), None, config)
        drawn = {tuple(first.tolist()) for first in batch.sets.items[batch.sets.offsets[:-1]]}
        assert not drawn & tested


def test_min_cost_control_finds_three_pairs() -> None:
    points = torch.tensor([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]])
    sets = SetBatch.of([points], torch.tensor([[3.0]]))
    labels = table.labels_by(references.min_cost("proportional"))(sets)
    assert [len(pair.unique()) for pair in labels.split(2)] == [1, 1, 1]
    assert len(labels.unique()) == 3


def test_a_baseline_uses_the_first_k_of_its_labels() -> None:
    torch.manual_seed(0)
    labels = SoftmaxLabels(2, 16, width=8, num_layers=1)
    sets = KMeansTask(Gaussian(2), (4,)).sample(3, 80, rng=torch.Generator().manual_seed(0))
    drawn, log_prob = labels(sets, torch.arange(6))
    assert set(drawn.unique().tolist()) == {0, 1, 2, 3}
    assert log_prob is not None
    assert torch.isfinite(log_prob).all()
    assert labels(sets)[0].max() < 4


@pytest.mark.parametrize("network", ["sweep", "graph", "softmax"])
def test_training_writes_weights_that_load_and_solve(network: str, tmp_path: Path) -> None:
    few = TrainConfig(
        steps=2, batch_size=2, tree_samples=2, min_size=30, max_size=40, split_optimiser="adam"
    )
    settings = recipe.Settings(
        network=network,  # type: ignore[arg-type]
        clusters=None if network == "sweep" else (2, 4),
        width=8,
        num_layers=2,
        points_each=6,
        train=few,
        second=few,
    )
    trained = recipe.train_model(settings, tmp_path, quiet=True)
    again = load(tmp_path / "weights.safetensors")
    sets = KMeansTask(Gaussian(2), (4,)).sample(2, 40, rng=torch.Generator().manual_seed(0))
    trained.load_state_dict(again.state_dict())
    assert table.labels_by(again)(sets).tolist() == table.labels_by(trained.eval())(sets).tolist()


def test_every_preset_reads() -> None:
    presets = PROBLEM.folder("presets")
    assert PROBLEM.presets == ["default", "baseline", "page", "paper", "paper_small"]
    for name in PROBLEM.presets:
        read_settings(recipe.Settings, presets, name, [])
    paper = read_settings(recipe.Settings, presets, "paper", [])
    assert (paper.width, paper.num_layers, paper.train.batch_size) == (32, 20, 256)
    assert (paper.train.normalise_advantage, paper.train.split_optimiser) == (False, "rmsprop")
    assert paper.total_steps == 3 * paper.train.steps  # one network for each kind of points
    assert read_settings(recipe.Settings, presets, "default", []).total_steps == 720 + 24


@pytest.mark.parametrize("name", ["gaussian10", "uneven2", "broad2", "photographs"])
def test_points_have_as_many_coordinates_as_it_says(name: table.Data) -> None:
    assert table.points_of(name, None, "train").num_features == table.FEATURES[name]


def test_trees_are_as_deep_as_a_batch_has_clusters_to_halve() -> None:
    settings = recipe.Settings(network="graph", clusters=(2, 8), points_each=5, num_layers=1)
    model, task = settings.build(), settings.task()
    seen = set()
    for seed in range(8):
        sets = task.sample(2, 99, rng=torch.Generator().manual_seed(seed))
        assert (sets.sizes == 5 * sets.context[:, 0]).all()
        seen.add((int(sets.context[0, 0]), model(sets).tree.depth))
    assert seen == {(2, 1), (8, 3)}


def test_refuses_clusters_that_no_balanced_tree_has() -> None:
    with pytest.raises(ValueError, match="clusters must be powers of 2 of at least 2; got 6"):
        recipe.Settings(network="graph", clusters=(6,))
    with pytest.raises(ValueError, match="clusters must be given for softmax; got None"):
        recipe.Settings(network="softmax")
    recipe.Settings(network="graph", clusters=(8,))


def test_recursive_lloyd_finds_a_hierarchy() -> None:
    """Eight pairs, two by two by two: every level's two-means is plain to see."""
    pairs = [a + b + c for a in (0.0, 100.0) for b in (0.0, 10.0) for c in (0.0, 1.0)]
    points = torch.tensor([[p + d] for p in pairs for d in (0.0, 0.1)])
    sets = SetBatch.of([points], torch.tensor([[8.0]]))
    labels = references.recursive_lloyd(sets).reshape(8, 2)
    assert (labels[:, 0] == labels[:, 1]).all()
    assert len(labels.unique()) == 8


def test_a_sweep_begins_its_second_stage_with_the_preference_asked_for(tmp_path: Path) -> None:
    config = TrainConfig(
        steps=1, batch_size=1, tree_samples=2, min_size=40, max_size=40,
        split_optimiser="adam", split_lr=1e-9,
    )  # fmt: skip
    settings = recipe.Settings(width=8, cost_weight=7.0, train=config, second=config)
    trained = recipe.train_model(settings, tmp_path, quiet=True)
    assert trained.split.cost_weights.tolist() == pytest.approx([7, 0, 0, 0], abs=1e-5)  # type: ignore[union-attr]


def test_recursive_lloyd_costs_what_scikit_learns_two_means_does() -> None:
    """At one level it is plain two-means."""
    rng = torch.Generator().manual_seed(0)
    sets = SetBatch.pack(
        torch.rand(600, 3, generator=rng), torch.full((10,), 60), torch.full((10, 1), 2.0)
    )
    ours = table.costs(references.recursive_lloyd, sets)
    theirs = table.costs(references.lloyd, sets)
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), rel=0.01)
