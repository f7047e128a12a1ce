from __future__ import annotations

import numpy as np

from diconet.core.model import DiCoNet
from diconet.nets.axes import AcrossSplit
from diconet.problems.solution import Partitions
from diconet.problems.tsp.edges import LengthMerge
from diconet.problems.tsp.solve import Tour, tsp


def test_parts_of_a_tour_are_measured_as_the_tour_is() -> None:
    """Two parts; in GEO a degree of latitude is worth more than one of longitude this far north."""
    rng = np.random.default_rng(0)
    cities = rng.random((24, 2)) * [3.0, 60.0] + [80.0, 0.0]
    tree = Partitions((np.arange(24) % 2 == 1)[None])
    plain = DiCoNet(AcrossSplit(), LengthMerge(), depth=0)
    tour = Tour(1.0, tree, cities, np.arange(24), None, "GEO", model=plain)
    (leaves,) = [stage for stage in tour.stages() if len(stage.cycles) == 2]
    for _, rows in leaves.cycles:
        own = tsp(cities[np.sort(rows)], metric="GEO", model=plain)
        assert isinstance(own, Tour)
        assert np.array_equal(np.sort(rows)[own.tour], rows)
        flat = tsp(cities[np.sort(rows)], model=plain)
        assert isinstance(flat, Tour)
        assert not np.array_equal(flat.tour, own.tour)
