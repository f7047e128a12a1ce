from __future__ import annotations

import pytest
import torch

from diconet.core.sets import SetBatch
from diconet.problems.kmeans.task import cost_of


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
