from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.problems.knapsack.instance import spare_bits, whole_numbers, without
from diconet.problems.knapsack.pack import PackMerge
from diconet.problems.knapsack.recipe import Settings
from diconet.problems.knapsack.solve import knapsack
from tests.problems.knapsack.test_task import brute_force

MODEL = Settings(width=8).build().eval()
PAPER = Settings(split="fill", width=8, num_layers=1).build().eval()


def exact_weight(weights: list, chosen: np.ndarray) -> Fraction:
    return sum((ratio(weights[i]) for i in chosen), Fraction(0))


def ratio(number) -> Fraction:
    return Fraction(*number.as_integer_ratio())


numbers = st.one_of(
    st.floats(0, 1e3),
    st.floats(0, 1e300),
    st.integers(0, 2**80),
    st.fractions(0, 3, max_denominator=9),
    st.decimals(0, 1, places=2),
    st.sampled_from([0, 0.1, 0.2, 0.3, 1e-300, 5e-324]),
)


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(st.tuples(st.floats(-10, 1e6), numbers), max_size=10),
    capacity=numbers,
    seed=st.none() | st.integers(0, 5),
    model=st.sampled_from([MODEL, PAPER]),
)
def test_the_capacity_is_never_exceeded_in_exact_arithmetic(items, capacity, seed, model):
    values, weights = [v for v, _ in items], [w for _, w in items]
    packing = knapsack(values, weights, capacity, model=model, seed=seed)
    assert exact_weight(weights, packing.chosen) <= ratio(capacity)
    assert packing.bound >= packing.value
    assert all(values[i] > 0 for i in packing.chosen)


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=9),
    capacity=st.integers(0, 100),
)
def test_small_ones_are_solved_and_the_bound_holds(items, capacity):
    array = np.array(items, dtype=float)
    packing = knapsack(array[:, 0], array[:, 1], capacity, model=MODEL)
    best = brute_force(array, capacity)
    assert packing.value == best
    assert packing.bound == best
    assert packing.weight == array[packing.chosen, 1].sum() <= capacity


def test_thirds_and_tenths_are_what_their_doubles_are():
    """0.1 + 0.2 is more than 0.3 in float64, and 1/10 of 3 is a hair less than its double."""
    assert len(knapsack([1, 1], [0.1, 0.2], 0.3, model=MODEL).chosen) == 1
    assert len(knapsack([1, 1], [0.1, 0.2], 0.1 + 0.2, model=MODEL).chosen) == 2


def test_integers_that_float64_cannot_hold_stay_exact():
    big = 2**70
    assert knapsack([1, 1], [big, big + 1], 2 * big, model=MODEL).chosen.tolist() in ([0], [1])
    assert knapsack([1, 1], [big, big + 1], 2 * big + 1, model=MODEL).chosen.tolist() == [0, 1]
    close = np.array([2**62, 2**62 + 1])
    assert len(knapsack([1, 1], close, 2**63, model=MODEL).chosen) == 1


@pytest.mark.parametrize(
    ("weights", "capacity"),
    [
        ([2**53 + 1, 0.5], 2**53),
        ([Fraction(2, 3), Fraction(1, 3)], Fraction(10**20 - 1, 10**20)),
        ([Decimal("0.7"), Decimal("0.2")], Decimal("0.89999999999999999999")),
        (np.array([1 / np.longdouble(3), 2 / np.longdouble(3)]), 1 - np.longdouble(2) ** -60),
    ],
    ids=["integer beside float", "fractions", "decimals", "long doubles"],
)
def test_numbers_that_float64_would_round_stay_what_they_are(weights, capacity):
    packing = knapsack([5, 1], weights, capacity, model=MODEL)
    assert exact_weight(weights, packing.chosen) <= ratio(capacity)
    assert len(packing.chosen) == 1


def test_rounding_to_whole_numbers_is_on_the_safe_side():
    weights, unit = whole_numbers([0.1, 1e-30])
    assert [w * unit for w in weights] == [Fraction(0.1), Fraction(1e-30)]
    bits = spare_bits(weights, 61)
    up, down = (without(weights, bits, up=up).tolist() for up in (True, False))
    assert bits > 0
    assert all(d << bits <= w <= u << bits for d, w, u in zip(down, weights, up, strict=True))
    assert up[1] == 1
    assert down[1] == 0


def test_weightless_items_are_always_taken_and_hopeless_ones_never():
    packing = knapsack([1, 2, 3, -1, 9], [0, 0, 5, 0, 100], 4, model=MODEL)
    assert packing.chosen.tolist() == [0, 1]
    assert packing.gap == 0
    assert "proven optimal" in repr(packing)


def test_nothing_to_choose_from():
    assert knapsack([], [], 3, model=MODEL).chosen.tolist() == []
    (alone,) = knapsack([[]], [[]], [3], model=MODEL)
    assert alone.chosen.tolist() == []
    for order in (1, -1):
        items = [[], [1, 2]][::order]
        found = knapsack(items, items, 5, model=MODEL)[::order]
        assert [packing.chosen.tolist() for packing in found] == [[], [0, 1]]
    assert knapsack([1.0], [2.0], 1, model=MODEL).gap == 0
    assert knapsack([1.0, 2.0], [1.0, 1.0], 0, model=MODEL).value == 0


def test_several_are_solved_as_each_alone():
    rng = np.random.default_rng(0)
    values = [rng.random(n) for n in (5, 40, 200)]
    weights = [rng.random(n) for n in (5, 40, 200)]
    capacities = [1.0, 10, 50]
    together = knapsack(values, weights, capacities, model=MODEL)
    for i, packing in enumerate(together):
        alone = knapsack(values[i], torch.tensor(weights[i]), capacities[i], model=MODEL)
        assert np.array_equal(alone.chosen, packing.chosen)
    same = knapsack(np.stack([values[1]] * 2), np.stack([weights[1]] * 2), 10, model=MODEL)
    assert np.array_equal(same[0].chosen, same[1].chosen)


def test_the_tree_ends_in_what_is_taken_and_what_is_left():
    rng = np.random.default_rng(1)
    packing = knapsack(rng.random(80), rng.random(80), 20, model=MODEL)
    assert set(packing.tree[0]) == {0}
    last = packing.tree[len(packing.tree) - 1]
    left = np.setdiff1d(np.arange(80), packing.chosen)
    assert len(set(last[left])) == 1
    assert not set(last[left]) & set(last[packing.chosen])
    assert packing.plot().get_title().startswith("knapsack")


def test_the_same_seed_gives_the_same_answer():
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 10**9, 60)
    capacity = int(weights.sum()) // 3
    a, b = (knapsack(weights, weights, capacity, model=MODEL, seed=4) for _ in range(2))
    assert np.array_equal(a.chosen, b.chosen)


def test_one_thread_and_two_give_the_same_answer():
    rng, before = np.random.default_rng(4), torch.get_num_threads()
    weights = rng.integers(1, 10**9, 200)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(
            knapsack(weights + 10**8, weights, int(weights.sum()) // 3, model=MODEL, seed=4)
        )
    torch.set_num_threads(before)
    assert np.array_equal(found[0].chosen, found[1].chosen)
    assert found[0].bound == found[1].bound


def test_long_decimals_are_solved_as_exactly_as_they_can_be():
    """Numbers of very different size have no unit in which all are short: rounding is safe."""
    rng = np.random.default_rng(3)
    values, weights = rng.random(30) * 10.0 ** rng.integers(-9, 3, (2, 30))
    packing = knapsack(values, weights, 0.3 * weights.sum(), model=MODEL)
    assert exact_weight(weights.tolist(), packing.chosen) <= Fraction(0.3 * weights.sum())
    assert packing.gap < 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1], 3), r"weights must be as many as values, 2; got 1"),
        (([1, 2], [1, -1], 3), r"weights must be at least 0; got -1.0 at 1"),
        (([1, 2], [1, 1], -3), r"capacity must be one number of at least 0; got -3"),
        (([1, float("nan")], [1, 1], 3), r"values must be finite; got nan"),
        (([[1, 2], [3, 4]], [[1, 2]], 3), r"weights must be one per instance, 2; got 1"),
    ],
)
def test_wrong_inputs_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        knapsack(*arguments, model=MODEL)


def test_a_dense_model_says_what_it_cannot_do():
    with pytest.raises(ValueError, match=r"at most 5000 for this model.*got 6000"):
        knapsack(np.ones(6_000), np.ones(6_000), 9, model=PAPER)


def test_only_the_values_that_could_be_packed_have_to_add_up():
    assert knapsack([1e308, 1e308], [1, 9], 5, model=MODEL).value == 1e308
    assert knapsack([-1e308, -1e308, 2], [1, 1, 1], 5, model=MODEL).value == 2
    assert knapsack([1, 1], [1e308, 1e308], 1.5e308, model=MODEL).value == 1


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_split_that_knows_no_budget_does_not_overfill(depth: int) -> None:
    """Its parts are each given all of the room, and were once all packed."""
    rng = np.random.default_rng(0)
    values, weights = rng.integers(1, 100, (2, 30))
    model = DiCoNet(RandomSplit(), PackMerge(), depth=depth)
    found = knapsack(values, weights, 300, model=model)
    assert 0 < weights[found.chosen].sum() <= 300
    assert found.gap > 0
