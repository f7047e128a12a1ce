"""Learned algorithms: sound tasks, exact merges of the textbook, and exact ones that learned."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diconet.cli import main
from diconet.core.answers import Sequences
from diconet.core.check import check_task, random_order
from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.problems.algorithms.certificates import PROOFS
from diconet.problems.algorithms.measure import divided_by
from diconet.problems.algorithms.recipe import COUNTS, built, middle
from diconet.problems.algorithms.tasks import TASKS, TEST_KINDS
from diconet.problems.catalog import find_problem
from diconet.problems.networks import shipped
from tests.problems.algorithms.textbook import textbook

ANY_DIVISION = ("sort", "closest", "skyline")
"""Problems whose textbook merge is right however the input was divided."""


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# The tasks.


def two_of(sets: SetBatch, seeds: torch.Tensor) -> Sequences:
    """Two items of every set by chance."""
    order = random_order(sets, seeds)
    return Sequences(
        order.places.reshape(len(sets), -1)[:, :2].flatten(), 2 * torch.ones_like(seeds)
    )


def run_of(sets: SetBatch, seeds: torch.Tensor) -> Sequences:
    ends = two_of(sets, seeds).places.reshape(-1, 2).sort(1)[0].tolist()
    return Sequences.of([torch.arange(start, stop + 1) for start, stop in ends])


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_sound(name: str) -> None:
    check_task(TASKS[name](), guess={"closest": two_of, "subarray": run_of}.get(name))


def by_hand(name: str, items: np.ndarray, k: int) -> Any:
    """What the right answer is worth, by trying everything."""
    values = items[:, 0].tolist()
    if name == "sort":
        return sorted(values)
    if name == "select":
        return sorted(values)[k - 1]
    if name == "subarray":
        ends = combinations(range(len(values) + 1), 2)
        return max(sum(values[start:stop]) for start, stop in ends)
    if name == "closest":
        pairs = combinations(range(len(items)), 2)
        return min(float(np.square(items[i] - items[j]).sum()) for i, j in pairs)
    beats = [(a <= b).all() and (a != b).any() for b in items for a in items]
    return np.flatnonzero(~np.reshape(beats, (len(items), -1)).any(1)).tolist()


def worth(name: str, items: np.ndarray, answer: np.ndarray) -> Any:
    if name == "sort":
        return items[answer, 0].tolist()
    if name == "select":
        return items[answer[0], 0]
    if name == "subarray":
        return sum(items[answer, 0].tolist())
    if name == "closest":
        return float(np.square(items[answer[0]] - items[answer[1]]).sum())
    return sorted(answer.tolist())


@pytest.mark.parametrize("name", TASKS)
def test_oracles_find_what_trying_everything_finds(name: str) -> None:
    task = TASKS[name]()
    for size in (2, 3, 9):
        sets = task.sample(2 * len(TEST_KINDS), size, rng=rng(size))
        answers = task.oracle(sets).unpack()
        for number, items in enumerate(sets.unpack()):
            k = int(sets.context[number, 0]) if name == "select" else 0
            found = worth(name, items.numpy(), answers[number].numpy())
            assert found == by_hand(name, items.numpy(), k)


@pytest.mark.parametrize("name", TASKS)
def test_proofs_accept_what_is_right_and_nothing_else(name: str) -> None:
    task = TASKS[name]()
    sets = task.sample(10, 12, rng=rng(1))
    right = task.oracle(sets)
    draws = torch.Generator().manual_seed(4)
    refused = 0
    for number, items in enumerate(sets.unpack()):
        given = sets.context[number].numpy()
        answer = right.unpack()[number].numpy()
        assert PROOFS[name](items.numpy(), answer, given)
        for _ in range(20):
            size = len(answer)
            other = torch.randperm(12, generator=draws)[:size].numpy()
            if name == "subarray":
                other = np.sort(other)
            one = SetBatch.of([items], sets.context[number : number + 1])
            truly = bool(task.right(one, Sequences.of([torch.from_numpy(other)])))
            if not (name == "subarray" and (np.diff(other) != 1).any()):
                assert PROOFS[name](items.numpy(), other, given) == truly
                refused += not truly
    assert refused > 20


def test_a_proof_needs_every_item_once() -> None:
    items = np.array([[1.0], [1.0], [2.0]])
    assert not PROOFS["sort"](items, np.array([0, 0, 2]), np.zeros(0))
    assert not PROOFS["sort"](items, np.array([0, 2]), np.zeros(0))
    assert PROOFS["sort"](items, np.array([1, 0, 2]), np.zeros(0))


# The textbook's merges in the same trees.


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_the_textbook_in_the_same_tree_equals_the_oracle(name: str, size: int) -> None:
    if name == "closest" and size == 1:
        pytest.skip("there are no two points")
    task, model = TASKS[name](), textbook(name)
    sets = task.sample(25, size, rng=rng(size))
    seeds = seeds_from(rng(2), 25)
    with torch.no_grad():
        assert task.right(sets, model(sets).solution).all()
        assert task.right(sets, model(sets, seeds).solution).all()
        halved = divided_by(model, middle(name))
        assert task.right(sets, halved(sets).solution).all()
        if name in ANY_DIVISION:
            coins = divided_by(model, RandomSplit())
            assert task.right(sets, coins(sets, seeds).solution).all()


def test_selection_looks_at_few_items() -> None:
    """Closed sides are not cut again: the whole way down costs a few times the input."""
    task, model = TASKS["select"](("uniform",)), textbook("select")
    model.split.split.place.data.zero_()
    sets = task.sample(1, 4_000, rng=rng())
    with torch.no_grad():
        work = model(sets).answer.work
    assert 4_000 <= float(work) <= 4 * 4_000


# What is learned.


@pytest.mark.parametrize("name", TASKS)
def test_random_weights_are_wrong(name: str) -> None:
    task = TASKS[name](("uniform",))
    sets = task.sample(20, 64, rng=rng())
    right = []
    for seed in range(6):
        model = built(name, seed).eval()
        with torch.no_grad():
            right.append(float(task.right(sets, model(sets).solution).double().mean()))
    assert np.mean(right) < 0.05


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(("size", "num_sets"), [(64, 100), (1_000, 10), (20_000, 5)])
def test_shipped_networks_are_right(name: str, size: int, num_sets: int) -> None:
    problem = find_problem(name)
    (accuracy, proved) = problem.evaluate(sizes=[size], num_sets=num_sets, seed=3)
    assert (accuracy["metric"], accuracy["value"]) == ("accuracy", 100.0)
    assert proved["metric"] == "proved"
    assert proved["value"] >= 80.0 if name == "closest" else proved["value"] == 100.0


@pytest.mark.parametrize("name", TASKS)
def test_a_short_training_learns_and_is_settled(name: str, tmp_path: Path) -> None:
    recipe = find_problem(name).recipe
    settings = recipe.Settings(train=recipe.Settings().train.__class__(steps=2, max_size=8))
    model = recipe.train_model(settings, tmp_path, quiet=True)
    assert not model.training
    sets = TASKS[name]().sample(3, 9, rng=rng())
    again = find_problem(name).solve(find_problem(name).fresh(9, 3, 0), model=tmp_path)
    assert len(again) == len(sets) == 3


# The command line.


@pytest.mark.parametrize(
    ("command", "text", "answer"),
    [
        (["sort"], "3\n1\n2\n", {"order": [1, 2, 0]}),
        (["select", "--k", "2"], "3\n1\n2\n", {"chosen": [2]}),
        (["subarray"], "-1\n2\n-1\n3\n-9\n", {"chosen": [1, 2, 3], "value": 4.0}),
        (["closest"], "x,y\n0,0\n5,5\n5,6\n", {"chosen": [1, 2], "value": 1.0}),
        (["skyline"], "x,y\n0,2\n1,1\n2,2\n", {"chosen": [0, 1], "value": 2.0}),
    ],
)
def test_files_are_solved(
    command: list[str],
    text: str,
    answer: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text(text)
    main(["solve", command[0], str(file), *command[1:], "--json"])
    (record,) = json.loads(capsys.readouterr().out)
    assert record["exact"]
    assert {name: record[name] for name in answer} == answer


def test_selection_needs_k(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("3\n1\n2\n")
    with pytest.raises(SystemExit):
        main(["solve", "select", str(file)])
    assert "k must be given" in capsys.readouterr().err


def test_the_table_has_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diconet.problems.algorithms.recipe.COUNTS", {64: 1_000})
    records = find_problem("sort").recipe.reproduce(num_sets=5)
    rows = {record["row"] for record in records if record["metric"] == "accuracy"}
    assert rows == {"hull"} | {
        f"{name}{how}" for name in TASKS for how in ("", ", random division", ", median division")
    }
    ours = {r["row"]: r["ours"] for r in records if r["metric"] == "accuracy"}
    assert all(ours[name] == 100.0 for name in TASKS)
    assert max(COUNTS) == 1_000_000
    assert shipped("sort").merge is not None
