from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.nets.classic import MedianSplit
from diconet.problems.hull.ablate import ablate
from diconet.problems.hull.certificate import exact_hull, is_hull
from diconet.problems.hull.clouds import CLOUDS
from diconet.problems.hull.problem import PROBLEM
from diconet.problems.hull.sieve import FEWEST, may_be_corners
from diconet.problems.hull.solve import Hull, convex_hull
from diconet.problems.hull.task import hull_of
from diconet.problems.networks import as_network
from tests.problems.hull.exact import exact_merge
from tests.problems.hull.test_certificate import coordinate
from tests.problems.hull.test_certificate import exact_hull as exact_in_fractions


@pytest.fixture(scope="module")
def exact_net() -> DiCoNet:
    return DiCoNet(MedianSplit(), exact_merge(patience=0.6), Growth(leaf_size=8))


@pytest.fixture(scope="module")
def wrong_net() -> DiCoNet:
    """Drops what it should keep."""
    merge = exact_merge()
    with torch.no_grad():
        merge.judge.forms.neg_()
    return DiCoNet(MedianSplit(), merge, Growth(leaf_size=8))


def cloud(kind: str, size: int, seed: int = 0) -> np.ndarray:
    return CLOUDS[kind](1, size, torch.Generator().manual_seed(seed))[0].numpy()


@pytest.mark.parametrize("kind", ["uniform", "gaussian", "clustered", "stretched", "shifted"])
def test_shipped_network_is_right_and_says_so(kind: str) -> None:
    points = cloud(kind, 300)
    hull = convex_hull(points)
    assert isinstance(hull, Hull)
    assert hull.exact
    assert hull.indices.tolist() == hull_of(points).tolist()


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e-300, 1e300])
def test_the_scale_of_the_coordinates_does_not_matter(scale: float) -> None:
    points = cloud("uniform", 200)
    assert convex_hull(points * scale).indices.tolist() == convex_hull(points).indices.tolist()


def test_value_is_the_area_and_indices_start_at_the_lowest(exact_net: DiCoNet) -> None:
    points = [[2.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]
    hull = convex_hull(points, model=exact_net)
    assert hull.indices.tolist() == [0, 2, 3, 4]
    assert hull.value == 4.0
    assert repr(hull) == "Hull(value=4, 4 corners, certified exact)"


def test_a_grid_has_four_corners(exact_net: DiCoNet) -> None:
    """Ties everywhere: every point on the rim is in line with its neighbours."""
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), -1).reshape(-1, 2)
    for model in (exact_net, None):
        hull = convex_hull(grid, model=model)
        assert hull.indices.tolist() == [0, 19, 399, 380]
        assert hull.exact


def test_of_equal_points_the_first_is_the_corner(exact_net: DiCoNet) -> None:
    points = cloud("uniform", 50)
    twice = np.concatenate([points, points[::-1], points])
    hull = convex_hull(twice, model=exact_net)
    assert hull.exact
    assert hull.indices.tolist() == hull_of(points).tolist()
    assert [len(level) for level in hull.tree] == [150] * len(hull.tree)
    assert hull.tree[-1][:50].tolist() == hull.tree[-1][100:].tolist()


@pytest.mark.parametrize(
    ("points", "corners", "area"),
    [
        ([[3.0, 4.0]], [0], 0.0),
        ([[3.0, 4.0]] * 5, [0], 0.0),
        ([[1.0, 1.0], [0.0, 0.0]], [0, 1], 0.0),
        ([[0.1 * i, 0.2 * i] for i in (3, 0, 9, 5)], [1, 2], 0.0),
        ([[5.0, 0.1 * i] for i in range(30)], [0, 29], 0.0),
        ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 2], 0.5),
    ],
    ids=["one", "all equal", "two", "on a line", "on a vertical", "three"],
)
def test_small_and_flat_inputs(points: list[list[float]], corners: list[int], area: float) -> None:
    hull = convex_hull(points)
    assert hull.indices.tolist() == corners
    assert hull.value == area
    assert hull.exact or not is_hull(np.array(points), np.array(corners))


def test_many_are_answered_as_each_alone(exact_net: DiCoNet) -> None:
    clouds = [cloud("uniform", n, seed=n) for n in (1, 5, 40, 41)]
    together = convex_hull(clouds, model=exact_net)
    assert isinstance(together, list)
    for hull, points in zip(together, clouds, strict=True):
        assert hull.indices.tolist() == convex_hull(points, model=exact_net).indices.tolist()


def test_a_wrong_answer_is_not_certified_and_can_be_repaired(wrong_net: DiCoNet) -> None:
    points = cloud("uniform", 100)
    assert not convex_hull(points, model=wrong_net, repair=False).exact
    mended = convex_hull(points, model=wrong_net)
    assert mended.exact
    assert mended.repaired
    assert "after repair" in repr(mended)
    assert mended.indices.tolist() == hull_of(points).tolist()


@pytest.mark.parametrize("scale", [1.7e308, 1e200, 1e-290])
def test_repair_at_any_scale(scale: float, wrong_net: DiCoNet) -> None:
    points = cloud("uniform", 100)
    points = points / np.abs(points).max()
    mended = convex_hull(points * scale, model=wrong_net)
    assert mended.repaired
    assert mended.indices.tolist() == hull_of(points).tolist()


def test_repair_leaves_a_right_answer_alone(exact_net: DiCoNet) -> None:
    assert not convex_hull(cloud("uniform", 100), model=exact_net).repaired


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 24), st.just(2)), elements=coordinate))
def test_every_hull_is_right_and_exact_is_never_claimed_of_a_wrong_one(points: np.ndarray) -> None:
    model = DiCoNet(RandomSplit(), exact_merge(), Growth(leaf_size=6))
    expected = exact_in_fractions(points)
    start = expected.index(min(expected))
    expected = expected[start:] + expected[:start]
    alone = convex_hull(points, model=model, seed=1, repair=False)
    assert len(set(alone.indices.tolist())) == len(alone.indices) >= 1
    if alone.exact:
        assert alone.indices.tolist() == expected
    mended = convex_hull(points, model=model, seed=1)
    assert mended.exact
    assert mended.indices.tolist() == expected


ODD_CLOUDS = {
    "nearly in line": np.column_stack([np.arange(300.0), np.arange(300.0) * (1 + 2.0**-52)])
    + np.random.default_rng(0).choice([0, 2.0**-45], (300, 2)),
    "a thin needle": np.random.default_rng(1).random((300, 2)) * [1.0, 1e-18] + [0.0, 1.0],
    "scales from 1e-300 to 1e300": np.random.default_rng(2).standard_normal((300, 2))
    * 10.0 ** np.random.default_rng(3).integers(-300, 300, (300, 1)),
    "the smallest doubles": np.random.default_rng(4).integers(-9, 9, (300, 2)) * 5e-324,
    "all but one in line, each three times": np.repeat(
        [[0.1 * i, 0.3 * i] for i in range(99)] + [[5.0, 15.0 + 2.0**-48]], 3, 0
    ),
}


@pytest.mark.parametrize("kind", ODD_CLOUDS)
def test_hulls_of_degenerate_sets_are_right_by_default(kind: str) -> None:
    points = ODD_CLOUDS[kind]
    hull = convex_hull(points)
    expected = exact_in_fractions(points)
    start = expected.index(min(expected))
    assert hull.exact
    assert hull.indices.tolist() == expected[start:] + expected[:start]


@pytest.mark.parametrize("kind", ["uniform", "stretched", "circle", "sides"])
def test_what_is_set_aside_is_no_corner(kind: str) -> None:
    points = np.repeat(cloud(kind, 3_000), 2, 0)
    model = as_network(PROBLEM, None)
    kept = may_be_corners(model, torch.from_numpy(points))
    corners = exact_hull(points)
    assert kept[corners].all()
    assert kept.sum() < len(points) / 10 or kind in ("circle", "sides")
    hull = convex_hull(points)
    assert not hull.repaired
    assert sorted(hull.indices.tolist()) == sorted(corners.tolist())
    assert set(hull.tree[1][~kept]) <= {0}
    assert [len(level) for level in hull.tree] == [len(points)] * len(hull.tree)


def test_a_judge_that_errs_sets_nothing_aside_unseen(wrong_net: DiCoNet) -> None:
    hull = convex_hull(cloud("uniform", 3_000), model=wrong_net)
    assert hull.repaired
    assert hull.exact


@settings(max_examples=25, deadline=None)
@given(
    size=st.sampled_from([7, 8, 9, 15, 16, 17, 24, 25, 32, 33, FEWEST - 1, FEWEST, FEWEST + 1]),
    digits=st.sampled_from([1, 2, 16]),
    seed=st.integers(0, 10**6),
)
def test_sizes_around_the_limits_of_leaf_and_sieve(size: int, digits: int, seed: int) -> None:
    """Few digits: many points are equal or in line."""
    points = np.random.default_rng(seed).random((size, 2)).round(digits)
    hull = convex_hull(points)
    assert hull.exact
    assert sorted(hull.indices.tolist()) == sorted(exact_hull(points).tolist())


def test_one_thread_and_two_give_the_same_answer() -> None:
    points, before = cloud("gaussian", 3_000), torch.get_num_threads()
    hulls = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        hulls.append(convex_hull(points, seed=3))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    one, two = hulls
    assert one.indices.tolist() == two.indices.tolist()
    assert one.tree[-1].tolist() == two.tree[-1].tolist()


def test_another_seed_draws_another_tree_and_the_same_hull() -> None:
    model = DiCoNet(RandomSplit(), exact_merge(), Growth(leaf_size=8))
    points = cloud("uniform", 100)
    one, same, other = (convex_hull(points, model=model, seed=seed) for seed in (1, 1, 2))
    assert one.tree[1].tolist() == same.tree[1].tolist() != other.tree[1].tolist()
    assert one.indices.tolist() == other.indices.tolist()


def test_what_is_not_points_is_refused() -> None:
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\); got \(4, 3\)"):
        convex_hull(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="points must be finite"):
        convex_hull([[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="points must hold at least 1 rows; got 0"):
        convex_hull(np.zeros((0, 2)))
    convex_hull(np.zeros((1, 2)))


def test_plot_draws_points_and_hull() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = plt.figure().gca()
    assert convex_hull(cloud("uniform", 30)).plot(ax) is ax
    assert "certified" in ax.get_title()
    plt.close("all")


def test_every_way_to_divide_is_measured_and_right() -> None:
    records = ablate(1e-3, (20, FEWEST))
    ways = {(record["size"], record["division"]) for record in records}
    assert (20, "none") in ways
    assert (FEWEST, "learned, after the sieve") in ways
    assert all(record["exact"] == 100 for record in records)
    assert all(record["sets"] >= 3 and record["error"] > 0 for record in records)
