from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import check_estimator

from diconet.core.model import DiCoNet
from diconet.problems.kmeans.estimator import DiCoKMeans
from tests.tiny import kmeans_network, save_networks


@pytest.fixture(scope="module")
def model() -> DiCoNet:
    return kmeans_network()


def blobs(k: int = 4, each: int = 25) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = 10 * np.arange(k)[:, None] * [1, -1]
    return np.concatenate([rng.normal(center, 1, (each, 2)) for center in centers])


@pytest.mark.filterwarnings("ignore")
def test_it_keeps_every_rule_of_scikit_learn(tmp_path: Path) -> None:
    model = save_networks(tmp_path)["kmeans"]
    # as scikit-learn's own: a weight of 2 is not a point given twice to what looks at the points
    known = {"check_sample_weight_equivalence_on_dense_data": "as for KMeans"}
    results = check_estimator(DiCoKMeans(model=model), on_skip=None, expected_failed_checks=known)
    assert results
    assert all(result["status"] in ("passed", "skipped", "xfail") for result in results)


def test_labels_are_those_of_the_nearest_centres(model: DiCoNet) -> None:
    points = blobs()
    found = DiCoKMeans(4, model=model).fit(points)
    assert np.array_equal(found.labels_, found.predict(points))
    assert np.array_equal(found.labels_, found.transform(points).argmin(1))
    apart = np.square(points - found.cluster_centers_[found.labels_]).sum()
    assert found.inertia_ == pytest.approx(apart)
    assert sorted(np.bincount(found.labels_)) == [25] * 4
    assert len(np.unique(found.solution_.tree[-1])) == 4


def test_score_is_minus_the_cost_and_counts_weights(model: DiCoNet) -> None:
    points = blobs()
    found = DiCoKMeans(4, model=model).fit(points)
    assert found.score(points) == pytest.approx(-found.inertia_)
    twice = found.score(points, sample_weight=np.full(100, 2.0))
    assert twice == pytest.approx(-2 * found.inertia_)
    assert found.n_iter_ >= 1
    weights = np.r_[np.full(25, 1e6), np.ones(75)]
    heavy = DiCoKMeans(1, model=model).fit(points, sample_weight=weights)
    assert heavy.cluster_centers_[0] == pytest.approx(points[:25].mean(0), abs=1e-2)


def test_centres_start_kmeans(model: DiCoNet) -> None:
    points = np.random.default_rng(0).random((200, 3))
    found = DiCoKMeans(6, lloyd=0, model=model).fit(points)
    lloyd = KMeans(6, init=found.cluster_centers_, n_init=1).fit(points)
    assert lloyd.inertia_ <= found.inertia_ * (1 + 1e-9)


def test_random_state_draws_and_its_absence_does_not(model: DiCoNet) -> None:
    points = np.random.default_rng(0).random((80, 2))

    def labels(state: object) -> list[int]:
        return DiCoKMeans(5, lloyd=0, model=model, random_state=state).fit(points).labels_.tolist()

    assert labels(None) == labels(None)
    assert labels(1) == labels(1)
    assert labels(1) == labels(np.random.RandomState(1))
    assert len({tuple(labels(state)) for state in range(4)}) > 1


@pytest.mark.parametrize("k", [0, 9, "a", 2.5, None])
def test_a_wrong_number_of_clusters_is_named(k: object, model: DiCoNet) -> None:
    with pytest.raises(ValueError, match=r"^n_clusters must be (a whole number|at most).*got .*"):
        clone(DiCoKMeans(k, model=model)).fit(np.random.default_rng(0).random((8, 2)))
