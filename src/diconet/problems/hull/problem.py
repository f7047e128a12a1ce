"""The problem object of convex hulls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.io.source import PLANE
from diconet.problems.problem import Instances, Page, PageField, Problem

if TYPE_CHECKING:
    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.problems.page import Division
    from diconet.problems.solution import Model, Solution


class HullProblem(Problem):
    """Corners of a set of points in the plane, counter-clockwise."""

    options = ()
    roles = PLANE
    sizes = (25, 50, 100, 200)
    table = "hull"
    page = Page(
        value="area",
        fields=(PageField("repair", "repair unproven answers", 0, 0, 1, whole=True),),
        cut="The split sees each part along its longest axis and cuts it in two.",
        merge="Two hulls become one: the merge judges which edges the points on both sides allow.",
        answer="The last merge gives the hull of all points. It is then proven right, or not.",
        undivided=150,  # all pairs are judged against all points: cubic time
    )

    @property
    def task(self) -> Task:
        from diconet.problems.hull.task import HullTask

        return HullTask()

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        from diconet.problems.hull.solve import convex_hull

        return list(convex_hull(instances.data, **options))

    def accepts(self, network: DiCoNet) -> bool:
        from diconet.nets.pointer import PointerMerge
        from diconet.problems.hull.triples import TripleMerge

        return isinstance(network.merge, PointerMerge | TripleMerge)

    def pictures(self, model: Model, folder: Path) -> list[Path]:
        from diconet.problems.hull.draw import pictures
        from diconet.problems.networks import as_network

        return pictures(as_network(self, model), folder)

    def page_solve(
        self, points: np.ndarray, division: Division, model: Model, **fields: float
    ) -> Solution:
        instances, model = Instances(["page"], [points]), self.divided(model, division)
        (solution,) = self.solve(instances, model=model, repair=bool(fields.get("repair", False)))
        return solution

    def page_sample(self, n: int, seed: int, **fields: float) -> dict[str, Any]:
        import numpy as np

        rng = np.random.default_rng(seed)
        points = 0.5 + 0.17 * rng.standard_normal((n, 2))
        return {"points": points.clip(0.01, 0.99).round(4).tolist()}


PROBLEM = HullProblem("hull", summary="the convex hull of points", package=__package__)
