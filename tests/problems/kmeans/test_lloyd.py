from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from diconet.core import threads
from diconet.problems.kmeans import lloyd as module
from diconet.problems.kmeans.lloyd import lloyd


def start(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d)).astype(np.float32)
    return x, np.ones(n, np.float32), x[rng.choice(n, k, replace=False)]


def cost(x: np.ndarray, labels: np.ndarray) -> float:
    """The sum of squared distances to the means of clusters."""
    means = np.stack([x[labels == c].mean(0) for c in range(labels.max() + 1)])
    return float(np.square(x - means[labels], dtype=np.float64).sum())


@pytest.mark.parametrize(("n", "d", "k"), [(60, 2, 4), (500, 3, 20), (300, 20, 7)])
def test_labels_are_those_of_scikit_learn(n: int, d: int, k: int) -> None:
    x, w, centres = start(n, d, k)
    ours = lloyd(x, w, centres, rounds=200, settled=0.0, reach=1.0)
    theirs = KMeans(k, init=centres.astype(float), n_init=1, max_iter=200, tol=0)
    assert ours.labels.tolist() == theirs.fit(x.astype(float)).labels_.tolist()
    assert 1 < ours.rounds < 200


def test_going_beyond_the_means_never_costs_more_and_ends_where_lloyd_stands_still() -> None:
    """The labels' cost to their centres, which it bounds, falls; in the end it is Lloyd's."""
    x, w, centres = start(3_000, 4, 30)
    costs = [cost(x, lloyd(x, w, centres, rounds=rounds).labels) for rounds in range(12)]
    assert np.argmin(costs) == len(costs) - 1
    first = np.square(x[:, None] - centres).sum(-1).min(1).sum()
    assert all(one <= first for one in costs)
    found = lloyd(x, w, centres, rounds=500, settled=0.0)
    assert 12 < found.rounds < 500
    means = np.stack([x[found.labels == c].mean(0) for c in range(30)])
    assert lloyd(x, w, means, rounds=0).labels.tolist() == found.labels.tolist()


def test_the_last_round_goes_to_the_means() -> None:
    x, w, centres = start(3_000, 4, 30)
    once = lloyd(x, w, centres, rounds=1).labels
    assert np.array_equal(once, lloyd(x, w, centres, rounds=1, reach=1.0).labels)
    assert not np.array_equal(once, lloyd(x, w, centres, rounds=0).labels)
    twice = lloyd(x, w, centres, rounds=2).labels
    assert not np.array_equal(twice, lloyd(x, w, centres, rounds=2, reach=1.0).labels)


@pytest.mark.parametrize("reach", [1.0, 1.9])
def test_it_ends_when_few_points_move(reach: float) -> None:
    x, w, centres = start(4_000, 3, 40)
    exact = lloyd(x, w, centres, rounds=500, settled=0.0, reach=reach)
    early = lloyd(x, w, centres, rounds=500, settled=1e-2, reach=reach)
    assert early.rounds < exact.rounds
    assert cost(x, exact.labels) <= cost(x, early.labels) < 1.02 * cost(x, exact.labels)


def test_going_beyond_the_means_takes_fewer_rounds_and_costs_less() -> None:
    rounds, costs = np.zeros(2), np.zeros(2)
    for seed in range(10):
        x, w, centres = start(2_000, 5, 50, seed)
        for which, reach in enumerate((1.0, 1.9)):
            found = lloyd(x, w, centres, rounds=500, settled=0.0, reach=reach)
            rounds[which] += found.rounds
            costs[which] += cost(x, found.labels)
    assert rounds[1] < rounds[0]
    assert costs[1] < costs[0]


def test_weights_are_as_repeated_points() -> None:
    x, _, centres = start(80, 2, 6)
    times = np.random.default_rng(1).integers(1, 4, 80)
    weighted = lloyd(x, times.astype(np.float32), centres, rounds=100, settled=0.0)
    many = np.repeat(x, times, axis=0)
    repeated = lloyd(many, np.ones(len(many), np.float32), centres, rounds=100, settled=0.0)
    assert np.repeat(weighted.labels, times).tolist() == repeated.labels.tolist()


def test_one_thread_and_two_give_the_same_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 64)
    monkeypatch.setattr(threads, "_WORTH_IT", 0.0)
    x, w, centres = start(1_000, 3, 15)
    before = torch.get_num_threads()
    found = []
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(lloyd(x, w, centres, rounds=30).labels.tolist())
    torch.set_num_threads(before)
    assert found[0] == found[1]


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 20), data=st.data(), decimals=st.integers(0, 2))
def test_no_cluster_is_ever_empty(n: int, data: st.DataObject, decimals: int) -> None:
    k, rounds = data.draw(st.integers(1, n)), data.draw(st.integers(0, 4))
    x = np.random.default_rng(n).random((n, 2)).round(decimals).astype(np.float32)
    found = lloyd(x, np.ones(n, np.float32), x[:k].astype(float), rounds=rounds)
    assert np.unique(found.labels).tolist() == list(range(k))
