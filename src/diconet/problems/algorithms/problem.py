"""The problem objects of the five algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.io.parse import count
from diconet.io.source import PLANE
from diconet.problems.problem import Instances, Option, Page, Problem

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.tables import Table
    from diconet.problems.problem import Show
    from diconet.problems.solution import Model, Solution


_DRAWN = 32
"""The number of items in pictures."""


class AlgorithmProblem(Problem):
    """A problem with exact answers: each is right as a whole, or wrong."""

    sizes = (64, 1_000)
    num_sets = 1_000
    options: tuple[Option, ...] = ()
    presets = ("default",)  # type: ignore[assignment]

    def __init__(self, name: str, summary: str, value: str, table: str | None = None) -> None:
        super().__init__(name, summary=summary, package=__package__)
        self.value, self.table = value, table

    @property
    def task(self) -> Task:
        from diconet.problems.algorithms.tasks import TASKS

        return TASKS[self.name]()

    @cached_property
    def weights(self) -> dict[str, Traversable]:
        return {name: file for name, file in super().weights.items() if name == self.name}

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.problems.algorithms.networks import NETWORKS

        return type(network.merge) is type(NETWORKS[self.name]().merge)

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.algorithms.solve import solve

        return list(solve(self, instances, **options))

    def grade(self, instances: Instances, solutions: Sequence[Solution]) -> dict[str, float]:
        from diconet.problems.algorithms.measure import grade

        return grade(self, instances, solutions)

    @cached_property
    def recipe(self) -> Any:
        from diconet.problems.algorithms.recipe import Recipe

        return Recipe(self.name)

    def pictures(self, model: Model, folder: Path) -> list[Path]:
        (solution,) = self.solve(self.fresh(_DRAWN, 1, seed=3), model=model)
        return [solution.save_levels(folder / f"{self.name}_levels.png")]

    def demo(self, rng: np.random.Generator, scale: float) -> Show:
        from diconet.problems.algorithms.measure import show

        return show(self, rng, scale)

    page = None


class Planar(AlgorithmProblem):
    """A problem of points in the plane, which the page can draw."""

    roles = PLANE

    @property
    def page(self) -> Page | None:  # type: ignore[override]
        return Page(value=self.value)


class Selection(AlgorithmProblem):
    """Selection: a number k is given with every set."""

    options = (Option("k", "rank of the number to find, from 1 for the smallest", count),)

    def given(self, tables: Sequence[Table], options: Mapping[str, Any]) -> dict[str, list[Any]]:
        known, k = [table.extras.get("context") for table in tables], options.get("k")
        if k is None and any(one is None for one in known):
            raise ValueError("k must be given, as --k or under 'context' in a JSON file.")
        return {"context": known if k is None else [[k]] * len(tables)}

    def solve(
        self, instances: Instances, *, k: int | None = None, **options: Any
    ) -> list[Solution]:
        return super().solve(instances, **options)


PROBLEMS: tuple[Problem, ...] = (
    AlgorithmProblem("sort", "numbers in ascending order", "share in order", table="algorithms"),
    Selection("select", "the k-th smallest of numbers", "number"),
    AlgorithmProblem("subarray", "the run of numbers with the largest sum", "sum"),
    Planar("closest", "the two closest points", "distance"),
    Planar("skyline", "the points that no other beats", "points"),
)
