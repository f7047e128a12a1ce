from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.nets.axes import AcrossSplit
from diconet.nets.pair_net import PairNet
from diconet.problems.tsp.divide import LEAF
from diconet.problems.tsp.edges import EdgeMerge
from diconet.problems.tsp.pairs import NODE_INPUTS, PairMerge
from diconet.problems.tsp.search.metric import Metric
from diconet.problems.tsp.solve import Tour, tsp
from diconet.problems.tsp.table import control
from diconet.problems.tsp.tsplib import TspInstance
from tests.tours import read_tour


def small() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(AcrossSplit(), EdgeMerge.fresh(8, 2), Growth(leaf_size=20))


def one(cities: object, **options: object) -> Tour:
    found = tsp(cities, **options)  # type: ignore[arg-type]
    assert isinstance(found, Tour)
    return found


@given(
    st.integers(1, 40),
    st.sampled_from(["square", "line", "equal", "grid", "huge"]),
    st.sampled_from(["none", "2opt", "lk"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_answer_is_a_permutation(n: int, kind: str, refine: str, learned: bool) -> None:
    cities = np.random.default_rng(n).random((n, 2))
    if kind == "line":
        cities[:, 1] = 0
    elif kind == "equal":
        cities[:] = 0.3
    elif kind == "grid":
        cities = np.round(3 * cities)
    elif kind == "huge":
        cities *= 1e300
    found = one(cities, refine=refine, model=small() if learned else control())
    assert np.isfinite(found.value)
    assert found.value >= 0
    assert sorted(found.tour.tolist()) == list(range(n))
    assert found.tour[0] == 0
    assert len(found.tree[-1]) == n


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-160, 1e-300])
def test_very_large_and_very_small_maps_are_measured_as_others_are(scale: float) -> None:
    """Squares of such coordinates leave the range of doubles: the length was infinite, or 0."""
    cities = np.random.default_rng(5).random((60, 2))
    usual, found = one(cities, model=control()), one(cities * scale, model=control())
    assert found.value / scale == pytest.approx(usual.value, rel=1e-3)
    assert found.bound is not None
    assert 0 < found.bound < found.value
    assert found.quality() == usual.quality() != "60 cities, proven optimal"


@pytest.mark.parametrize("metric", ["euclidean", "EUC_2D", "CEIL_2D", "ATT"])
def test_maps_beyond_measure_are_refused_in_one_line(metric: str) -> None:
    cities = np.random.default_rng(0).choice([-1.7e308, 1.7e308], (9, 2))
    with pytest.raises(ValueError, match=r"cities must be close .* coordinates up to 1.7e\+308"):
        one(cities, metric=metric, model=control())


def test_a_geographic_map_whose_latitudes_add_up_beyond_doubles_is_toured() -> None:
    cities = (1000 + np.random.default_rng(0).random((30, 2))) * 3e304
    with np.errstate(over="ignore"):
        assert sorted(one(cities, metric="GEO", model=control()).tour) == list(range(30))


def test_cities_nearly_on_top_of_each_other_have_a_geographic_length() -> None:
    """Rounding took the cosine above 1, and the length was no number."""
    cities = 48.5 + np.random.default_rng(0).random((40, 2)) * 1e-8
    found = one(cities, metric="GEO", model=control())
    assert 0 <= found.value <= 40


def test_a_line_is_walked_there_and_back() -> None:
    cities = np.stack([np.random.default_rng(0).permutation(30), np.zeros(30)], 1)
    assert one(cities, model=control()).value == pytest.approx(58)


def test_refinement_only_shortens() -> None:
    cities = np.random.default_rng(0).random((150, 2))
    values = [
        one(cities, refine=refine, model=control()).value for refine in ("none", "2opt", "lk")
    ]
    assert values[0] > values[1] >= values[2]
    assert one(cities, kicks=0, model=control()).value == pytest.approx(values[1])


def test_beyond_a_leaf_the_search_is_divided() -> None:
    num = LEAF + 300
    cities = np.random.default_rng(0).random((num, 2))
    found = one(cities, model=small(), kicks=2)
    assert sorted(found.tour.tolist()) == list(range(num))
    assert found.value == pytest.approx(Metric.of(cities).length(found.tour))
    assert found.value < 1.1 * (0.7124 * num**0.5 + 0.6)


def test_where_there_is_no_time_the_answer_is_still_a_tour() -> None:
    cities = np.random.default_rng(0).random((40_000, 2))
    found = one(cities, seconds=0.2)
    assert sorted(found.tour.tolist()) == list(range(40_000))
    assert found.value < 1.4 * 0.7124 * 40_000**0.5


def test_copies_of_a_city_follow_each_other() -> None:
    cities = np.random.default_rng(0).random((12, 2))
    plain = one(cities, model=control())
    doubled = one(np.concatenate([cities, cities]), model=control())
    assert doubled.value == pytest.approx(plain.value)
    place = np.argsort(doubled.tour)
    gap = np.abs(place[:12] - place[12:])
    assert set(np.minimum(gap, 24 - gap)) == {1}


def test_several_instances_are_solved_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    many = [rng.random((n, 2)) for n in (5, 30, 12)]
    model = small()
    together = tsp(many, model=model)
    assert isinstance(together, list)
    for cities, found in zip(many, together, strict=True):
        assert np.array_equal(one(cities, model=model).tour, found.tour)


def test_the_seed_decides_and_its_absence_is_a_seed_too() -> None:
    cities = np.random.default_rng(0).random((300, 2))
    tours = [one(cities, kicks=1, model=small(), seed=seed).tour for seed in (None, None, 1, 1, 2)]
    assert np.array_equal(tours[0], tours[1])
    assert np.array_equal(tours[2], tours[3])
    assert not np.array_equal(tours[2], tours[4])


def test_a_file_brings_its_metric_and_optimum(tmp_path: Path) -> None:
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [0.5, 0.5]]) * 7.07
    found = one(TspInstance("berlin52", "CEIL_2D", square), model=control())
    assert found.value == Metric.of(square, "CEIL_2D").length(found.tour)
    assert found.value == 8 + 8 + 8 + 5 + 5
    assert found.gap == pytest.approx(34 / 7542 - 1)
    assert "above the optimum" in repr(found)
    found.write(tmp_path / "a.tour", "a")
    assert np.array_equal(read_tour(tmp_path / "a.tour"), found.tour)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"refine": "3opt"}, "refine must be one of none, 2opt, lk; got '3opt'"),
        ({"kicks": -1}, "kicks must be a finite number of at least 0; got -1"),
        ({"seconds": float("nan")}, "seconds must be a finite number of at least 0; got nan"),
        ({"seed": -5}, "seed must be a whole number from 0 to"),
        ({"metric": "MAN_2D"}, "metric must be one of"),
        ({"model": "nobody"}, "nobody"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        one(np.zeros((4, 2)), **{"model": control(), **options})


@pytest.mark.parametrize("cities", [[], np.zeros((3, 3)), [[0, np.nan]], "berlin"])
def test_bad_cities_are_refused(cities: object) -> None:
    with pytest.raises(ValueError, match="cities must"):
        one(cities, model=control())


def test_plot_draws_every_city() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    found = one(np.random.default_rng(0).random((9, 2)), model=control())
    found.plot(ax)
    assert [len(line.get_xdata()) for line in ax.lines] == [10]  # type: ignore[arg-type]
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 9  # type: ignore[arg-type]
    plt.close("all")


def over_pairs() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(RandomSplit(), PairMerge(PairNet(NODE_INPUTS, 1, 4, 1)), depth=0)


def test_the_networks_of_the_paper_answer_too() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 17):
        found = one(rng.random((n, 2)), model=over_pairs())
        assert sorted(found.tour.tolist()) == list(range(n))
    cities = rng.random((20, 2))
    best = one(cities, model=control(), refine="lk").value
    for name in ("tsp_bs1", "tsp_bs2", "tsp_paper"):
        assert one(cities, model=name).value <= 1.02 * best


def test_a_network_over_all_pairs_says_what_it_cannot_do() -> None:
    cities = np.random.default_rng(0).random((2_001, 2))
    with pytest.raises(ValueError, match=r"cities must be at most 2000 for this model.*got 2001"):
        one(cities, model=over_pairs())
