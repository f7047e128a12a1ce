from __future__ import annotations

import pytest
import torch

from diconet.polygons import once_around, polygon_area

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def test_areas_by_hand() -> None:
    corners = torch.cat([SQUARE, SQUARE.flip(0), SQUARE[:3], SQUARE[:1]])
    area = polygon_area(corners, torch.tensor([4, 4, 3, 0, 1]))
    assert area.tolist() == pytest.approx([1.0, -1.0, 0.5, 0.0, 0.0])


def test_area_far_from_the_origin_keeps_its_digits() -> None:
    assert polygon_area(SQUARE.double() + 1e9, torch.tensor([4])).item() == 1.0


def test_twice_around_counts_twice_and_is_told() -> None:
    """Two squares, one inside the other, drawn in one go: area 1 + 0.25 around nothing new."""
    inner = 0.25 + SQUARE / 2
    twice = torch.cat([SQUARE, inner])
    assert polygon_area(twice, torch.tensor([8])).item() > 1
    assert not once_around(twice, torch.tensor([8])).item()


@pytest.mark.parametrize(
    ("order", "once"),
    [([0, 1, 2, 3], True), ([2, 3, 0, 1], True), ([3, 2, 1, 0], False), ([0, 2, 1, 3], False)],
    ids=["as it is", "turned", "backwards", "crossed"],
)
def test_once_around(order: list[int], once: bool) -> None:
    assert once_around(SQUARE[order], torch.tensor([4])).item() is once
