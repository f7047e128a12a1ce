from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diconet.model import DiCoNet
from diconet.presets import names, read_settings
from diconet.recipes import kmeans as recipe
from diconet.recipes import kmeans_table as table
from diconet.references import kmeans as references
from diconet.sets import SetBatch
from diconet.splits.graph import GraphSplit
from diconet.splits.sweep import SweepSplit
from diconet.tasks.kmeans import Gaussian, KMeansTask
from diconet.train import TrainConfig
from diconet.tree import Growth
from diconet.weights import load


def test_reproduce_gives_every_cell_of_the_paper_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(table.CIFAR_VARIABLE, raising=False)
    sweep = DiCoNet(SweepSplit(8), growth=Growth())
    ways = [table.before_and_after_exchange(row, sweep) for row in ("DiCoNet", "Sweep")]
    monkeypatch.setattr(table, "rows", lambda data, k, find: ways)
    records = recipe.reproduce(num_sets=2, seed=3)
    cells = {(r["row"], r["column"]): r for r in records}
    # two rows of the paper's, and with exchange and after Lloyd steps: 2 + 2, and 2 + 2
    assert len(cells) == len(records) == 8 * 9
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
        table.costs(lambda s, r=r: references.lloyd(s, restarts=r), sets)[0].mean() for r in (10, 1)
    )
    assert ten <= one
    recursive = table.costs(references.recursive_lloyd, sets)[0].mean()
    assert recursive > ten


def test_min_cost_control_finds_three_pairs_whatever_grows_the_tree() -> None:
    points = torch.tensor([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]])
    sets = SetBatch.of([points], torch.tensor([[3.0]]))
    by_points = table.labels_by(references.min_cost("proportional"))(sets)
    best_first = table.labels_by(references.min_cost("halved"), best_first=True)(sets)
    for labels in (by_points, best_first):
        assert [len(pair.unique()) for pair in labels.split(2)] == [1, 1, 1]
        assert len(labels.unique()) == 3


@pytest.mark.parametrize("network", ["sweep", "graph", "softmax"])
def test_training_writes_weights_that_load_and_solve(network: str, tmp_path: Path) -> None:
    settings = recipe.Settings(
        network=network,  # type: ignore[arg-type]
        stages=None if network == "sweep" else (2, 4) if network == "graph" else (4,),
        width=8,
        num_layers=2,
        points_each=6,
        train=TrainConfig(
            steps=2, batch_size=2, tree_samples=2, min_size=30, max_size=40, split_optimiser="adam"
        ),
    )
    trained = recipe.train_model(settings, tmp_path, quiet=True)
    again = load(tmp_path / "weights.safetensors")
    sets = KMeansTask(Gaussian(2), (4,)).sample(2, 40, rng=torch.Generator().manual_seed(0))
    trained.load_state_dict(again.state_dict())
    assert table.labels_by(again)(sets).tolist() == table.labels_by(trained.eval())(sets).tolist()


def test_every_preset_reads() -> None:
    assert {"paper", "small"} <= set(names("kmeans"))
    for name in names("kmeans"):
        read_settings(recipe.Settings, "kmeans", name, [])
    paper = read_settings(recipe.Settings, "kmeans", "paper", [])
    assert (paper.width, paper.num_layers, paper.train.batch_size) == (32, 20, 256)


def test_a_graph_network_learns_one_cut_first_then_trees_that_share_their_cuts(
    tmp_path: Path,
) -> None:
    few = TrainConfig(
        steps=2, batch_size=2, tree_samples=3, min_size=12, max_size=30, split_optimiser="adam"
    )
    settings = recipe.Settings(
        network="graph", stages=(8,), points_each=6, width=8, num_layers=2, first_stage=True,
        first=few, between=2, last=4, train=few,
    )  # fmt: skip
    trained = recipe.train_model(settings, tmp_path, quiet=True)
    assert {p.parent.name for p in tmp_path.rglob("checkpoint.pt")} == {"first", tmp_path.name}
    assert trained.growth.depth == 3
    fresh = settings.build().state_dict()
    assert all(not torch.equal(fresh[name], w) for name, w in trained.state_dict().items())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"network": "sweep", "last": 4}, "first_stage, between and last go with a graph"),
        ({"network": "softmax", "stages": (4,), "first_stage": True}, "got softmax"),
        ({"network": "graph", "stages": (4,), "between": 0}, "at least 1; got 0 and 1"),
        ({"network": "graph", "stages": (8,), "last": 4}, "both be more; got 1 and 4"),
    ],
)
def test_refuses_draws_that_no_tree_has(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipe.Settings(**wrong)


def test_refuses_stages_that_no_balanced_tree_has() -> None:
    with pytest.raises(ValueError, match="stages must be powers of 2 of at least 2; got 6"):
        recipe.Settings(network="graph", stages=(6,))
    recipe.Settings(network="graph", stages=(8,))


def test_recursive_lloyd_finds_a_hierarchy() -> None:
    """Eight pairs, two by two by two: every level's two-means is plain to see."""
    pairs = [a + b + c for a in (0.0, 100.0) for b in (0.0, 10.0) for c in (0.0, 1.0)]
    points = torch.tensor([[p + d] for p in pairs for d in (0.0, 0.1)])
    sets = SetBatch.of([points], torch.tensor([[8.0]]))
    labels = references.recursive_lloyd(sets).reshape(8, 2)
    assert (labels[:, 0] == labels[:, 1]).all()
    assert len(labels.unique()) == 8


def test_a_network_is_evaluated_on_points_it_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(table.CIFAR_VARIABLE, raising=False)
    every = recipe.evaluate(DiCoNet(SweepSplit(8), growth=Growth()), sizes=[40], num_sets=2)
    kinds = list(table.kinds(None))
    assert [r["points"] for r in every[::2]] == kinds
    ten = DiCoNet(GraphSplit(10, width=4, num_layers=1), depth=1)
    records = recipe.evaluate(ten, sizes=[40], num_sets=2)
    assert {r["points"] for r in records} == {kinds[1]}
    assert records[1]["value"] <= records[0]["value"]


def test_a_sweep_starts_as_far_from_cheap_cuts_as_asked(tmp_path: Path) -> None:
    few = TrainConfig(steps=1, batch_size=1, tree_samples=2, min_size=40, max_size=40)
    config = replace(few, split_optimiser="adam", split_lr=1e-9)
    settings = recipe.Settings(width=8, lean=7.0, train=config)
    trained = recipe.train_model(settings, tmp_path, quiet=True)
    assert trained.split.lean.tolist() == pytest.approx([7, 0, 0, 0], abs=1e-5)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"lean must go with a sweep; got 7\.0 for graph"):
        recipe.Settings(network="graph", stages=(2,), lean=7.0)


def test_init_must_fit(tmp_path: Path) -> None:
    settings = recipe.Settings(width=8, init="hull")
    with pytest.raises(ValueError, match="init must name weights of this network; hull does not"):
        recipe.train_model(settings, tmp_path, quiet=True)


def test_recursive_lloyd_costs_what_scikit_learns_two_means_does() -> None:
    """At one level it is plain two-means."""
    rng = torch.Generator().manual_seed(0)
    sets = SetBatch.pack(
        torch.rand(600, 3, generator=rng), torch.full((10,), 60), torch.full((10, 1), 2.0)
    )
    ours = table.costs(references.recursive_lloyd, sets)[0]
    theirs = table.costs(references.lloyd, sets)[0]
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), rel=0.01)
