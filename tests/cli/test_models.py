"""Weights say what made them, and `diconet models` lists that."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diconet import __version__
from diconet.cli import main
from diconet.cli.models import NOTES, code_version, note_origin
from diconet.core.files import read_notes
from diconet.core.model import DiCoNet
from diconet.core.weights import save
from diconet.learn.config import TrainConfig
from diconet.nets.graph_split import GraphSplit
from diconet.problems.catalog import built_in, find_problem
from diconet.problems.networks import as_network
from diconet.problems.problem import Problem
from tests.tiny import NETWORKS

SHIPPED = {
    name: resource for problem in built_in().values() for name, resource in problem.weights.items()
}


@dataclass(frozen=True)
class Settings:
    """Two stages of training."""

    first: TrainConfig = field(default_factory=lambda: TrainConfig(steps=30))
    train: TrainConfig = field(default_factory=lambda: TrainConfig(steps=12, seed=4))


def noted(folder: Path, problem: Problem, *overrides: str) -> dict[str, str]:
    path = folder / "weights.safetensors"
    save(NETWORKS["hull"](), path)
    note_origin(path, problem, "small", overrides, Settings())
    return read_notes(path)


def test_training_notes_what_made_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = find_problem("hull")
    monkeypatch.setattr(type(problem), "sizes", (6, 9))
    notes = noted(tmp_path, problem, "--train.seed", "4", "--row", "a b")
    assert {name: notes[name] for name in NOTES[:4]} == {
        "preset": "small",
        "overrides": "--train.seed 4 --row 'a b'",
        "seed": "4",
        "steps": "42",
    }
    assert notes["commit"] == code_version()
    first, second = notes["figures"].split(", ")
    (record, *_) = problem.evaluate(
        model=tmp_path / "weights.safetensors", sizes=[6], num_sets=100, seed=0
    )
    assert first == f"n=6 accuracy {record['value']:.5g}"
    assert second.startswith("n=9 accuracy ")
    assert as_network(problem, tmp_path / "weights.safetensors").growth.leaf_size == 8


def test_figures_tell_what_the_network_reaches_without_the_search_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = find_problem("kmeans")
    monkeypatch.setattr(type(problem), "sizes", (320,))
    how = {"model": "kmeans_graph", "num_sets": 5}
    searched, alone = (problem.evaluate(**how, how=way)[0] for way in ({}, problem.alone))
    assert alone["value"] > searched["value"] + 0.01
    text = f"n=320 cost / Lloyd {searched['value']:.5g} (alone {alone['value']:.5g})"
    assert problem.figures(how["model"], None, num_sets=5) == text


def test_figures_are_on_points_with_as_many_coordinates_as_the_network_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = find_problem("kmeans")
    monkeypatch.setattr(type(problem), "sizes", (40,))
    save(DiCoNet(GraphSplit(10, width=4, num_layers=1), depth=1), tmp_path / "ten.safetensors")
    text = problem.figures(str(tmp_path / "ten.safetensors"), None, num_sets=2)
    assert text.startswith("n=40 cost / Lloyd ")


def test_figures_of_a_network_without_a_tree_are_those_of_its_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No search follows, so it is far from Lloyd's clusters."""
    problem = find_problem("kmeans")
    monkeypatch.setattr(type(problem), "sizes", (320,))
    name, _, value = problem.figures("kmeans_softmax", None, num_sets=5).rpartition(" ")
    assert name == "n=320 cost / Lloyd"
    assert float(value) > 1.5


def test_a_network_that_solve_does_not_take_has_no_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert noted(tmp_path, find_problem("tsp"))["figures"] == ""
    assert "no figures recorded: model must be a network for tsp" in capsys.readouterr().err


def test_the_version_is_that_of_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A commit where git tracks the package; elsewhere, as in site-packages, the version."""

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    package = tmp_path / "src" / "diconet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr("diconet.__file__", str(package / "__init__.py"))
    git("init", "-q")
    assert code_version() == __version__  # not tracked, as a virtual environment in a project
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short=10", "HEAD")
    assert code_version() == commit
    (package / "__init__.py").write_text("changed = True")
    assert code_version() == f"{commit}+"
    monkeypatch.setenv("PATH", "")
    assert code_version() == __version__  # no git


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["models", "--json"])
    records: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert {record["model"] for record in records} >= set(SHIPPED)
    assert all(list(record) == ["model", "task", *NOTES] for record in records)
    assert {record["task"] for record in records if record["model"] == record["task"]} >= set(
        built_in()
    )
    main(["models"])
    table = capsys.readouterr().out
    assert all(name in table for name in SHIPPED)


def test_every_problem_ships_its_default_network() -> None:
    assert [name for name, problem in built_in().items() if name not in problem.weights] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_say_what_made_them(name: str) -> None:
    with SHIPPED[name].open("rb") as file:
        notes = read_notes(file.name)
    missing = [one for one in NOTES if one != "overrides" and not notes.get(one)]
    assert missing == []
    assert "overrides" in notes
    assert not notes["commit"].endswith("+")


def test_few_weights_are_shipped() -> None:
    assert len(SHIPPED) <= 20
