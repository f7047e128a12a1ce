"""Fractional optima of a knapsack, at several prices per item: bounds, and losses of flips.

With a *price* p, every item taken costs p of its value. A choice of k items is then worth p k less
than its true value, so the fractional optimum at that price plus p k bounds the value of any k
items (a Lagrangian relaxation). If values are weights plus a constant, that constant is the price
that makes the bound tight; at a price of 0 it is Dantzig's bound.

All sums are exact, in int64. Only the fraction of the break item is a float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_COARSE = tuple(2.0**-power for power in (10, 8, 6, 4, 2, 0, -4, -8))
"""Initial prices, in units of the largest value."""

_MARGIN, _RELATIVE_MARGIN, _LOSS_MARGIN = 1e-6, 2.0**-50, 2.0**-40
"""Above the rounding error of a float64 bound: absolute, and relative to the bound;
and, relative to the bound, above that of the sum of many losses."""


@dataclass(frozen=True, eq=False)
class Fraction:
    """The fractional optimum at a price: its worth, the items it takes, and its rate.

    The rate is the worth of one unit of room; `count` is the number of items it takes, including
    the share of the break item. `losses` are what flipping each item loses.
    """

    price: int
    worth: float
    rate: float
    taken: np.ndarray
    count: float
    losses: np.ndarray


def fraction_at(values: np.ndarray, weights: np.ndarray, room: int, price: int) -> Fraction:
    """The fractional optimum at a price; among equals, items that the price favours come first."""
    paid = values - price
    ratio = -(paid / weights)
    if price:
        order = np.lexsort((weights if price > 0 else -weights, ratio))
    else:
        order = np.argsort(ratio, kind="stable")
    order = order[: int((paid > 0).sum())]  # items of positive worth come first
    running = np.cumsum(weights[order])
    broken = int(np.searchsorted(running, room, side="right"))
    taken = np.zeros(len(values), dtype=bool)
    taken[order[:broken]] = True
    worth, rate, count = float(paid[order[:broken]].sum()), 0.0, float(broken)
    if broken < len(order):
        left = room - (int(running[broken - 1]) if broken else 0)
        share = left / int(weights[order[broken]])
        rate = float(paid[order[broken]] / weights[order[broken]])
        worth, count = worth + share * float(paid[order[broken]]), count + share
    return Fraction(price, worth, rate, taken, count, np.abs(paid - rate * weights))


def margin(bound: float) -> float:
    """A margin that makes a float64 bound valid despite rounding."""
    return _MARGIN + _RELATIVE_MARGIN * abs(bound)


@dataclass(eq=False)
class Prices:
    """The fractional optima found so far for one knapsack of whole, positive values and weights.

    `best` is the value of the best known choice, `bound` an upper bound on any choice. Only choices
    better than `best` matter; they have between `fewest` and `most` items.
    """

    values: np.ndarray
    weights: np.ndarray
    room: int
    best: int
    bound: int = field(init=False)
    found: dict[int, Fraction] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._heaviest_values = np.cumsum(np.sort(self.values)[::-1])
        self._lightest_weights = np.cumsum(np.sort(self.weights))
        self.bound = int(self.values.sum())
        self.at(0)
        self.tighten()

    def at(self, price: int) -> Fraction:
        """The fractional optimum at a price, computed once."""
        if price not in self.found:
            self.found[price] = fraction_at(self.values, self.weights, self.room, price)
        return self.found[price]

    @property
    def proven(self) -> bool:
        """Whether no choice is better than the best known."""
        return self.best >= self.bound

    def counts(self) -> tuple[int, int]:
        """The minimum and maximum number of items in a choice better than the best known."""
        fewest = int(np.searchsorted(self._heaviest_values, self.best, side="right")) + 1
        most = int(np.searchsorted(self._lightest_weights, self.room, side="right"))
        for price, one in self.found.items():
            if price > 0:
                least = (self.best - one.worth - margin(one.worth)) / price
                fewest = max(fewest, int(np.floor(least)) + 1)
            elif price < 0:
                largest = (one.worth - self.best + margin(one.worth)) / -price
                most = min(most, int(np.ceil(largest)) - 1)
        return fewest, most

    def bound_at(self, price: int) -> float:
        """The bound on choices better than the best known that a price gives."""
        fewest, most = self.counts()
        return self.at(price).worth + price * (most if price > 0 else fewest)

    def budget_at(self, price: int) -> float:
        """The most that a choice better than the best known may lose at a price."""
        bound = self.bound_at(price)
        return bound - self.best - 1 + _MARGIN + _LOSS_MARGIN * abs(bound)

    def lower(self, price: int, budget: float) -> None:
        """Lowers the bound: any better choice loses more than `budget` at this price."""
        bound = self.bound_at(price)
        reached = bound - budget + 2 * (_MARGIN + _LOSS_MARGIN * abs(bound))
        self.bound = max(self.best, min(self.bound, int(np.floor(reached))))

    def tighten(self) -> None:
        """Lowers the bound to the best that the prices found give."""
        lowest = min(self.bound_at(price) for price in self.found)
        self.bound = max(self.best, min(self.bound, int(np.floor(lowest + margin(lowest)))))

    def search(self) -> None:
        """Searches for better prices: some of every size, then near the right number of items."""
        scale = int(self.values.max())
        for part in _COARSE:
            for price in {max(1, round(part * scale)), -max(1, round(part * scale))}:
                self.at(price)
        fewest, most = self.counts()
        if self.at(0).count > most:
            self._close_in(1, most, scale)
        elif self.at(0).count < fewest:
            self._close_in(-1, fewest, scale)
        self.tighten()

    def _close_in(self, sign: int, count: int, scale: int) -> None:
        """Finds the two whole prices between which the number of items crosses `count`."""
        low, high = 0, 2 * scale
        while high - low > 1:
            middle = (low + high) // 2
            if sign * self.at(sign * middle).count > sign * count:
                low = middle
            else:
                high = middle
        self.at(sign * low)
        self.at(sign * high)

    def chosen(self) -> tuple[Fraction, Fraction]:
        """The price with the lowest bound, and the one that leaves the fewest items in doubt."""
        tight = min(self.found, key=lambda price: (self.bound_at(price), abs(price)))
        return self.at(tight), self.at(max(self.found, key=self._certainty))

    def _certainty(self, price: int) -> float:
        budget = max(self.budget_at(price), 1e-9)
        return float(np.minimum(self.at(price).losses / budget, 1).sum())
