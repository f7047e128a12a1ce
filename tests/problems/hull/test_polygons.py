from __future__ import annotations

import pytest
import torch

from diconet.problems.hull.task import polygon_area

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def test_areas_by_hand() -> None:
    corners = torch.cat([SQUARE, SQUARE.flip(0), SQUARE[:3], SQUARE[:1]])
    area = polygon_area(corners, torch.tensor([4, 4, 3, 0, 1]))
    assert area.tolist() == pytest.approx([1.0, -1.0, 0.5, 0.0, 0.0])


def test_area_far_from_the_origin_keeps_its_digits() -> None:
    assert polygon_area(SQUARE.double() + 1e9, torch.tensor([4])).item() == 1.0
