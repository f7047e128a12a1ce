"""All that is known of knapsacks, in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from diconet.io.parse import number
from diconet.problems.problem import Instances, Option, Page, PageField, Problem, Show

if TYPE_CHECKING:
    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.source import Source
    from diconet.io.tables import Table
    from diconet.problems.solution import Solution

_VALUE = ("value", "values", "profit", "profits", "v", "p")
_WEIGHT = ("weight", "weights", "w")


class KnapsackProblem(Problem):
    """The most valuable items that fit a capacity together."""

    files = "CSV with or without a header, .npy, JSON or Pisinger's CSV"
    options = (Option("capacity", "what FILE does not hold", number),)
    sizes = (50, 100, 200)
    num_sets = 1_000
    has_table = True
    page = Page("items", "value", ("weight", "value"), (PageField("capacity", "capacity", 10.0),))

    @property
    def task(self) -> Task:
        from diconet.problems.knapsack.task import KnapsackTask

        return KnapsackTask()

    def read(self, source: Source, options: Mapping[str, Any]) -> Instances:
        from diconet.io.tables import read_tables, stem
        from diconet.problems.knapsack.pisinger import is_pisinger, parse_pisinger

        capacity = options.get("capacity")
        if is_pisinger(source):
            packs = parse_pisinger(source)
            return Instances(
                [one.name for one in packs],
                [(one.values, one.weights) for one in packs],
                {"capacity": [one.capacity if capacity is None else capacity for one in packs]},
            )
        tables = read_tables(source)
        return Instances(
            [stem(table.name) for table in tables],
            [_value_and_weight(table, self.columns(table, options)) for table in tables],
            {"capacity": [table.extra("capacity", capacity) for table in tables]},
        )

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.knapsack.solve import knapsack

        capacity = options.pop("capacity", None)
        capacity = instances.given.get("capacity", capacity)
        values, weights = ([one[side] for one in instances.data] for side in (0, 1))
        return list(knapsack(values, weights, capacity, **options))  # type: ignore[arg-type]

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.problems.knapsack.pack import PackMerge
        from diconet.problems.knapsack.repair import FrontierMerge

        return isinstance(network.merge, PackMerge | FrontierMerge)

    def fresh(self, size: int, num_sets: int, seed: int, **options: Any) -> Instances:
        from diconet.problems.knapsack.measure import fresh

        return fresh(size, num_sets, seed)

    def grade(self, instances: Instances, solutions: Sequence[Solution]) -> dict[str, float]:
        from diconet.problems.knapsack.measure import grade

        return grade(solutions)

    @cached_property
    def recipe(self) -> Any:
        return import_module("diconet.problems.knapsack.recipe")

    def demo(self, rng: np.random.Generator, scale: float) -> Show:
        from diconet.problems.knapsack.measure import show

        return show(rng, max(int(50 * scale), 8))

    def page_sample(self, n: int, seed: int, **fields: float) -> dict[str, Any]:
        import numpy as np

        points = np.random.default_rng(seed).uniform(0.02, 0.98, (n, 2)).round(4)
        return {"points": points.tolist(), "capacity": round(float(points[:, 0].sum()) / 2, 3)}

    def page_solve(self, points: np.ndarray, **fields: float) -> Solution:
        data = [(points[:, 1], points[:, 0])]
        (solution,) = self.solve(Instances(["page"], data), capacity=[fields["capacity"]])
        return solution


def _value_and_weight(table: Table, places: list[int] | None) -> tuple[list[Any], list[Any]]:
    if places is None and not table.columns and table.width == 2:
        places = [0, 1]
    found: list[int | None] = list(places or []) or [
        next((place for name in names if (place := table.place(name)) is not None), None)
        for names in (_VALUE, _WEIGHT)
    ]
    if len(found) != 2 or found[0] is None or found[1] is None:
        has = ", ".join(table.columns) or f"{table.width} without names"
        raise ValueError(f"columns must be value and weight; {table.name} has {has}.")
    return table.column(found[0]), table.column(found[1])


PROBLEM = KnapsackProblem(
    "knapsack", summary="the most valuable items that fit a capacity", package=__package__
)
