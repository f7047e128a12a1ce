"""`reproduce --train`, its trainings stubbed: which networks the table is made from."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import diconet.problems.networks
from diconet.cli import main
from diconet.core.model import DiCoNet
from diconet.core.weights import save
from diconet.problems.catalog import built_in, find_problem
from tests.tiny import NETWORKS

TASKS = [name for name, problem in built_in().items() if problem.table]


class Recipe(SimpleNamespace):
    """A recipe that only remembers what it was asked for."""

    asked: dict[str, Any]

    def __init__(self) -> None:
        super().__init__(asked={})

    def train_all(self, runs: Path, **how: Any) -> str:
        self.asked["train"] = (runs, how)
        return "trained"

    def reproduce(self, **how: Any) -> list[dict[str, Any]]:
        self.asked["table"] = how
        return [{"row": "a", "column": "b", "metric": "c", "ours": 1.0, "paper": None}]


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Recipe]:
    made = {task: Recipe() for task in TASKS}
    for task, recipe in made.items():
        monkeypatch.setitem(vars(find_problem(task)), "recipe", recipe)
    return made


def test_the_table_is_made_from_what_was_trained(recipes: dict[str, Recipe]) -> None:
    main(["reproduce", "hull", "--train", "--json", "--num-sets", "7", "--seed", "3"])
    assert recipes["hull"].asked == {
        "train": (Path("runs"), {"quiet": True}),
        "table": {"seed": 3, "num_sets": 7, "find": "trained"},
    }
    assert recipes["tsp"].asked == {}


def test_without_training_the_networks_are_the_recipes_own(recipes: dict[str, Recipe]) -> None:
    main(["reproduce", "tsp", "--json"])
    assert recipes["tsp"].asked == {"table": {"seed": 0}}


def test_all_tables_at_once_each_with_its_own_options(
    recipes: dict[str, Recipe], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["reproduce", "all", "--json", "--train", "--cifar", str(tmp_path)])
    assert [record["task"] for record in json.loads(capsys.readouterr().out)] == TASKS
    for task, recipe in recipes.items():
        own = {"cifar": tmp_path} if task == "kmeans" else {}
        assert recipe.asked["train"][1] == {"quiet": True, **own}
        assert recipe.asked["table"] == {"seed": 0, "find": "trained", **own}


@pytest.mark.parametrize("task", TASKS)
def test_trained_networks_come_before_shipped_ones(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train_all` leaves a network for every row, but those that data or a first step lacks."""
    recipe, trained, read = find_problem(task).recipe, [], []
    load = diconet.problems.networks.load

    def train_model(settings: Any, run: Path, quiet: bool = False) -> DiCoNet:
        assert quiet
        trained.append(run)
        save(NETWORKS[task](), run / "weights.safetensors")
        return NETWORKS[task]()

    def watched(path: str | Path, **options: Any) -> DiCoNet:
        read.append(Path(path).parent)
        return load(path, **options)

    monkeypatch.setattr(recipe, "train_model", train_model)
    monkeypatch.setattr(diconet.problems.networks, "load", watched)
    find = recipe.train_all(tmp_path, quiet=True)
    names = list(find_problem(task).weights)
    for name in names:
        find(name)
    anew = {name for name, folder in zip(names, read, strict=True) if folder in trained}
    left = {name for name in names if name not in anew}
    assert anew
    assert all("cifar" in name or name in ("hull", "kmeans_start") for name in left), left


def test_a_wrong_folder_of_cifar_costs_no_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_problem("kmeans").recipe, "train_model", lambda *_: pytest.fail("ran"))
    with pytest.raises(SystemExit):
        main(["reproduce", "kmeans", "--train", "--json", "--cifar", str(tmp_path)])
    assert "cifar must be a folder that holds data_batch_1" in capsys.readouterr().err
