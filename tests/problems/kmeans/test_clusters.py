from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from diconet.core.sets import SetBatch
from diconet.problems.kmeans.clusters import cost_of, lloyd_steps
from tests.made_up_device import MadeUpDevice


def test_cost_of_a_hand_made_partition() -> None:
    """(0,0), (2,0) | (5,1), (5,5), (5,0): 1 + 1, and around (5, 2) 1 + 9 + 4: in all 16."""
    points = torch.tensor([[0.0, 0.0], [5.0, 1.0], [2.0, 0.0], [5.0, 5.0], [5.0, 0.0]])
    sets = SetBatch.of([points, points + 100])
    labels = torch.tensor([0, 1, 0, 1, 1, 0, 0, 0, 0, 0])
    # the second as one cluster: x around 3.4: 45.2 - 0 = 21.2; y around 1.2: 26 - 7.2 = 18.8
    assert cost_of(sets, labels).tolist() == pytest.approx([16.0, 21.2 + 18.8])


def test_far_from_the_origin_costs_the_same() -> None:
    points = torch.rand(50, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(50) % 4
    near, far = SetBatch.of([points]), SetBatch.of([points + 1000])
    assert cost_of(far, labels).item() == pytest.approx(cost_of(near, labels).item(), rel=1e-3)


def test_lloyd_steps_are_those_of_scikit_learn() -> None:
    rng = torch.Generator().manual_seed(2)
    points = torch.rand(60, 2, generator=rng)
    start = torch.randint(4, (60,), generator=rng)
    centres = np.stack([points[start == c].double().mean(0).numpy() for c in range(4)])
    ours = lloyd_steps(SetBatch.of([points]), start, 100)
    theirs = KMeans(4, init=centres, n_init=1, max_iter=100, tol=0).fit(points.double().numpy())
    assert ours.numpy().tolist() == theirs.labels_.tolist()


def test_lloyd_never_raises_cost_nor_empties_a_cluster() -> None:
    rng = torch.Generator().manual_seed(3)
    sets = SetBatch.of([torch.rand(n, 2, generator=rng).round(decimals=1) for n in (9, 30, 5)])
    labels = torch.cat([torch.arange(n) % k for n, k in ((9, 9), (30, 7), (5, 1))])
    cost = cost_of(sets, labels)
    for _ in range(5):
        labels = lloyd_steps(sets, labels, 1)
        assert [len(part.unique()) for part in sets.unpack(labels)] == [9, 7, 1]
        after = cost_of(sets, labels)
        assert (after <= cost + 1e-6).all()
        cost = after


def test_labels_of_one_set_do_not_hang_on_its_neighbours() -> None:
    rng = torch.Generator().manual_seed(4)
    one, two = torch.rand(20, 2, generator=rng), torch.rand(30, 2, generator=rng)
    labels = torch.randint(5, (50,), generator=rng)
    labels[:5] = torch.arange(5)
    together = lloyd_steps(SetBatch.of([one, two]), labels, 3)[:20]
    assert together.tolist() == lloyd_steps(SetBatch.of([one]), labels[:20], 3).tolist()


def test_points_may_lie_on_another_device() -> None:
    sets = SetBatch.of([torch.rand(n, 2) for n in (9, 30)])
    labels = sets.position % 3
    with MadeUpDevice() as device:
        lloyd_steps(sets.to(device), labels.to(device), 2)
