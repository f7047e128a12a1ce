from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from diconet.core import threads
from diconet.problems.kmeans import exchange, lloyd
from diconet.problems.kmeans.solve import Clusters, kmeans


def blobs(k: int, each: int = 20, features: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.random((k, 1, features)) * 10
    return (centres + 0.05 * rng.standard_normal((k, each, features))).reshape(-1, features)


def test_labels_centres_and_value_fit_together() -> None:
    points = blobs(5)
    found = kmeans(points, 5)
    assert isinstance(found, Clusters)
    assert found.labels.shape == (100,)
    by_hand = 0.0
    for c in range(5):
        mine = points[found.labels == c]
        assert found.centers[c] == pytest.approx(mine.mean(0))
        by_hand += np.square(mine - mine.mean(0)).sum()
    assert found.value == pytest.approx(by_hand)
    assert found.sizes.tolist() == [20] * 5
    assert "5 clusters" in repr(found)


@pytest.mark.parametrize("k", [3, 6, 11])
def test_well_parted_blobs_cost_what_lloyd_costs(k: int) -> None:
    points = blobs(k, features=6, seed=k)
    bar = KMeans(k, n_init=10, random_state=0).fit(points).inertia_
    assert kmeans(points, k, lloyd=0).value <= 1.01 * bar  # type: ignore[union-attr]


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 14),
    data=st.data(),
    decimals=st.integers(0, 2),
    scale=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_never_an_empty_cluster(n: int, data: st.DataObject, decimals: int, scale: float) -> None:
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(n)
    points = scale * rng.random((n, 2)).round(decimals)
    found = kmeans(points, k, seed=data.draw(st.sampled_from([None, 1])))
    assert np.unique(found.labels).tolist() == list(range(k))  # type: ignore[union-attr]
    assert len(found.tree[-1]) == n  # type: ignore[union-attr]


def test_many_sets_are_solved_as_one_batch_with_a_k_each() -> None:
    clouds = [blobs(4), blobs(3, each=7, seed=2)]
    together = kmeans(clouds, [4, 3])
    assert isinstance(together, list)
    for points, k, found in zip(clouds, (4, 3), together, strict=True):
        alone = kmeans(points, k)
        assert isinstance(alone, Clusters)
        assert found.labels.tolist() == alone.labels.tolist()


def test_place_and_scale_of_the_points_do_not_matter() -> None:
    points = blobs(6, seed=4)
    here, there = kmeans(points, 6), kmeans(points * 1e6 + 1e8, 6)
    assert here.labels.tolist() == there.labels.tolist()  # type: ignore[union-attr]


def test_more_lloyd_steps_never_cost_more() -> None:
    points = np.random.default_rng(0).random((300, 2))
    values = [kmeans(points, 12, lloyd=steps).value for steps in (0, 1, 5, 50)]  # type: ignore[union-attr]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("points", "k", "message"),
    [
        ([[0, 0], [1, 1]], 3, "k must be at most the number of points, 2; got 3"),
        ([[0, 0], [1, 1]], 0, "k must be a whole number of at least 1; got 0"),
        ([0, 1, 2], 2, r"points must have shape \(n, d\); got \(3,\)"),
        ([[0, float("nan")]], 1, r"points must be finite; got nan at \(0, 1\)"),
    ],
)
def test_says_what_is_wrong_with_the_input(points: object, k: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kmeans(points, k)  # type: ignore[arg-type]


def with_outlier(far: float) -> tuple[np.ndarray, float]:
    """Two clusters one apart and a point far off, and what the best three clusters cost."""
    rng = np.random.default_rng(0)
    heaps = [rng.normal(place, 0.01, (20, 2)) for place in (0, 1)]
    cost = sum(float(np.square(heap - heap.mean(0)).sum()) for heap in heaps)
    return np.concatenate([*heaps, [[far, far]]]), cost


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8, 1e9])
def test_a_point_far_off_does_not_blur_the_others(far: float) -> None:
    points, cost = with_outlier(far)
    found = kmeans(points, 3)
    assert isinstance(found, Clusters)
    assert found.value == pytest.approx(cost, rel=1e-4)
    assert found.reference == pytest.approx(cost, rel=1e-4)


def test_weights_are_as_repeated_points_to_the_cost() -> None:
    points = blobs(4)
    weights = np.r_[np.full(40, 3.0), np.ones(40)]
    found = kmeans(points, 4, sample_weight=weights)
    assert isinstance(found, Clusters)
    repeated = kmeans(np.r_[points, points[:40], points[:40]], 4)
    assert isinstance(repeated, Clusters)
    assert np.sort(found.centers, 0) == pytest.approx(np.sort(repeated.centers, 0))
    assert found.value == pytest.approx(repeated.value)
    assert found.reference == pytest.approx(found.value)
    heavy = kmeans(points, 4, sample_weight=weights * 1e300)
    assert heavy.labels.tolist() == found.labels.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"sample_weight must have shape \(2,\); got \(1,\)"),
        ([1.0, -1.0], "sample_weight must be finite, at least 0 and not all 0; got -1.0"),
        ([0.0, 0.0], "sample_weight must be finite, at least 0 and not all 0; got 0.0"),
    ],
)
def test_refuses_weights_that_weigh_nothing(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kmeans([[0, 0], [1, 1]], 1, sample_weight=weights)
    kmeans([[0, 0], [1, 1]], 1, sample_weight=[1.0, 0.0])


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    k=st.sampled_from([1, 2, 3, 7, 8, 9, 17]),
    limit=st.sampled_from(["k", "256", "256 k"]),
    more=st.integers(-1, 1),
    features=st.integers(1, 3),
    decimals=st.sampled_from([0, 1, 6]),
    weighted=st.booleans(),
)
def test_valid_around_the_limits_of_looking_sampling_and_balancing(
    monkeypatch: pytest.MonkeyPatch,
    k: int,
    limit: str,
    more: int,
    features: int,
    decimals: int,
    weighted: bool,
) -> None:
    """A split looks at 256 points, a merge at 256 per cluster; from 8 leaves on cuts balance."""
    monkeypatch.setattr(exchange, "_AT_LEAST", 1)
    n = max(k, {"k": k, "256": 256, "256 k": 256 * k}[limit] + more)
    rng = np.random.default_rng(n)
    points = rng.random((n, features)).round(decimals)
    weights = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else np.ones(n)
    found = kmeans(points, k, sample_weight=weights)
    assert isinstance(found, Clusters)
    assert np.unique(found.labels).tolist() == list(range(k))
    far = np.square(points - found.centers[found.labels]).sum(1)
    assert found.value == pytest.approx((weights * far).sum(), abs=1e-9)


def test_depth_is_of_the_order_of_the_logarithm_of_k() -> None:
    rng = np.random.default_rng(0)
    points = np.r_[rng.random((900, 2)), rng.random((100, 2)) ** 9 * 1e3]
    found = kmeans(points, 128)
    assert isinstance(found, Clusters)
    assert len(found.tree) - 1 <= 18


def test_same_seed_same_answer_with_one_thread_and_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_IT", 0.0)
    monkeypatch.setattr(lloyd, "_BLOCK", 512)
    pools = Mock(wraps=threads._pool)
    monkeypatch.setattr(threads, "_pool", pools)
    points = np.random.default_rng(0).random((3_000, 3))
    before = torch.get_num_threads()
    found, started = [], []
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(kmeans(points, 40, seed=5).labels.tolist())  # type: ignore[union-attr]
        started.append(pools.call_count)
    torch.set_num_threads(before)
    assert found[0] == found[1]
    assert started[0] == 0 < started[1]


@pytest.mark.parametrize("scale", [1e150, 1e-290])
def test_the_widest_and_the_finest_points_there_are(scale: float) -> None:
    points = blobs(3) / 20
    expected = kmeans(points, 3)
    found = kmeans(points * scale, 3)
    assert isinstance(expected, Clusters)
    assert isinstance(found, Clusters)
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.centers / scale == pytest.approx(expected.centers)
    assert "100.0% of the variance" in found.quality()


def test_points_whose_squared_distances_overflow_are_refused_unless_clusters_cost_nothing() -> None:
    points = blobs(3) / 20 * 1.7e308
    with pytest.raises(ValueError, match=r"points must be closer together: .*; got points up to"):
        kmeans(points, 3)
    largest = np.finfo(np.float64).max
    pairs = np.repeat([[largest, -largest], [largest, largest / 3], [-largest, largest]], 7, axis=0)
    found = kmeans(pairs, 3)
    assert isinstance(found, Clusters)
    assert found.value == 0
    assert found.centers[found.labels] / largest == pytest.approx(pairs / largest)


def test_each_of_the_widest_points_is_its_own_centre() -> None:
    """Centres taken from a frame and put back were infinite here."""
    shares = [[1 / 2, 1 / 3, 1 / 2], [-1, 1 / 2, 1 / 2], [1 / 2, -1 / 3, 1]]
    shares += [[1, 1 / 2, -1], [1, -1, 1], [-1, 1, 1 / 3]]
    largest = np.finfo(np.float64).max
    found = kmeans(np.array(shares) * largest, len(shares))
    assert isinstance(found, Clusters)
    assert found.centers[found.labels] / largest == pytest.approx(np.array(shares))
    assert found.value == 0


@pytest.mark.parametrize("points", [[[0.0, 0], [1e155, 0], [0, 1e155]], [[0.0], [1e160]]])
def test_a_cost_beyond_doubles_is_refused(points: list[list[float]]) -> None:
    """It was given as infinite."""
    with pytest.raises(ValueError, match="points must be closer together"):
        kmeans(np.array(points), 1)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e-300, 5e-324, -2e-310, 1e150, -1e150, 1e16, 1 / 3]),
        min_size=2, max_size=24,
    ),
    columns=st.integers(1, 2),
    data=st.data(),
)  # fmt: skip
def test_odd_numbers_get_a_valid_answer(
    values: list[float], columns: int, data: st.DataObject
) -> None:
    points = np.array(values[: len(values) // columns * columns]).reshape(-1, columns)
    k = data.draw(st.integers(1, len(points)))
    weights = data.draw(st.sampled_from([None, np.arange(len(points)) * 1e-3 + 1e-300]))
    found = kmeans(points, k, sample_weight=weights)
    assert isinstance(found, Clusters)
    assert np.unique(found.labels).tolist() == list(range(k))
    assert np.isfinite(found.value)
    assert (points.min(0) <= found.centers).all()
    assert (found.centers <= points.max(0)).all()


def test_k_may_be_an_array() -> None:
    for k in (np.array(3), np.array([3]), (3,)):
        assert len(kmeans(blobs(3), k).centers) == 3  # type: ignore[union-attr]
