"""What dividing and learning do for tours, at equal processor time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diconet.core.host import one_thread
from diconet.core.model import Part
from diconet.core.noise import mix, phase_generator, uniform
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.axes import AcrossSplit, cut_across
from diconet.problems.networks import as_network
from diconet.problems.table import standard_error
from diconet.problems.tsp.divide import LEAF, Budget, searched
from diconet.problems.tsp.edges import EdgeMerge, scored_once
from diconet.problems.tsp.population import CELL, MANY, crossed, is_crossed, noisy_starts
from diconet.problems.tsp.problem import PROBLEM
from diconet.problems.tsp.search.decode import greedy_tour
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import candidate_lists, near_lists
from diconet.problems.tsp.task import TspTask

_EVERYTHING = 2**31
_EDGES = 8
_LIKELY = 5
_DEFAULT = ("median", "learned", True)

Way = tuple[str, str, bool]
"""Division, scores, and whether tours are crossed if there is time for that."""


class RandomLine(Part):
    """Cuts each set by a line in a random direction, at a random share from 20 to 80%."""

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        if seeds is None:
            seeds = sets.sizes
        share = 0.2 + 0.6 * uniform(mix(seeds, 1))
        angle = torch.pi * uniform(mix(seeds, 0))
        return cut_across(sets, angle, (share * sets.sizes).long())


class SureSplit(Part):
    """Cuts where few likely edges cross: the best of many lines, by the network's scores.

    `edges` are pairs of rows of the roots, `chance` the probability that each is part of the tour.
    """

    def __init__(self, edges: Int[Tensor, "edges 2"], chance: Tensor, directions: int = 8) -> None:
        super().__init__()
        self.edges, self.chance, self.directions = edges, chance, directions

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        rows = int(sets.index.max()) + 1 if sets.num_items else 0
        place = sets.index.new_full((max(rows, int(self.edges.max()) + 1),), -1)
        place[sets.index] = torch.arange(sets.num_items)
        ends = place[self.edges]
        inside = (ends >= 0).all(1)
        ends, chance = ends[inside], self.chance[inside]
        together = sets.owner[ends[:, 0]] == sets.owner[ends[:, 1]]
        ends, chance = ends[together], chance[together]
        best = sets.items.new_full((len(sets),), torch.inf)
        side = torch.zeros(sets.num_items, dtype=torch.bool)
        turn = 0.0 if seeds is None else float(uniform(mix(seeds[:1], 2)))
        for number in range(self.directions):
            angle = best.new_full((len(sets),), torch.pi * (number + turn) / self.directions)
            mine = cut_across(sets, angle, sets.sizes // 2).side
            crosses = (mine[ends[:, 0]] != mine[ends[:, 1]]).float() * chance
            cost = torch.zeros_like(best).index_add(0, sets.owner[ends[:, 0]], crosses)
            better = cost < best
            best = torch.where(better, cost, best)
            side = torch.where(better[sets.owner], mine, side)
        return Cut(side, sets.items.new_zeros(len(sets)))


def ablate(
    seconds: float = 10.0,
    sizes: Sequence[int] = (10_000,),
    seed: int = 0,
    num_sets: int = 5,
    model: Any = None,
) -> list[dict[str, Any]]:
    """Mean length of tours per division and scores, each with the same processor time.

    All run on one thread, including the network's time. "ratio" is to the tour of the default, the
    median cut with learned scores, on the same set; "error" is its standard error over the sets.
    "tours" is 1 where a single tour is kicked, though there might be time to cross many.
    """
    network = as_network(PROBLEM, model)
    assert isinstance(network.merge, EdgeMerge)
    records = []
    for size in sizes:
        sets = TspTask().sample(num_sets, size, rng=phase_generator("test", seed, size))
        lengths: dict[Way, list[float]] = {}
        for cities in sets.unpack():
            found = _of_one(network.merge, cities, seconds, seed)
            for way, length in found.items():
                lengths.setdefault(way, []).append(length)
        usual = np.array(lengths[_DEFAULT])
        for (division, scores, many), values in lengths.items():
            ratio = np.array(values) / usual
            record = {"size": size, "division": division, "scores": scores}
            record |= {"tours": "many" if many else "1", "seconds": seconds}
            figures = {"ratio": float(ratio.mean()), "error": standard_error(ratio)}
            records.append({**record, **figures})
    return records


def _of_one(merge: EdgeMerge, cities: Tensor, seconds: float, seed: int) -> dict[Way, float]:
    """The tour length of each way on one set."""
    points = cities.double().numpy()
    metric = Metric.of(points)
    start = time.process_time()
    with torch.inference_mode():
        signal = scored_once(merge, SetBatch.of([cities]))
        edges, scores = signal.candidates()[0]
        learned = (edges, scores, candidate_lists(points, signal.likely(_LIKELY)[0]))
    network = time.process_time() - start
    chance = torch.from_numpy(scores).sigmoid()
    start = time.process_time()
    near = near_lists(points, _EDGES)
    short = np.stack([np.repeat(np.arange(len(points)), near.shape[1]), near.ravel()], 1)
    short = short.astype(np.int32)
    length = np.linalg.norm(points[short[:, 0]] - points[short[:, 1]], axis=1)
    plain = (short, -length, candidate_lists(points))
    lists = time.process_time() - start
    sure = SureSplit(torch.from_numpy(edges).long(), chance)
    ways = {
        ("none", "learned", True): (learned, network, None),
        ("none", "lengths", True): (plain, lists, None),
        ("random", "learned", True): (learned, network, RandomLine()),
        _DEFAULT: (learned, network, AcrossSplit()),
        ("median", "learned", False): (learned, network, AcrossSplit()),
        ("median", "lengths", True): (plain, lists, AcrossSplit()),
        ("learned", "learned", True): (learned, network, sure),
    }
    return {
        way: length_within(seconds - used, metric, *signal, split, seed, many=way[2])
        for way, (signal, used, split) in ways.items()
    }


def length_within(
    seconds: float,
    metric: Metric,
    edges: np.ndarray,
    scores: np.ndarray,
    near: np.ndarray,
    split: Part | None,
    seed: int,
    threads: int = 1,
    many: bool = True,
) -> float:
    """The length of the tour that is found within processor time, or wall time if threads share it.

    As in `tsp`, many tours are crossed if there is time for that, and the rest is for kicks; all of
    it unless `many`. Without a split, nothing is divided, and more than `MANY` cities are only
    kicked, since crossing so many at once is worse.
    """
    clock = time.process_time if threads == 1 else time.monotonic
    budget = Budget(0.0, clock() + max(seconds, 0.0), clock)
    half = max(len(metric) // 2, 8)  # so that small maps are divided, too
    tour = greedy_tour(metric, edges, scores)
    options: dict[str, Any] = {"seed": seed, "threads": threads, "split": split}
    many = many and (split is not None or len(metric) <= MANY)
    with one_thread(0 if threads == 1 else len(metric)):
        if many and is_crossed(len(metric), budget, threads):
            leaf = _EVERYTHING if split is None else min(CELL, half)
            start = noisy_starts(metric.xy, edges, scores)
            tour = crossed(metric, near, tour, start, budget, leaf=leaf, **options)
        leaf = _EVERYTHING if split is None else min(LEAF, half)
        return metric.length(searched(metric, near, tour, budget, leaf=leaf, **options))
