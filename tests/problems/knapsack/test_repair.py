from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.problems.knapsack import search
from diconet.problems.knapsack.ablate import ablate
from diconet.problems.knapsack.classes import CLASSES, draw
from diconet.problems.knapsack.flip_score import FlipScore
from diconet.problems.knapsack.frontier_kernels import best_pair, join
from diconet.problems.knapsack.repair import CORE_GROWTH, CoreSplit, FrontierMerge
from diconet.problems.knapsack.search import Hunt, batch_of, run
from diconet.problems.knapsack.task import optimum_of
from tests.problems.knapsack.test_task import brute_force


def instance(kind: str, size: int, largest: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    return draw(kind, size, largest, np.random.default_rng(seed))


def network(split: CoreSplit | None = None, growth: Growth = CORE_GROWTH) -> DiCoNet:
    return DiCoNet(split or CoreSplit(), FrontierMerge(), growth).eval()


def solved(
    values: np.ndarray, weights: np.ndarray, room: int, model: DiCoNet, seed: int = 0
) -> Hunt:
    hunt = Hunt.of(np.asarray(values), np.asarray(weights), room)
    run([hunt], model, torch.tensor([seed]))
    assert weights[hunt.chosen].sum() <= room
    assert values[hunt.chosen].sum() == hunt.prices.best <= hunt.prices.bound
    return hunt


def as_list(*choices: tuple[int, int, float]) -> tuple[np.ndarray, ...]:
    """Weight, value and loss of choices; the second loss is 0."""
    weight, value, loss = zip(*choices, strict=True)
    return np.array(weight), np.array(value), np.array(loss, float), np.zeros(len(loss))


def test_a_join_keeps_what_is_within_the_budget_and_not_dominated():
    """1+2 loses too much, and (3, 3) is no better than the lighter (2, 4)."""
    a, b = as_list((0, 0, 0.0), (2, 4, 1.0)), as_list((0, 0, 0.0), (3, 3, 1.5))
    weight, value, loss, _, left, right, whole = join(*a, *b, 2.0, 0.0, 9, 0.0)
    assert list(zip(weight, value, loss, left, right, strict=True)) == [
        (0, 0, 0, 0, 0),
        (2, 4, 1, 1, 0),
    ]
    assert whole


def test_a_join_of_too_many_pairs_says_so():
    many = as_list(*((i, i, 0.0) for i in range(10)))
    weight, *_, whole = join(*many, *many, 1.0, 0.0, 25, 0.0)
    assert not whole
    assert 5 <= len(weight) <= 25


def test_the_best_pair_by_hand():
    """Room 5: 4 + 1 is worth 11; 5 + 0 only 9."""
    a, b = as_list((0, 0, 0.0), (4, 8, 0.0), (5, 9, 0.0)), as_list((0, 0, 0.0), (1, 3, 0.0))
    assert best_pair(*a[:2], *b[:2], 5) == (11, 1, 1)
    assert best_pair(*a[:2], *b[:2], -1)[1:] == (-1, -1)


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(CLASSES),
    size=st.integers(1, 10),
    largest=st.sampled_from([5, 100, 10**9]),
    seed=st.integers(0, 10**6),
)
def test_tiny_knapsacks_are_solved_and_proven(kind, size, largest, seed):
    values, weights, room = instance(kind, size, largest, seed)
    fits = weights <= room
    if not fits.any():
        return
    hunt = solved(values[fits], weights[fits], room, network(), seed)
    assert hunt.prices.proven
    assert hunt.prices.best == brute_force(np.column_stack([values, weights]), room)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(CLASSES),
    size=st.sampled_from([7, 8, 9, 15, 16, 17, 31, 33, 40]),
    seed=st.integers(0, 10**6),
)
def test_sizes_around_the_limits_of_leaf_and_core(kind, size, seed):
    values, weights, room = instance(kind, size, 1_000, seed)
    fits = weights <= room
    values, weights = values[fits], weights[fits]
    hunt = solved(values, weights, room, network(), seed)
    assert hunt.prices.proven
    assert hunt.prices.best == values[optimum_of((values, weights, room))].sum()


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("largest", [10**4, 10**9])
def test_fifty_items_of_every_class_are_proven(kind, largest):
    hunts = [solved(*instance(kind, 50, largest, seed), network()) for seed in range(3)]
    assert sum(hunt.prices.proven for hunt in hunts) >= (2 if kind == "subset sum" else 3)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_thousand_items_are_within_a_millionth(kind):
    hunt = solved(*instance(kind, 1_000, 10**6, 1), network())
    assert hunt.prices.bound - hunt.prices.best <= 1e-6 * hunt.prices.best


@pytest.mark.parametrize(
    "model",
    [
        network(CoreSplit(deal="random")),
        network(CoreSplit(FlipScore(4), choose=True)),
        network(growth=Growth(depth=1)),
    ],
    ids=["random", "learned", "no division"],
)
def test_any_division_proves_the_same_optimum(model):
    for seed in range(3):
        one = instance("weakly", 60, 10**6, seed)
        assert solved(*one, model).prices.best == solved(*one, network()).prices.best


def test_repair_never_lowers_the_value(monkeypatch):
    """Tree after tree, the best choice known only gets better, even where trees are thinned out."""
    monkeypatch.setattr(search, "PAIRS", (16, 32, 64, 128))
    for kind in CLASSES:
        hunt = Hunt.of(*instance(kind, 200, 10**9, 3))
        before, model = hunt.prices.best, network()
        while not hunt.over:
            answer = model(batch_of([hunt]), torch.tensor([hunt.round])).answer
            hunt.learn(answer, 0, answer.chosen.numpy())
            assert hunt.prices.best >= before
            assert hunt.prices.weights[hunt.chosen].sum() <= hunt.prices.room
            before = hunt.prices.best


def test_a_thinned_tree_proves_nothing(monkeypatch):
    monkeypatch.setattr(search, "PAIRS", (4,))
    hunt = solved(*instance("subset sum", 100, 10**9, 0), network())
    assert not hunt.prices.proven


def test_the_same_in_a_batch_as_alone():
    several = [instance(kind, 40, 10**6, 5) for kind in CLASSES]
    hunts = [Hunt.of(*one) for one in several]
    run(hunts, network(), torch.arange(len(hunts)))
    for seed, (one, hunt) in enumerate(zip(several, hunts, strict=True)):
        assert np.array_equal(solved(*one, network(), seed).chosen, hunt.chosen)


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"width must be at least 1; got 0"):
        FlipScore(0)


def test_ablation_has_a_record_for_every_way_and_size():
    records = ablate(0.001, [10, 20], seed=1)
    assert {record["size"] for record in records} == {10, 20}
    assert len({record["row"] for record in records}) == 5
    assert all(r["value"] >= 0 for r in records if r["metric"] == "gap_ppm")
    with pytest.raises(ValueError, match=r"seconds must be above 0; got 0"):
        ablate(0)
