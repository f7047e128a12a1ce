from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.problems.knapsack.prices import Prices, fraction_at
from tests.problems.knapsack.test_task import FOUR, brute_force

VALUES, WEIGHTS = np.array(FOUR, dtype=np.int64).T


def test_the_fractional_optimum_by_hand():
    """At price 0: 6/2 and 10/4 fit 7, and a quarter of 8/4 for the room of 1: 16 + 2."""
    one = fraction_at(VALUES, WEIGHTS, 7, 0)
    assert (one.worth, one.rate, one.count) == (18, 2, 2.25)
    assert one.taken.tolist() == [True, True, False, False]
    assert one.losses.tolist() == [10 - 8, 6 - 4, 0, 2 - 1]


def test_a_price_is_paid_for_every_item():
    """At price 5, values 5/4, 1/2, 3/4 and -4/1: the first, and three quarters of the third."""
    one = fraction_at(VALUES, WEIGHTS, 7, 5)
    assert (one.worth, one.rate, one.count) == (5 + 0.75 * 3, 0.75, 1.75)
    assert one.losses.tolist() == [5 - 3, abs(1 - 1.5), 0, 4 + 0.75]


def test_where_value_is_weight_plus_a_constant_that_constant_is_the_price():
    """Of 2, 3, 5 and 9 with 10 more each, at most three fit 12: 12 + 30 is the bound, not 46."""
    weights = np.array([2, 3, 5, 9])
    prices = Prices(weights + 10, weights, 12, best=40)
    assert prices.bound > 42
    prices.search()
    assert prices.bound == 42
    assert prices.counts() == (3, 3)


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=9),
    room=st.integers(0, 120),
    price=st.integers(-40, 40),
)
def test_no_bound_is_below_the_optimum(items, room, price):
    items = np.array(items)
    fits = items[items[:, 1] <= room]
    if len(fits) == 0:
        return
    best = int(brute_force(items, room))
    prices = Prices(fits[:, 0], fits[:, 1], room, best=best - 1)
    assert prices.bound_at(price) >= best - 1e-6
    prices.search()
    assert prices.bound >= best
    fewest, most = prices.counts()
    assert fewest <= most


@pytest.mark.parametrize("room", [0, 100])
def test_nothing_fits_or_everything(room):
    one = fraction_at(VALUES, WEIGHTS, room, 0)
    assert one.worth == (25 if room else 0)
