from pathlib import Path

import numpy as np
import pytest

from diconet.problems.tsp.divide import Budget, searched
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.search.near_lists import near_lists
from diconet.problems.tsp.tsplib import OPTIMA, read_tsp, write_tour
from tests.tours import read_tour

DATA = Path(__file__).parents[3] / "shared" / "data" / "tsplib"
NAMES = ["eil51", "berlin52", "st70", "eil101", "a280", "pcb442", "pr1002"]

BURMA14 = """NAME: burma14
TYPE: TSP
DIMENSION: 14
EDGE_WEIGHT_TYPE: GEO
EDGE_WEIGHT_FORMAT: FUNCTION
NODE_COORD_SECTION
1 16.47 96.10
2 16.47 94.44
3 20.09 92.54
4 22.39 93.37
5 25.23 97.24
6 22.00 96.05
7 20.47 97.02
8 17.20 96.29
9 16.30 97.38
10 14.05 98.12
11 16.53 97.38
12 21.52 95.59
13 19.41 97.13
14 20.09 94.55
EOF
"""


ATT48 = """
6734 1453 2233 10 5530 1424 401 841 3082 1644 7608 4458 7573 3716 7265 1268 6898 1885 1112 2049
5468 2606 5989 2873 4706 2674 4612 2035 6347 2683 6107 669 7611 5184 7462 3590 7732 4723 5900
3561 4483 3369 6101 1110 5199 2182 1633 2809 4307 2322 675 1006 7555 4819 7541 3981 3177 756
7352 4506 7545 2801 3245 3305 6426 3173 4608 1198 23 2216 7248 3779 7762 4595 7392 2244 3484
2829 6271 2135 4985 140 1916 1569 7280 4899 7509 3239 10 2676 6807 2993 5185 3258 3023 1942
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some.tsp"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_optimal_tour_has_the_published_length(name: str) -> None:
    if not DATA.exists():
        pytest.skip(f"no TSPLIB files in {DATA}")
    instance = read_tsp(DATA / f"{name}.tsp")
    tour = read_tour(DATA / f"{name}.opt.tour")
    assert instance.optimum is not None
    assert Metric.of(instance.cities, instance.kind).length(tour) == instance.optimum


def test_geographic_distances_give_the_published_optimum(tmp_path: Path) -> None:
    burma = read_tsp(written(tmp_path, BURMA14))
    assert (burma.name, burma.kind, burma.cities.shape) == ("burma14", "GEO", (14, 2))
    metric = Metric.of(burma.cities, burma.kind)
    found = searched(metric, near_lists(burma.cities, 13), np.arange(14), Budget(100.0))
    assert metric.length(found) == burma.optimum == OPTIMA["burma14"] == 3323


def test_pseudo_euclidean_distances_give_the_published_optimum() -> None:
    cities = np.array(ATT48.split(), dtype=float).reshape(48, 2)
    metric = Metric.of(cities, "ATT")
    found = searched(metric, near_lists(cities, 10), np.arange(48), Budget(100.0))
    assert metric.length(found) == OPTIMA["att48"] == 10628


def test_a_tour_is_read_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tour"
    write_tour(path, np.array([2, 0, 1]), name="a", comment="length 3")
    assert path.read_text().startswith("NAME : a\nTYPE : TOUR\nCOMMENT : length 3\nDIMENSION : 3\n")
    assert read_tour(path).tolist() == [2, 0, 1]


@pytest.mark.parametrize("kind", ["EXPLICIT", "MAN_2D", "EUC_3D"])
def test_other_metrics_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match=rf"must be one of EUC_2D.*; some.tsp has {kind}"):
        read_tsp(written(tmp_path, BURMA14.replace("GEO", kind)))


def test_a_matrix_of_weights_is_refused_by_its_type(tmp_path: Path) -> None:
    text = "NAME: x\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_SECTION\n0 1\n1 0\nEOF\n"
    with pytest.raises(ValueError, match="EDGE_WEIGHT_TYPE EXPLICIT is unsupported"):
        read_tsp(written(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("14 20.09 94.55\n", "", "must be the number of cities; some.tsp says 14, has 13"),
        ("14 20.09 94.55", "14 20.09", "a number, x and y; some.tsp has '14 20.09'"),
        ("14 20.09 94.55", "14 20.09 east", "a number, x and y; some.tsp has '14 20.09 east'"),
    ],
)
def test_a_damaged_file_says_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_tsp(written(tmp_path, BURMA14.replace(old, new)))


def test_a_name_may_end_as_its_file_does(tmp_path: Path) -> None:
    instance = read_tsp(written(tmp_path, BURMA14.replace("burma14", "burma14.tsp", 1)))
    assert (instance.name, instance.optimum) == ("burma14", 3323)
