"""Inputs that nobody would draw for a benchmark, and checks of the answers in exact arithmetic.

`cases(task, seed)` goes on for ever; `fault(case, call)` is None if the answer is right, or if the
input was refused in one line of ours. `benchmarks/fuzz.py` runs a hundred thousand of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch

import diconet

LONG = np.longdouble
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Case:
    """Arguments and options of one call; `kind` says what is odd about them."""

    task: str
    kind: str
    given: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


SOLVE: dict[str, Callable[..., Any]] = {
    "hull": diconet.convex_hull,
    "kmeans": diconet.kmeans,
    "knapsack": diconet.knapsack,
    "tsp": diconet.tsp,
}


def fault(case: Case) -> str | None:
    """What is wrong with an answer, if anything is."""
    try:
        found = SOLVE[case.task](*case.given, **case.options)
    except ValueError as error:
        text = str(error)
        fine = " must " in text and text.endswith(".") and "\n" not in text
        return None if fine else f"refused with {text!r}"
    except Exception as error:
        if type(error).__name__ == "TypeCheckError":  # signatures are enforced under pytest only
            return None
        return f"foreign {type(error).__name__}: {error}"
    return CHECKS[case.task](case, found)


# Odd points and numbers.


def _plain(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, d))


def _grid(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.integers(-2, 3, (n, d)).astype(float)


def _line(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return (
        rng.integers(-9, 9, (n, 1)) * rng.integers(-3, 4, (1, d)) + rng.integers(-5, 5, (1, d)) / 3
    )


def _almost_line(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    points = _line(rng, n, d).astype(float)
    return np.where(rng.random((n, d)) < 0.3, np.nextafter(points, np.inf), points)


def _copies(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return _plain(rng, max(1, n // 4), d)[rng.integers(0, max(1, n // 4), n)]


def _far_apart(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Numbers of every size in one array."""
    return rng.choice([-1, 1], (n, d)) * 10.0 ** rng.uniform(-30, 30, (n, d))


def _circle(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    angle = 2 * np.pi * rng.integers(0, 16, n) / 16
    return np.column_stack([np.cos(angle), np.sin(angle), *[angle] * (d - 2)])[:, :d]


def _offset(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return _plain(rng, n, d) + 10.0 ** rng.integers(3, 17)


POINTS = (_plain, _grid, _line, _almost_line, _copies, _far_apart, _circle, _offset)


def _points(rng: np.random.Generator, d: int, most: int) -> tuple[str, np.ndarray]:
    make = POINTS[rng.integers(len(POINTS))]
    n = int(rng.integers(1, most + 1))
    points = make(rng, n, d)
    scale = float(rng.choice([1.0, 1e-310, 1e-160, 1e-7, 1e7, 1e150, 1e155, 1e160, 1e300, 3e307]))
    if rng.random() < 0.4:
        largest = max(float(np.abs(points).max()), 1.0)
        points = points / largest * scale
        return f"{make.__name__} x {scale:g}", points
    return make.__name__, points


def _in_some_form(rng: np.random.Generator, points: np.ndarray) -> Any:
    forms: list[Callable[[np.ndarray], Any]] = [
        lambda x: x,
        lambda x: x.tolist(),
        torch.from_numpy,
        np.asfortranarray,
    ]
    return forms[rng.integers(len(forms))](points)


def _nonsense(rng: np.random.Generator) -> tuple[str, Any]:
    made: list[Any] = [
        None, 7, [], [[]], {}, set(), iter([[0, 1]]), [["a", "b"]], [[None, 1]],
        [1, [2, 3]], np.zeros((0, 3, 2)),
        np.zeros((0, 2)), np.zeros((3, 0)), np.zeros(4), np.zeros((2, 2), complex), [[1, np.nan]],
        np.array([[np.inf, 0.0]]), np.array([[{}, 1]], dtype=object), torch.zeros(3, 2).to_sparse(),
        torch.zeros(3, 2, dtype=torch.bfloat16), torch.zeros(3, 2, device="meta"), [[10**400, 1]],
        np.array([["1", "2"]]), np.datetime64("2020-01-01"), [[[[0.0, 1.0]]]],
        [np.zeros((2, 2)), None],
        b"bytes", range(3), [torch.zeros(2, 2), "a"],
        np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
    ]  # fmt: skip
    one = made[rng.integers(len(made))]
    return f"nonsense: {one!r:.60}", one


def cases(task: str, seed: int) -> Iterator[Case]:
    """Odd inputs of a problem without end."""
    for number in itertools.count():
        rng = np.random.default_rng([seed, number, sorted(SOLVE).index(task)])
        yield MAKE[task](rng)


def _hull_case(rng: np.random.Generator) -> Case:
    if rng.random() < 0.1:
        kind, points = _nonsense(rng)
        return Case("hull", kind, (points,))
    kind, points = _points(rng, 2, 30)
    return Case("hull", kind, (_in_some_form(rng, points),))


def _kmeans_case(rng: np.random.Generator) -> Case:
    k: Any = int(rng.integers(1, 6))
    if rng.random() < 0.1:
        kind, points = _nonsense(rng)
        return Case("kmeans", kind, (points, k))
    kind, points = _points(rng, int(rng.integers(1, 5)), 30)
    if rng.random() < 0.1:
        k = [None, 0, -1, 1.5, "2", len(points), len(points) + 1, [2], True, 10**30, np.nan][
            rng.integers(11)
        ]
        kind = f"{kind}, k={k!r}"
    options: dict[str, Any] = {}
    if rng.random() < 0.2:
        weight = rng.random(len(points)) * (rng.random(len(points)) < 0.5)
        options["sample_weight"] = weight * float(rng.choice([1, 1e-200, 1e200]))
    return Case("kmeans", kind, (_in_some_form(rng, points), k), options)


def _knapsack_case(rng: np.random.Generator) -> Case:
    n = int(rng.integers(0, 11))
    if rng.random() < 0.1:
        kind, one = _nonsense(rng)
        given = [list(rng.random(3)), list(rng.random(3)), 1.0]
        given[rng.integers(3)] = one
        return Case("knapsack", kind, tuple(given))
    kind, draw = _numbers(rng)
    values, weights = draw(n), draw(n)
    total: Any = sum(weights) if n else 1
    share = rng.choice(["half", "all", "almost", "none", "one"])
    capacity = {"half": total / 2, "all": total, "almost": total - total / 2**52, "none": 0}.get(
        str(share), weights[0] if n else 1
    )
    if isinstance(total, int) and share == "half":
        capacity = total // 2
    if rng.random() < 0.1 and n:
        values[0] = -values[0]
    return Case("knapsack", f"{kind}, capacity {share}", (values, weights, capacity))


def _numbers(rng: np.random.Generator) -> tuple[str, Callable[[int], list[Any]]]:
    scale = float(10.0 ** rng.integers(-320, 300))
    ways: dict[str, Callable[[int], list[Any]]] = {
        "small": lambda n: rng.integers(0, 9, n).tolist(),
        "alike": lambda n: [7] * n,
        "tenths": lambda n: [float(x) / 10 for x in rng.integers(0, 30, n)],
        "long": lambda n: [int(x) * 2**60 + int(y) for x, y in rng.integers(0, 999, (n, 2))],
        "scaled": lambda n: (rng.random(n) * scale).tolist(),
        "far apart": lambda n: (10.0 ** rng.uniform(-300, 300, n)).tolist(),
        "close": lambda n: [1 + float(x) * 2.0**-52 for x in rng.integers(0, 9, n)],
    }
    kind = str(rng.choice(list(ways)))
    return kind, ways[kind]


def _tsp_case(rng: np.random.Generator) -> Case:
    metric = str(
        rng.choice(["euclidean", "euclidean", "EUC_2D", "CEIL_2D", "ATT", "GEO", "haversine"])
    )
    options: dict[str, Any] = {"metric": metric, "kicks": 2}
    if rng.random() < 0.1:
        kind, points = _nonsense(rng)
        return Case("tsp", kind, (points,), options)
    kind, points = _points(rng, 2, 7 if rng.random() < 0.8 else 30)
    return Case("tsp", f"{kind}, {metric}", (_in_some_form(rng, points),), options)


MAKE: dict[str, Callable[[np.random.Generator], Case]] = {
    "hull": _hull_case,
    "kmeans": _kmeans_case,
    "knapsack": _knapsack_case,
    "tsp": _tsp_case,
}


# Right or wrong.


def _whole(points: np.ndarray) -> list[tuple[int, int]]:
    """Points as whole numbers in one unit, exactly."""
    ratios = [[float(x).as_integer_ratio() for x in row] for row in points.tolist()]
    unit = max((bottom for row in ratios for _, bottom in row), default=1)  # powers of two
    return [(x[0] * (unit // x[1]), y[0] * (unit // y[1])) for x, y in ratios]


def exact_corners(points: np.ndarray) -> list[int]:
    """The corners by Andrew's monotone chain, the first of equal points, from the lowest index."""
    whole = _whole(points)
    first: dict[tuple[int, int], int] = {}
    for index, point in enumerate(whole):
        first.setdefault(point, index)

    def half(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
        chain: list[tuple[int, int]] = []
        for p in order:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    order = sorted(first)
    corners = [first[p] for p in [*half(order), *half(order[::-1])]] or [first[order[0]]]
    start = corners.index(min(corners))
    return corners[start:] + corners[:start]


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _check_hull(case: Case, found: Any) -> str | None:
    if isinstance(found, list):
        return None if all(_check_hull(case, one) is None for one in found) else "one of several"
    expected = exact_corners(found.points)
    if found.indices.tolist() != expected:
        proof = "false proof: " if found.exact else "wrong hull: "
        return f"{proof}{found.indices.tolist()} for {expected}"
    return None if found.value >= 0 else f"area {found.value}"


def _check_kmeans(case: Case, found: Any) -> str | None:
    if isinstance(found, list):
        return None if all(_check_kmeans(case, one) is None for one in found) else "one of several"
    k = len(found.centers)
    if np.bincount(found.labels, minlength=k).min() == 0 or len(found.labels) != len(found.points):
        return "an empty cluster"
    if not np.isfinite(found.centers).all():
        return "centres that are not finite"
    if not math.isfinite(found.value) or found.value < 0:
        return f"cost {found.value}"
    points, weights = found.points.astype(LONG), found.weights.astype(LONG)
    cost = LONG(0)
    for label in range(k):
        own = found.labels == label
        mass = weights[own].sum()
        mean = (points[own] * weights[own][:, None]).sum(0) / mass if mass else points[own].mean(0)
        cost += (np.square(points[own] - mean).sum(1) * weights[own]).sum()
    size = np.abs(points).max()
    slack = LONG(1e-300) + LONG(1e-6) * cost + weights.sum() * (LONG(1e-13) * size) ** 2
    return None if abs(cost - LONG(found.value)) <= slack else f"cost {found.value} for {cost}"


def _check_knapsack(case: Case, found: Any) -> str | None:
    if isinstance(found, list):
        return None
    values, weights, capacity = case.given
    exact = [[Fraction(_item(x)) for x in one] for one in (values, weights)]
    room, chosen = Fraction(_item(capacity)), found.chosen.tolist()
    if len(set(chosen)) != len(chosen):
        return "an item twice"
    if sum(exact[1][i] for i in chosen) > room:
        return "over capacity"
    worth = sum(exact[0][i] for i in chosen)
    if not math.isclose(float(worth), found.value, rel_tol=_CLOSE):
        return f"value {found.value} for {float(worth)}"
    best = max(
        sum(exact[0][i] for i in some)
        for count in range(len(values) + 1)
        for some in itertools.combinations(range(len(values)), count)
        if sum(exact[1][i] for i in some) <= room
    )
    if found.gap == 0 and best > worth:
        return f"false proof: {float(worth)} where {float(best)} can be had"
    return None if Fraction(found.bound) * (1 + Fraction(1, 10**9)) >= best else "a bound too low"


def _item(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _check_tsp(case: Case, found: Any) -> str | None:
    if isinstance(found, list):
        return None if all(_check_tsp(case, one) is None for one in found) else "one of several"
    n = len(found.cities)
    if sorted(found.tour.tolist()) != list(range(n)) or found.tour[0] != 0:
        return "no permutation"
    metric = case.options["metric"]
    if metric in ("GEO", "haversine") and np.abs(found.cities).max() > 1e4:
        return None if 0 <= found.value < math.inf else f"length {found.value}"  # angles gone round
    if not math.isfinite(found.value) or found.value < 0:
        return f"length {found.value}"
    # Rules that round are in double precision: a hair decides what is just above a whole number.
    short, far = (_distances(found.cities, metric, hair) for hair in (-1e-12, 1e-12))
    least, most = (float(one[found.tour, np.roll(found.tour, -1)].sum()) for one in (short, far))
    slack = {"haversine": 1e-6, "GEO": n}.get(metric, 1e-300)
    if not least * (1 - 1e-7) - slack <= found.value <= most * (1 + 1e-7) + slack:
        return f"length {found.value} for {least} to {most}"
    if found.bound is None or n > 7:
        return None
    best = min(
        float(sum(far[a, b] for a, b in itertools.pairwise((0, *rest, 0))))
        for rest in itertools.permutations(range(1, n))
    )
    if found.bound > best * (1 + _CLOSE) + slack:
        return f"false proof: a bound of {found.bound} where {best} can be had"
    return None


def _distances(cities: np.ndarray, metric: str, hair: float) -> np.ndarray:
    """All distances by the rule, in longer numbers, where points lie a hair nearer or farther."""
    x, y = cities.astype(LONG).T
    if metric in ("GEO", "haversine"):
        return _on_globe(x, y, metric)
    far = np.hypot(x[:, None] - x, y[:, None] - y)
    far = np.maximum(far * (1 + LONG(hair)) + LONG(math.copysign(1e-150, hair)) * (far > 0), 0)
    if metric == "EUC_2D":
        return np.floor(far + LONG(0.5))
    if metric == "CEIL_2D":
        return np.ceil(far)
    return np.ceil(far / np.sqrt(LONG(10))) if metric == "ATT" else far


def _on_globe(lat: np.ndarray, lon: np.ndarray, metric: str) -> np.ndarray:
    if metric == "haversine":
        lat, lon = np.radians(lat), np.radians(lon)
        half = [np.sin((one[:, None] - one) / 2) ** 2 for one in (lat, lon)]
        h = half[0] + np.cos(lat)[:, None] * np.cos(lat) * half[1]
        return 2 * LONG(6371.0088) * np.arcsin(np.sqrt(np.minimum(h, 1)))
    to = [LONG(3.141592) * (np.trunc(a) + 5 * (a - np.trunc(a)) / 3) / 180 for a in (lat, lon)]
    q1, q2 = np.cos(to[1][:, None] - to[1]), np.cos(to[0][:, None] - to[0])
    q3 = np.cos(to[0][:, None] + to[0])
    inner = np.clip(((1 + q1) * q2 - (1 - q1) * q3) / 2, -1, 1)
    far = np.floor(LONG(6378.388) * np.arccos(inner) + 1)
    same = (lat[:, None] == lat) & (lon[:, None] == lon)
    return np.where(same, 0, far)


CHECKS: dict[str, Callable[[Case, Any], str | None]] = {
    "hull": _check_hull,
    "kmeans": _check_kmeans,
    "knapsack": _check_knapsack,
    "tsp": _check_tsp,
}
