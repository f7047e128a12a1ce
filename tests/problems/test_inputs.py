"""What users pass in, of whatever type, gives the same plain NumPy answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from jaxtyping import TypeCheckError

import diconet
from diconet.problems.inputs import check_amount, check_count, check_seed, is_many
from tests.tiny import NETWORKS, save_networks

POINTS = np.random.default_rng(0).random((12, 2))


class Frame:
    """As much of a DataFrame or Series as any library's has."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.ndim = values.ndim
        self.shape = values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


FORMS: list[Callable[[np.ndarray], Any]] = [
    lambda x: x,
    lambda x: x.tolist(),
    lambda x: tuple(tuple(row) if np.ndim(row) else row for row in x.tolist()),
    lambda x: torch.from_numpy(x).requires_grad_(),
    Frame,
    np.asfortranarray,
]


def solvers() -> dict[str, Callable[[Any], Any]]:
    models = {task: make() for task, make in NETWORKS.items()}
    return {
        "indices": lambda x: diconet.convex_hull(x, model=models["hull"]),
        "labels": lambda x: diconet.kmeans(x, k=3, model=models["kmeans"]),
        "tour": lambda x: diconet.tsp(x, kicks=1, model=models["tsp"]),
    }


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_no_instances_at_all_is_said_in_a_line(make: Callable[..., Any]) -> None:
    """It ended in an IndexError in k-means, and in messages that were not ours elsewhere."""
    none = make((0, 3, 2))
    calls: list[Callable[[], Any]] = [
        lambda: diconet.convex_hull(none),
        lambda: diconet.kmeans(none, 2),
        lambda: diconet.tsp(none),
        lambda: diconet.knapsack(make((0, 3)), make((0, 3)), 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="there must be one instance or more; got an array"):
            call()


@pytest.mark.parametrize("answer", ["indices", "labels", "tour"])
def test_points_of_any_type(answer: str) -> None:
    solve = solvers()[answer]
    expected = solve(POINTS)
    assert isinstance(getattr(expected, answer), np.ndarray)
    assert isinstance(expected.value, float)
    assert expected.value > 0
    assert len(expected.tree[-1]) == len(POINTS)
    assert len(repr(expected)) < 120
    for form in FORMS:
        found = solve(form(POINTS))
        assert np.array_equal(getattr(found, answer), getattr(expected, answer))
        assert found.value == expected.value
        many = solve([form(POINTS), form(POINTS[:7])])
        assert isinstance(many, list)
        assert np.array_equal(getattr(many[0], answer), getattr(expected, answer))
        assert len(many[1].tree[-1]) == 7
    assert len(solve(torch.from_numpy(np.stack([POINTS, POINTS])))) == 2


def test_knapsacks_of_any_type() -> None:
    model = NETWORKS["knapsack"]()
    values, weights = np.random.default_rng(1).integers(1, 50, (2, 10)).astype(float)
    expected = diconet.knapsack(values, weights, 90, model=model)
    assert isinstance(expected.chosen, np.ndarray)
    assert len(repr(expected)) < 120
    for form in FORMS:
        found = diconet.knapsack(form(values), form(weights), np.float64(90), model=model)
        assert np.array_equal(found.chosen, expected.chosen)
        many = diconet.knapsack([form(values)] * 2, [form(weights)] * 2, [90, 0], model=model)
        assert np.array_equal(many[0].chosen, expected.chosen)
        assert len(many[1].chosen) == 0


@pytest.mark.parametrize(
    ("values", "many"),
    [
        ([[1, 2], [3, 4]], False),
        ([[[1, 2]], [[3, 4]]], True),
        ([np.zeros((3, 2))], True),
        (np.zeros((3, 2)), False),
        (np.zeros((1, 3, 2)), True),
        ([torch.zeros(2), torch.zeros(2)], False),
        ([], False),
        ("points", False),
        (None, False),
        ([[]], False),
        ([[[]]], True),
    ],
)
def test_one_or_many(values: Any, many: bool) -> None:
    assert is_many(values, dims=2) == many


@pytest.mark.parametrize("seed", [-1, 2**63, True, "1", 1.0])
def test_seeds_that_no_generator_takes(seed: Any) -> None:
    with pytest.raises((ValueError, TypeCheckError), match=r"seed"):
        check_seed(seed)


def test_seeds_that_every_generator_takes() -> None:
    assert [check_seed(seed) for seed in (None, 0, 2**63 - 1)] == [None, 0, 2**63 - 1]
    for answer, solve in seeded().items():
        assert getattr(solve(2**63 - 1), answer) is not None


def seeded() -> dict[str, Callable[[int], Any]]:
    models = {task: make() for task, make in NETWORKS.items()}
    return {
        "indices": lambda seed: diconet.convex_hull(POINTS, seed=seed, model=models["hull"]),
        "labels": lambda seed: diconet.kmeans(POINTS, k=3, seed=seed, model=models["kmeans"]),
        "chosen": lambda seed: diconet.knapsack([1], [1], 1, seed=seed, model=models["knapsack"]),
        "tour": lambda seed: diconet.tsp(POINTS, kicks=1, seed=seed, model=models["tsp"]),
    }


@pytest.mark.parametrize("value", [-1, 2.5, True, "a", None])
def test_counts_are_whole_and_large_enough(value: Any) -> None:
    with pytest.raises(ValueError, match=r"n must be a whole number of at least 0; got "):
        check_count(value, "n", least=0)
    assert check_count(np.int32(0), "n", least=0) == 0


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "a", None])
def test_amounts_are_finite_and_not_negative(value: Any) -> None:
    with pytest.raises(ValueError, match=r"n must be a finite number of at least 0; got "):
        check_amount(value, "n")
    assert check_amount(np.float32(0.5), "n") == 0.5


def test_a_network_may_be_a_path(tmp_path: Path) -> None:
    path = Path(save_networks(tmp_path)["hull"])
    by_path = diconet.convex_hull(POINTS, model=path)
    by_name = diconet.convex_hull(POINTS, model=str(path))
    assert np.array_equal(by_path.indices, by_name.indices)


ODD: list[tuple[Any, str]] = [
    (None, "an array or a list; got None"),
    ((row for row in [[0, 1]]), "an array or a list; got a generator"),
    ({(0, 1)}, "an array or a list; got a set"),
    ({"x": [0, 1]}, "an array or a list; got a dict"),
    (torch.zeros(3, 2, dtype=torch.complex64), "numbers; got .*: not real"),
    (torch.zeros(3, 2, device="meta"), "numbers; got Tensor"),
    (pd.DataFrame({"name": ["a", "b"], "x": [0, 1]}), "numbers; got a table with 'name'"),
]


@pytest.mark.parametrize(("values", "message"), ODD)
@pytest.mark.parametrize("answer", ["indices", "labels", "tour", "chosen"])
def test_what_is_no_array_gets_a_line_of_ours(answer: str, values: Any, message: str) -> None:
    def pack(values: Any) -> Any:
        return diconet.knapsack(values, [1, 2, 3], 3, model=NETWORKS["knapsack"]())

    solve = pack if answer == "chosen" else solvers()[answer]
    with pytest.raises(ValueError, match=f"(points|cities|values) must be {message}"):
        solve(values)


def test_tensors_that_numpy_does_not_know() -> None:
    points = torch.tensor([[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]])
    solve = solvers()["indices"]
    for form in (points.to(torch.bfloat16), points.float().to_sparse(), points.half()):
        assert solve(form).indices.tolist() == [0, 1, 2, 3]
    values = torch.tensor([3, 1], dtype=torch.bfloat16)
    packing = diconet.knapsack(values, values, 3, model=NETWORKS["knapsack"]())
    assert packing.chosen.tolist() == [0]
