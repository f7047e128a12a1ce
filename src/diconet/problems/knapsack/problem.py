"""The problem object of knapsacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diconet.io.parse import number
from diconet.problems.problem import Instances, Option, Page, PageField, Problem

if TYPE_CHECKING:
    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.source import Source
    from diconet.io.tables import Table
    from diconet.problems.page import Division
    from diconet.problems.solution import Model, Solution

_VALUE = ("value", "values", "profit", "profits", "v", "p")
_WEIGHT = ("weight", "weights", "w")


class KnapsackProblem(Problem):
    """The most valuable items that fit a capacity together."""

    own_files = "Pisinger's CSV"
    roles = (_VALUE, _WEIGHT)
    options = (Option("capacity", "the capacity, if FILE does not hold it", number),)
    sizes = (50, 100, 200)
    num_sets = 1_000
    table = "knapsack"
    page = Page(
        "items",
        "value",
        ("weight", "value"),
        (PageField("capacity", "capacity", 10.0),),
        cut="Items are taken call by call: this call's in orange, earlier ones in blue.",
        merge="Items are taken call by call: this call's in orange, earlier ones in blue.",
        answer="The final packing; grey items are left out.",
        undivided=62,  # a single part is enumerated, with one bit per item
    )

    @property
    def task(self) -> Task:
        from diconet.problems.knapsack.task import KnapsackTask

        return KnapsackTask()

    def read(self, source: Source, options: Mapping[str, Any]) -> Instances:
        from diconet.problems.knapsack.pisinger import is_pisinger, parse_pisinger

        if not is_pisinger(source):
            return super().read(source, options)
        packs, capacity = parse_pisinger(source), options.get("capacity")
        return Instances(
            [one.name for one in packs],
            [(one.values, one.weights) for one in packs],
            {"capacity": [one.capacity if capacity is None else capacity for one in packs]},
        )

    def columns(self, table: Table, options: Mapping[str, Any]) -> list[str]:
        found = super().columns(table, options)
        called = [table.role(names) for names in self.roles]
        if options.get("columns") is None and table.named and None in called:
            raise ValueError(
                f"columns must be value and weight; {table.name} has {', '.join(table.columns)}:"
                f" choose them with --columns, such as --columns {table.typed(found)}."
            )
        return found

    def instance(self, table: Table, columns: list[str]) -> Any:
        return table.numbers(columns[0]), table.numbers(columns[1])

    def given(self, tables: Sequence[Table], options: Mapping[str, Any]) -> dict[str, list[Any]]:
        return {"capacity": [table.extra("capacity", options.get("capacity")) for table in tables]}

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.knapsack.solve import knapsack

        capacity = options.pop("capacity", None)
        capacity = instances.given.get("capacity", capacity)
        values, weights = ([one[side] for one in instances.data] for side in (0, 1))
        return list(knapsack(values, weights, capacity, **options))

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.problems.knapsack.pack import PackMerge
        from diconet.problems.knapsack.repair import FrontierMerge

        return isinstance(network.merge, PackMerge | FrontierMerge)

    def fresh(self, size: int, num_sets: int, seed: int, **options: Any) -> Instances:
        from diconet.problems.knapsack.measure import fresh

        return fresh(size, num_sets, seed)

    def page_sample(self, n: int, seed: int, **fields: float) -> dict[str, Any]:
        import numpy as np

        points = np.random.default_rng(seed).uniform(0.02, 0.98, (n, 2)).round(4)
        return {"points": points.tolist(), "capacity": round(float(points[:, 0].sum()) / 2, 3)}

    def page_solve(
        self, points: np.ndarray, division: Division, model: Model, **fields: float
    ) -> Solution:
        data = [(points[:, 1], points[:, 0])]
        model = self.divided(model, division)
        capacity = [fields["capacity"]]
        (solution,) = self.solve(Instances(["page"], data), capacity=capacity, model=model)
        return solution

    def divided(self, model: Model, division: Division) -> Model:
        from diconet.problems.knapsack.ablate import divided

        return model if division == "learned" else divided(model, division)


PROBLEM = KnapsackProblem(
    "knapsack", summary="the most valuable items that fit a capacity", package=__package__
)
