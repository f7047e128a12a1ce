"""Round trips through a user's cities."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, get_args, overload

import numpy as np
import torch

from diconet.core.host import one_thread
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, grow
from diconet.nets.axes import AcrossSplit
from diconet.plot.stages import Stage
from diconet.problems.inputs import (
    Asked,
    ManyPoints,
    Points,
    as_points,
    check_amount,
    check_seed,
    is_many,
    tree_seeds,
)
from diconet.problems.networks import as_network
from diconet.problems.progress import tell
from diconet.problems.solution import Model, Partitions, Solution, handed_back, labels_of, numbered
from diconet.problems.tsp.divide import WHOLE, Budget, searched
from diconet.problems.tsp.edges import EdgeMerge, EdgeSignal, LengthMerge, scored_once
from diconet.problems.tsp.pairs import PairMerge
from diconet.problems.tsp.population import CELL, crossed, is_crossed, noisy_starts
from diconet.problems.tsp.problem import PROBLEM
from diconet.problems.tsp.search.decode import greedy_tour, strip_tour
from diconet.problems.tsp.search.metric import Kind, Metric
from diconet.problems.tsp.search.near_lists import candidate_lists
from diconet.problems.tsp.search.one_tree import LARGEST, held_karp_bound
from diconet.problems.tsp.tsplib import TspInstance, write_tour

_DENSE_LIMIT = 2_000
_ONE_BY_ONE = 5_000  # up to this many cities maps go through the network in one batch
_LIKELY = 5
_MOST_KICKS = 100.0
_MANY_CITIES_KICKS = 20.0
_SECONDS_PER_CITY = 8e-5  # for the default network, on one core
_SECONDS_TO_START = 3e-5  # per city, before the first kick, without the network
_MARGIN = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Tour(Solution):
    """A round trip: `tour` is a permutation of the cities that starts at city 0.

    `value` is its length by the metric `kind`, `optimum` that of a shortest tour if known,
    and `bound` a lower bound on the length of any tour.
    """

    cities: np.ndarray
    tour: np.ndarray
    optimum: float | None = None
    kind: str = "euclidean"

    @cached_property
    def bound(self) -> float | None:
        """The Held-Karp bound, computed on demand; None if n is too large for it."""
        if len(self.tour) > LARGEST or not np.isfinite(self.value):
            return None
        tell("proving a bound")
        return min(held_karp_bound(Metric.of(self.cities, self.kind)), self.value)

    @property
    def gap(self) -> float | None:
        """The excess over a shortest tour, relative to it; an upper bound if that is unknown."""
        least = self.optimum or self.bound
        if least is None:
            return None
        return self.value / least - 1 if least > 0 else 0.0

    def quality(self) -> str:
        """The number of cities, and the gap if it is known."""
        text = f"{len(self.tour)} cities"
        if self.gap is None:
            return f"{text}, {self.note() or 'optimum not known'}"
        if self.optimum is None and self.gap < _MARGIN:
            return f"{text}, proven optimal"
        most = "" if self.optimum else "at most "
        return f"{text}, {most}{100 * self.gap:.2f}% above the optimum"

    def note(self) -> str | None:
        """Why there is no bound, if so."""
        if len(self.tour) > LARGEST and self.optimum is None:
            return f"no bound: it is computed for up to {LARGEST:,} cities"
        return None

    def record(self) -> dict[str, Any]:
        """Cities, length, optimum or bound, the gap to that, and the tour."""
        return {
            "cities": len(self.tour),
            "value": self.value,
            "optimum": self.optimum,
            "bound": self.bound,
            "gap": self.gap,
            "tour": self.tour.tolist(),
        }

    def write(self, path: str | Path, name: str = "tour") -> None:
        """Writes the tour as a TSPLIB .tour file."""
        write_tour(path, self.tour, name=name, comment=f"length {self.value:.10g}")

    def item_columns(self) -> dict[str, np.ndarray]:
        return {"x": self.cities[:, 0], "y": self.cities[:, 1]}

    def answer_columns(self) -> dict[str, Any]:
        """Each city's position in the tour, from 0."""
        return {"order": numbered(self.tour, len(self.tour))}

    def title(self) -> str:
        return f"tour of length {self.value:.6g}"

    def plane(self) -> np.ndarray:
        return self.cities

    def answer_stage(self) -> Stage:
        return Stage("", np.zeros(len(self.cities), dtype=np.int64), [(0, self.tour)])

    def part_stage(self, title: str, parts: np.ndarray) -> Stage:
        """Each part with its own tour, as the same network finds it."""
        numbers = np.unique(parts).tolist()
        if len(numbers) == 1:
            return Stage(title, parts, [(0, self.tour)])
        members = [np.flatnonzero(parts == number) for number in numbers]
        cities = [self.cities[rows] for rows in members]
        tours = tsp(cities, metric=self.kind, model=self.model)
        assert isinstance(tours, list)
        ways = zip(numbers, members, tours, strict=True)
        return Stage(title, parts, [(n, rows[tour.tour]) for n, rows, tour in ways])


class _Options(Asked, total=False):
    refine: str
    kicks: float | None
    seconds: float | None
    metric: str


@overload
def tsp(cities: Points | TspInstance, **options: Unpack[_Options]) -> Tour: ...
@overload
def tsp(cities: ManyPoints | Sequence[TspInstance], **options: Unpack[_Options]) -> list[Tour]: ...
def tsp(
    cities: Any,
    *,
    refine: str = "lk",
    kicks: float | None = None,
    seconds: float | None = None,
    metric: str = "euclidean",
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Tour | list[Tour]:
    """A short round trip through cities.

    A network scores the edges by how likely they belong to the tour. Taken best first, they make
    the initial tour, and the search considers only the likeliest. From 100 cities on many tours,
    which begin with noise on the scores, are crossed; above 50,000 only with `seconds`. Others are
    shortened by kicks. Both go through a tree of parts where there are many cities.

    Args:
        cities: An (n, 2) array, list, tensor or DataFrame; or a list of these. A `TspInstance` read
            from a file brings its own metric.
        refine: How the tour is shortened: "none", "2opt" (exchanges of edges until none helps) or
            "lk" (the same, then crossing or kicks).
        kicks: Kicks per city for "lk"; then no tours are crossed.
        seconds: Time per instance for "lk", instead of `kicks`.
        metric: "euclidean", "haversine" (kilometres between latitudes and longitudes in degrees) or
            a rule of TSPLIB: "EUC_2D", "CEIL_2D", "ATT", "GEO".
        model: The network: a shipped name, a weights file, a run folder or a `DiCoNet`; None for
            the default.
        seed: Varies trees and kicks.
        device: Where to run the network, such as "cuda".

    Returns:
        The tour, or a list of tours for a list of maps.

    >>> tsp([[0, 0], [3, 4], [0, 4], [3, 0]]).tour.tolist()
    [0, 2, 1, 3]
    """
    start = time.monotonic()
    _check_search(refine, metric, kicks, seconds)
    many = is_many(cities, dims=2) or (
        isinstance(cities, list) and bool(cities) and isinstance(cities[0], TspInstance)
    )
    maps = [_Map.of(one, metric) for one in (cities if many else [cities])]
    seed = check_seed(seed)
    network = as_network(PROBLEM, model, device)
    if seconds is not None and _no_time(maps, seconds):
        found = [(one, strip_tour(one.flat()), Partitions.uncut(len(one.distinct))) for one in maps]
        return handed_back([_answer(*each, model) for each in found], cities, many)
    if seconds is not None and _too_slow(network, maps, seconds):
        network = DiCoNet(AcrossSplit(), LengthMerge(), depth=0)
    tours: list[Tour] = []
    tell("running the network")
    for one, signal in zip(maps, _signals(maps, network, seed, device), strict=True):
        tell(f"searching: {len(tours)} of {len(maps)} tours found")
        deadline = None if seconds is None else start + seconds
        tour = _tour(one, signal, refine, kicks, deadline, seed or 0)
        tours.append(_answer(one, tour, signal.tree, model))
        start = time.monotonic()
    return handed_back(tours, cities, many)


def _check_search(refine: str, metric: str, kicks: float | None, seconds: float | None) -> None:
    if refine not in ("none", "2opt", "lk"):
        raise ValueError(f"refine must be one of none, 2opt, lk; got {refine!r}.")
    if metric not in get_args(Kind):
        raise ValueError(f"metric must be one of {', '.join(get_args(Kind))}; got {metric!r}.")
    if kicks is not None:
        check_amount(kicks, "kicks")
    if seconds is not None:
        check_amount(seconds, "seconds")
        if refine != "lk":
            raise ValueError(f"seconds must go with refine 'lk'; got refine {refine!r}.")


@dataclass(frozen=True, eq=False)
class _Map:
    """Cities without copies: `place` is the index of each city among the `distinct` ones."""

    cities: np.ndarray
    distinct: np.ndarray
    place: np.ndarray
    kind: str
    optimum: float | None

    @classmethod
    def of(cls, cities: Any, kind: str) -> _Map:
        optimum: float | None = None
        if isinstance(cities, TspInstance):
            cities, kind, optimum = cities.cities, cities.kind, cities.optimum
        cities = as_points(cities, "cities", columns=2)
        if kind == "haversine" and np.abs(cities[:, 0]).max() > 90:
            raise ValueError(
                "cities must be latitude (-90 to 90) and longitude for haversine; got a latitude of"
                f" {cities[np.abs(cities[:, 0]).argmax(), 0]:g}."
            )
        distinct, place = np.unique(cities, axis=0, return_inverse=True)
        return cls(cities, distinct, place.reshape(-1), kind, optimum)

    def flat(self) -> np.ndarray:
        """The distinct cities scaled into the unit square, preserving their shape."""
        half = self.distinct / 2  # so that even the widest range of doubles does not overflow
        if self.kind in ("GEO", "haversine"):
            half[:, 1] = _from_widest_gap(self.distinct[:, 1]) / 2
            middle = 2 * (half[:, 0] / len(half)).sum()  # a plain mean may overflow
            half = half * [1.0, np.cos(np.radians(middle))]
        half = half - half.min(0)
        return half / max(float(half.max()), np.finfo(np.float64).tiny)


def _from_widest_gap(longitude: np.ndarray) -> np.ndarray:
    """Degrees counted from the end of the widest gap without cities, so that no cluster is cut."""
    around = np.sort(longitude)
    start = np.roll(around, -1)[np.argmax(np.diff(around, append=around[0] + 360))]
    return np.asarray((longitude - start) % 360)


@dataclass(frozen=True, eq=False)
class _Signal:
    """A network's output for a map: edges with scores, each city's likely neighbours, the tree."""

    edges: np.ndarray
    scores: np.ndarray
    likely: np.ndarray | None
    tree: Partitions


def _tour(
    one: _Map, signal: _Signal, refine: str, kicks: float | None, deadline: float | None, seed: int
) -> np.ndarray:
    """A tour of the distinct cities; the network's time counts as used."""
    flat = one.flat()
    tour = greedy_tour(Metric.of(flat), signal.edges, signal.scores)
    if refine == "none":
        return tour
    near = candidate_lists(flat, signal.likely)
    exact = one.kind != "euclidean"
    metric = Metric.of(one.distinct, one.kind) if exact else Metric.of(flat)
    budget = Budget(_usual_kicks(len(flat)) if kicks is None else kicks, deadline)
    if refine == "2opt":
        budget = Budget(0.0)
    elif kicks is None and is_crossed(len(flat), budget):
        start = noisy_starts(flat, signal.edges, signal.scores)
        tour = crossed(metric, near, tour, start, budget, seed=seed)
        if deadline is None or budget.over:
            return tour
    return searched(metric, near, tour, budget, seed=seed)


def _usual_kicks(num: int) -> float:
    """The default kicks per city, after which little is left to gain; fewer for many cities."""
    return min(_MOST_KICKS, num**2 / 600) if num <= WHOLE else _MANY_CITIES_KICKS


def _too_slow(network: DiCoNet, maps: list[_Map], seconds: float) -> bool:
    """Whether the network alone would take too much of the given time."""
    most = max(len(one.distinct) for one in maps)
    return isinstance(network.merge, EdgeMerge) and most * _SECONDS_PER_CITY > seconds / 3


def _no_time(maps: list[_Map], seconds: float) -> bool:
    """Whether neighbour lists and a first descent would take longer than the given time."""
    most = max(len(one.distinct) for one in maps)
    return most > _ONE_BY_ONE and most * _SECONDS_TO_START > seconds


def _signals(
    maps: list[_Map], network: DiCoNet, seed: int | None, device: str | torch.device
) -> list[_Signal]:
    """The network's output for each map, from one call; for large maps, one by one."""
    largest = max(len(one.distinct) for one in maps)
    if isinstance(network.merge, PairMerge) and largest > _DENSE_LIMIT:
        raise ValueError(
            f"cities must be at most {_DENSE_LIMIT} for this model, whose cost is quadratic;"
            f" got {largest}."
        )
    flat = [torch.from_numpy(one.flat()).to(device, torch.float32) for one in maps]
    if isinstance(network.merge, EdgeMerge) and largest > _ONE_BY_ONE:
        return [_signal_of_large(points, network.merge) for points in flat]
    sets = SetBatch.of(flat)
    seeds = tree_seeds(seed, len(sets), device)
    with torch.inference_mode(), one_thread(sets.num_items):
        outcome = network(sets, seeds)
        answer = outcome.answer
        likely: list[Any] = [None] * len(maps)
        if isinstance(answer, EdgeSignal):
            likely = list(answer.likely(_LIKELY))
        return [
            _Signal(edges, scores, some, tree)
            for (edges, scores), some, tree in zip(
                answer.candidates(), likely, labels_of(outcome.tree), strict=True
            )
        ]


def _signal_of_large(points: torch.Tensor, merge: EdgeMerge) -> _Signal:
    """The signal of many cities, and the tree of the search's first round."""
    sets = SetBatch.of([points])
    with torch.inference_mode():
        answer = scored_once(merge, sets)
        (scored,), (likely,) = answer.candidates(), answer.likely(_LIKELY)
        tree = grow(AcrossSplit(), sets, Growth(leaf_size=CELL))
    return _Signal(*scored, likely, labels_of(tree)[0])


def _answer(one: _Map, tour: np.ndarray, tree: Partitions, model: Model) -> Tour:
    """The tour of all cities, copies adjacent, from city 0 towards the lower of its neighbours."""
    rank = np.empty(len(tour), dtype=np.int64)
    rank[tour] = np.arange(len(tour))
    whole = np.argsort(rank[one.place], kind="stable")
    whole = np.roll(whole, -int(whole.argmin()))
    if len(whole) > 2 and whole[-1] < whole[1]:
        whole[1:] = whole[1:][::-1]
    length = Metric.of(one.cities, one.kind).length(whole)
    if not np.isfinite(length):
        largest = float(np.abs(one.cities).max())
        raise ValueError(
            f"cities must be close enough to be measured; got coordinates up to {largest:g}."
        )
    tree = tree.of_items(one.place)
    return Tour(length, tree, one.cities, whole, one.optimum, one.kind, model=model)
