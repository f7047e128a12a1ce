"""Round trips through a user's own cities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch

from diconet.io.tsplib import TspInstance, write_tour
from diconet.merges.edges import EdgeMerge
from diconet.merges.pairs import PairMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.solve.inputs import as_points, check_amount, check_count, check_seed, is_many
from diconet.solve.networks import as_network
from diconet.solve.solution import Model, Partitions, Solution, labels_of
from diconet.tours.decode import Refine, best_tour, refined, searched_tour
from diconet.tours.metric import Kind, Metric
from diconet.tours.near import near_lists
from diconet.tours.one_tree import LARGEST, held_karp_bound
from diconet.tours.two_opt import two_opt

DEFAULT_MODEL = "tsp"
"""The shipped network that answers where none is asked for."""

_NEAR = 8
_MANY = 500
_DENSE_LIMIT = 2_000
_HAIR = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Tour(Solution):
    """A round trip: `tour` is a permutation of the cities that starts at city 0.

    `value` is its length by the metric `kind`, `optimum` that of a shortest tour where it is known,
    and `bound` a length that no tour is below.
    """

    cities: np.ndarray
    tour: np.ndarray
    optimum: float | None = None
    kind: str = "euclidean"

    @cached_property
    def bound(self) -> float | None:
        """What Held and Karp prove, worked out when asked for; None where n is too large for it."""
        if len(self.tour) > LARGEST or not np.isfinite(self.value):
            return None
        return min(held_karp_bound(Metric.of(self.cities, self.kind)), self.value)

    @property
    def gap(self) -> float | None:
        """How much longer, relative to a shortest tour, this is; at most, if that is not known."""
        least = self.optimum or self.bound
        if least is None:
            return None
        return self.value / least - 1 if least > 0 else 0.0

    def quality(self) -> str:
        """The number of cities, and the gap if it is known."""
        text = f"{len(self.tour)} cities"
        if self.gap is None:
            return f"{text}, optimum not known"
        if self.optimum is None and self.gap < _HAIR:
            return f"{text}, proven optimal"
        most = "" if self.optimum else "at most "
        return f"{text}, {most}{100 * self.gap:.2f}% above the optimum"

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


def tsp(
    cities: Any,
    *,
    refine: str = "2opt",
    samples: int = 200,
    kicks: float = 10.0,
    seconds: float | None = None,
    metric: str = "euclidean",
    model: str | Path | DiCoNet | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
) -> Tour | list[Tour]:
    """A short round trip through (n, 2) cities, or through each of several such arrays.

    A network says which edges belong to the tour. The surest of them make fragments, which a search
    joins; up to 500 cities, the best of `samples` noisy greedy readings competes with that. Then
    `refine` shortens it: "none", "2opt" (2-opt and Or-opt), or "lk" (Lin-Kernighan, then so many
    `kicks` a city, ended early after `seconds`). A `TspInstance` read from a file brings its own
    metric. `seed` varies the trees and the noise.
    """
    if refine not in ("none", "2opt", "lk"):
        raise ValueError(f"refine must be one of none, 2opt, lk; got {refine!r}.")
    if metric not in get_args(Kind):
        raise ValueError(f"metric must be one of {', '.join(get_args(Kind))}; got {metric!r}.")
    check_count(samples, "samples", least=1)
    check_amount(kicks, "kicks")
    if seconds is not None:
        check_amount(seconds, "seconds")
        if refine != "lk":
            raise ValueError(f"seconds must go with refine 'lk'; got refine {refine!r}.")
    many = is_many(cities, dims=2) or (
        isinstance(cities, list) and bool(cities) and isinstance(cities[0], TspInstance)
    )
    maps = [_Map.of(one, metric) for one in (cities if many else [cities])]
    seed = check_seed(seed)
    parts = (EdgeMerge, PairMerge)
    network = as_network(model, default=DEFAULT_MODEL, task="tours", parts=parts, device=device)
    signals, trees = _signals(maps, network, seed, device)
    how = _How(cast(Refine, refine), samples, kicks, seconds, seed or 0)
    tours = [
        _answer(one, how.tour(one, *signal), tree, model)
        for one, signal, tree in zip(maps, signals, trees, strict=True)
    ]
    return tours if many else tours[0]


@dataclass(frozen=True, eq=False)
class _Map:
    """Cities without copies: `place` says which of the `distinct` ones each of them is."""

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
        distinct, place = np.unique(cities, axis=0, return_inverse=True)
        return cls(cities, distinct, place.reshape(-1), kind, optimum)

    def flat(self) -> np.ndarray:
        """The distinct cities within the unit square, their shape kept."""
        half = self.distinct / 2  # so that the widest range of doubles does not overflow
        if self.kind == "GEO":
            half = half * [1.0, np.cos(np.radians(2 * half[:, 0].mean()))]
        half = half - half.min(0)
        return half / max(float(half.max()), np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _How:
    refine: Refine
    samples: int
    kicks: float
    seconds: float | None
    seed: int

    def tour(self, one: _Map, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """A tour of the distinct cities."""
        flat = one.flat()
        near = near_lists(flat, _NEAR)
        exact = one.kind != "euclidean"
        metric = Metric.of(one.distinct, one.kind) if exact else Metric.of(flat)
        tour = searched_tour(Metric.of(flat), edges, scores, seed=self.seed)
        if len(one.distinct) <= _MANY:
            polish = None if self.refine == "none" else near
            rival = best_tour(
                metric, edges, scores, samples=self.samples, near=polish, seed=self.seed
            )
            if polish is not None:
                tour = two_opt(metric, polish, tour)
            tour = min(rival, tour, key=metric.length)
        return refined(
            metric,
            near,
            tour,
            self.refine,
            kicks_a_city=self.kicks,
            seconds=self.seconds,
            seed=self.seed,
        )


def _signals(
    maps: list[_Map], network: DiCoNet, seed: int | None, device: str | torch.device
) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[Partitions]]:
    """For each map, the scored edges and the partition at every level, from one call."""
    largest = max(len(one.distinct) for one in maps)
    if isinstance(network.merge, PairMerge) and largest > _DENSE_LIMIT:
        raise ValueError(
            f"cities must be at most {_DENSE_LIMIT} for this model, whose cost grows with the"
            f" square; got {largest}."
        )
    flat = [torch.from_numpy(one.flat()).to(device, torch.float32) for one in maps]
    sets = SetBatch.of(flat)
    seeds = None
    if seed is not None:
        seeds = seeds_from(torch.Generator().manual_seed(seed), len(sets)).to(device)
    with torch.inference_mode():
        outcome = network(sets, seeds)
        return outcome.answer.candidates(), labels_of(outcome.tree)


def _answer(one: _Map, tour: np.ndarray, tree: Partitions, model: Model) -> Tour:
    """The tour of all cities, copies in a row, from city 0 towards the lower of its neighbours."""
    rank = np.empty(len(tour), dtype=np.int64)
    rank[tour] = np.arange(len(tour))
    whole = np.argsort(rank[one.place], kind="stable")
    whole = np.roll(whole, -int(whole.argmin()))
    if len(whole) > 2 and whole[-1] < whole[1]:
        whole[1:] = whole[1:][::-1]
    length = Metric.of(one.cities, one.kind).length(whole)
    tree = tree.of_items(one.place)
    return Tour(length, tree, one.cities, whole, one.optimum, one.kind, model=model)
