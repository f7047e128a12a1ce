"""The problem object of k-means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.io.parse import count, existing
from diconet.problems.problem import Instances, Option, Page, PageField, Problem, Record

if TYPE_CHECKING:
    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.tables import Table
    from diconet.problems.page import Division
    from diconet.problems.solution import Model, Solution

_POINTS_EACH = 20


class KMeansProblem(Problem):
    """Points divided into k clusters, each close to its own mean."""

    options = (
        Option("k", "the number of clusters", count),
        Option("centers", "write the centres to a file", Path, writes=True),
        Option("cifar", "folder of CIFAR-10", existing, commands=("reproduce",)),
    )
    sizes = (80, 160, 320)
    table = "kmeans"
    alone: Mapping[str, Any] = {"exchange": False, "lloyd": 0}
    page = Page(
        value="cost",
        fields=(
            PageField("k", "clusters", 4, 1, 64, whole=True),
            PageField("search", "search after the tree", 1, 0, 1, whole=True),
        ),
        cut="One cut per part, along a line: each side gets its share of the clusters.",
        answer="The clusters and their centres; with search, after exchanges and Lloyd's rounds.",
        without="one start of k-means++",
    )

    @property
    def task(self) -> Task:
        from diconet.problems.kmeans.task import KMeansTask

        return KMeansTask()

    @property
    def num_columns(self) -> None:
        return None

    def given(self, tables: Sequence[Table], options: Mapping[str, Any]) -> dict[str, list[Any]]:
        return {"k": [table.extra("k", options.get("k")) for table in tables]}

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.kmeans.solve import kmeans

        k: Any = options.pop("k", None)
        k = instances.given.get("k") if k is None else k
        return list(kmeans(instances.data, k, **options))

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.nets.graph_split import GraphSplit
        from diconet.nets.sweep import SweepSplit
        from diconet.problems.kmeans.solve import parts_of

        return all(isinstance(part, SweepSplit | GraphSplit) for part in parts_of(network))

    def evaluate(self, *, model: Model = None, **options: Any) -> list[Record]:
        """The quality of the answers, on points with as many coordinates as the network takes."""
        from diconet.problems.kmeans.solve import num_features_of
        from diconet.problems.networks import as_network

        options["features"] = num_features_of(as_network(self, model))
        return super().evaluate(model=model, **options)

    def figures(self, model: Model, settings: Any, num_sets: int = 100) -> str:
        """As for any problem; the paper's baseline, which has no tree, by its labels alone."""
        from diconet.core.weights import load
        from diconet.problems.kmeans.measure import figures_of_labels
        from diconet.problems.networks import find_path

        if isinstance(model, str | Path) and not self.accepts(network := load(find_path(model))):
            return figures_of_labels(self, network, num_sets)
        return super().figures(model, settings, num_sets)

    def fresh(self, size: int, num_sets: int, seed: int, **options: Any) -> Instances:
        from diconet.problems.kmeans.task import Gaussian, KMeansTask

        task = KMeansTask(Gaussian(options.get("features", 2)))
        found = self._general.fresh_instances(task, size, num_sets, seed)
        return Instances(
            found.names, found.data, {"k": [max(2, round(size / _POINTS_EACH))] * num_sets}
        )

    def page_sample(self, n: int, seed: int, **fields: float) -> dict[str, Any]:
        import numpy as np

        rng = np.random.default_rng(seed)
        k = int(fields.get("k", 4))
        centres = rng.uniform(0.1, 0.9, (k, 2))
        points = centres[rng.integers(k, size=n)] + 0.05 * rng.standard_normal((n, 2))
        return {"points": points.clip(0.01, 0.99).round(4).tolist()}

    def page_solve(
        self, points: np.ndarray, division: Division, model: Model, **fields: float
    ) -> Solution:
        from diconet.problems.kmeans.measure import undivided
        from diconet.problems.kmeans.solve import kmeans

        k, search = int(fields["k"]), bool(fields["search"])
        if division == "none":
            return undivided(points, k, search=search)
        model = self.divided(model, division)
        return kmeans(points, k, model=model, **({} if search else self.alone))


PROBLEM = KMeansProblem("kmeans", summary="k clusters of points", package=__package__)
