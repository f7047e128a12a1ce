"""`reproduce --train`, its trainings stubbed: which networks the table is made from."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import diconet.weights
from diconet.cli import main
from diconet.model import DiCoNet
from diconet.recipes import hull, hull_triples, kmeans, kmeans_table, tsp
from diconet.weights import save

KINDS = ("gaussian2", "gaussian10", "cifar")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where trainings end up, with measurements that cost nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(kmeans_table.CIFAR_VARIABLE, raising=False)
    one = torch.ones(1)
    monkeypatch.setattr(hull, "_measure", lambda *views: [{"accuracy": 1.0}] * len(views[3:]))
    monkeypatch.setattr(hull_triples, "_measured", lambda *_: {"accuracy": 1.0})
    monkeypatch.setattr(kmeans_table, "costs_by_row", lambda *_, **__: {"": (one, one)})
    for way in ("beamed", "greedy", "solved"):
        monkeypatch.setattr(tsp, way, lambda model, exam, *_: exam.tours)
    return Path("runs")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The settings of every training by the name of its folder; each leaves a fresh network."""
    seen: dict[str, Any] = {}
    for task in ("hull", "kmeans", "knapsack", "tsp"):
        recipe = import_module(f"diconet.recipes.{task}")

        def train_model(
            settings: Any, run: Path, quiet: bool = False, *, recipe: Any = recipe
        ) -> DiCoNet:
            assert quiet
            seen[run.name] = settings
            model = recipe.build(settings) if recipe is tsp else settings.build()
            save(model, run / "weights.safetensors")
            return model

        monkeypatch.setattr(recipe, "train_model", train_model)
    return seen


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The networks read: run folders by their path, shipped ones by their name."""
    names: list[str] = []
    load = diconet.weights.load

    def watched(path: str | Path, **options: Any) -> DiCoNet:
        path = Path(path)
        names.append(path.stem if path.is_absolute() else str(path.parent))
        return load(path, **options)

    monkeypatch.setattr(diconet.weights, "load", watched)
    return names


def reproduced(task: str, read: list[str], *options: str) -> set[str]:
    """The networks that went into the table."""
    recipe = import_module(f"diconet.recipes.{task}")
    table: Callable[..., Any] = recipe.reproduce
    with pytest.MonkeyPatch.context() as patch:

        def reproduce(**how: Any) -> Any:
            read.clear()  # what was read while training does not count
            return table(**how)

        patch.setattr(recipe, "reproduce", reproduce)
        main(["reproduce", task, "--train", "--json", "--num-sets", "1", *options])
    return set(read)


def test_hull(runs: Path, trained: dict[str, Any], read: list[str]) -> None:
    names = [f"{b.prefix}_{row}" for b in hull.BLOCKS for row in get_args(hull.Row)]
    assert reproduced("hull", read) == {f"runs/{name}" for name in names} | {"hull"}
    assert set(trained) == set(names)
    assert trained["hull_plain_random"].init == "runs/hull_plain_baseline/weights.safetensors"


def test_knapsack(runs: Path, trained: dict[str, Any], read: list[str]) -> None:
    expected = {f"runs/knapsack_{preset}" for preset in ("baseline", "paper", "small")}
    assert reproduced("knapsack", read) == expected


def test_tsp(runs: Path, trained: dict[str, Any], read: list[str]) -> None:
    expected = {f"runs/tsp_{preset}" for preset in ("bs1", "bs2", "paper", "small")}
    assert reproduced("tsp", read) == expected
    first = "runs/tsp_bs1/weights.safetensors"
    assert trained["tsp_bs2"].start == trained["tsp_paper"].leaf == first
    assert next(iter(trained)) == "tsp_bs1"


def kmeans_runs(*kinds: str) -> set[str]:
    graphs = {f"runs/kmeans_{kind}" for kind in kinds}
    plain = {f"runs/kmeans_baseline_{kind}_k{k}" for kind in kinds for k in (4, 8, 16)}
    return {"runs/kmeans_small"} | graphs | plain


def test_kmeans_without_cifar(runs: Path, trained: dict[str, Any], read: list[str]) -> None:
    """Its patches are cut by the shipped networks."""
    patches = {"kmeans_graph_cifar", *(f"kmeans_softmax_cifar_k{k}" for k in (4, 8, 16))}
    assert reproduced("kmeans", read) == kmeans_runs(*KINDS[:2]) | patches
    assert trained["kmeans_small"].init == "runs/kmeans_start/weights.safetensors"


def test_kmeans_with_cifar(
    runs: Path, trained: dict[str, Any], read: list[str], tmp_path: Path
) -> None:
    for subset in ("data_batch_1", "test_batch"):
        images = np.zeros((2, 3_072), np.uint8)
        (tmp_path / subset).write_bytes(pickle.dumps({b"data": images}, protocol=2))
    assert reproduced("kmeans", read, "--cifar", str(tmp_path)) == kmeans_runs(*KINDS)
    assert trained["kmeans_baseline_cifar_k8"].cifar == str(tmp_path)


def test_a_wrong_folder_of_cifar_costs_no_training(
    runs: Path, trained: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "kmeans", "--train", "--json", "--cifar", str(tmp_path)])
    assert "cifar must be a folder that holds data_batch_1" in capsys.readouterr().err
    with pytest.raises(ValueError, match="cifar must be a folder"):
        kmeans.train_all(tmp_path / "runs", cifar=tmp_path)
    assert trained == {}


def test_without_training_all_networks_are_the_shipped_ones(
    runs: Path, read: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tsp.build(tsp.Settings(width=4, num_layers=1)), runs / "tsp_small/weights.safetensors")
    main(["reproduce", "tsp", "--json", "--num-sets", "1"])
    assert set(read) == {"tsp", "tsp_bs1", "tsp_bs2", "tsp_paper"}
    assert len(json.loads(capsys.readouterr().out)) == 3 * 4 * 15
