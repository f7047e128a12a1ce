"""The problem object of the travelling salesman."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.io.parse import number, one_of
from diconet.io.source import LATITUDE, LONGITUDE, PLANE, Source
from diconet.problems.problem import Instances, Option, Page, Problem

if TYPE_CHECKING:
    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.tables import Table
    from diconet.problems.page import Division
    from diconet.problems.solution import Model, Solution

_PICTURED, _PICTURE_LEAF = 240, 16
_METRICS = ("euclidean", "haversine", "EUC_2D", "CEIL_2D", "ATT", "GEO")


def _metric(text: str) -> str:
    """Reads a metric, ignoring case."""
    small = one_of(*(name.lower() for name in _METRICS))(text.lower())
    return next(name for name in _METRICS if name.lower() == small)


class TspProblem(Problem):
    """The shortest round trip through all cities."""

    own_files = "TSPLIB (.tsp)"
    roles = PLANE
    options = (
        Option("refine", "none, 2opt or lk (default)", one_of("none", "2opt", "lk")),
        Option("kicks", "kicks per city for lk; then no tours are crossed", number),
        Option("seconds", "time per instance for lk, instead of kicks", number),
        Option("optimum", "the optimal length, if known", number),
        Option(
            "metric",
            "euclidean (default), haversine (km, by latitude and longitude), or a"
            " rule of TSPLIB: euc_2d, ceil_2d, att, geo",
            _metric,
        ),
    )
    sizes = (10, 20, 40, 80)
    num_sets = 200
    own_outputs = (".tour",)
    table = "tsp"
    alone: Mapping[str, Any] = {"refine": "none"}
    page = Page(
        "cities",
        "length",
        cut="Cities are cut in two across their longest direction.",
        merge="Tours of parts become tours of larger parts.",
        answer="The tour of all cities: the network scored the edges, a search ordered them.",
    )

    @property
    def task(self) -> Task:
        from diconet.problems.tsp.task import TspTask

        return TspTask()

    def read(self, source: Source, options: Mapping[str, Any]) -> Instances:
        from diconet.problems.tsp.tsplib import is_tsplib, parse_tsp

        known = options.get("optimum")
        if known is not None and not known > 0:
            raise ValueError(f"--optimum must be above 0; got {known}.")
        if is_tsplib(source):
            if options.get("metric") is not None:
                raise ValueError(
                    f"--metric must not be given for {source.name}, which specifies its own."
                )
            instance = parse_tsp(source)
            return Instances([instance.name], [instance], {"optimum": [known or instance.optimum]})
        found = super().read(source, options)
        return replace(found, given={"optimum": [known] * len(found)})

    def columns(self, table: Table, options: Mapping[str, Any]) -> list[str]:
        found = super().columns(table, options)
        on_globe = options.get("metric") in ("haversine", "GEO")
        # Distances on the globe take the latitude first.
        turned = on_globe and found[0].strip().lower() in PLANE[0]
        return found[::-1] if turned else found

    def hint(self, table: Table, options: Mapping[str, Any]) -> str | None:
        called = {column.strip().lower() for column in self.columns(table, options)}
        if options.get("metric") is None and called & {*LATITUDE} and called & {*LONGITUDE}:
            return "these look like places on Earth: --metric haversine measures in kilometres."
        return None

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.tsp.solve import tsp

        options.pop("optimum", None)
        tours: Any = tsp(instances.data, **options)
        optima = instances.given.get("optimum", [None] * len(tours))
        return [
            tour if optimum is None else replace(tour, optimum=float(optimum))
            for tour, optimum in zip(tours, optima, strict=True)
        ]

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.problems.tsp.edges import EdgeMerge, LengthMerge
        from diconet.problems.tsp.pairs import PairMerge

        return isinstance(network.merge, EdgeMerge | PairMerge | LengthMerge)

    def pictures(self, model: Model, folder: Path) -> list[Path]:
        (cities,) = self.fresh(_PICTURED, 1, seed=3).data
        return [self.page_solve(cities, "learned", model).save_levels(folder / "tsp_levels.png")]

    def page_solve(
        self, points: np.ndarray, division: Division, model: Model, **fields: float
    ) -> Solution:
        from diconet.core.model import DiCoNet
        from diconet.core.tree import Growth
        from diconet.problems.networks import as_network
        from diconet.problems.tsp.edges import EdgeMerge

        network = as_network(self, self.divided(model, division))
        if division != "none" and isinstance(network.merge, EdgeMerge):
            # Meant for thousands of cities; small leaves give the page a tree to show.
            network = DiCoNet(network.split, network.merge, Growth(leaf_size=_PICTURE_LEAF))
        (solution,) = self.solve(Instances(["page"], [points]), model=network)
        return solution


PROBLEM = TspProblem("tsp", summary="the shortest round trip through cities", package=__package__)
