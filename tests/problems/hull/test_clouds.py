from __future__ import annotations

import pytest
import torch

from diconet.problems.hull.clouds import CLOUDS, CloudTask


@pytest.mark.parametrize("kind", CLOUDS)
def test_clouds_have_the_asked_shape_and_come_again_from_the_same_state(kind: str) -> None:
    one, same, other = (CLOUDS[kind](3, 20, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert one.shape == (3, 20, 2)
    assert one.dtype == torch.float64
    assert one.equal(same)
    assert not one.equal(other)
    assert torch.isfinite(one).all()


def test_kinds_take_turns_from_set_to_set(rng: torch.Generator) -> None:
    sets = CloudTask(("circle", "shifted")).sample(5, 8, rng=rng)
    radius = [float(points.norm(dim=1).max()) for points in sets.unpack()]
    assert [r > 1e5 for r in radius] == [False, True, False, True, False]


def test_a_circle_is_all_corners_and_a_stretched_disc_is_long(rng: torch.Generator) -> None:
    task = CloudTask(("circle",))
    assert task.oracle(task.sample(4, 30, rng=rng)).sizes.tolist() == [30] * 4
    singular = torch.linalg.svdvals(CLOUDS["stretched"](1, 500, rng)[0])
    assert 500 < float(singular[0] / singular[1]) < 2000


def test_points_beside_the_sides_make_close_calls(rng: torch.Generator) -> None:
    """Many a corner of their hull turns by less than a thousandth; in a square hardly any does."""

    def close_calls(kind: str) -> float:
        task = CloudTask((kind,))
        sets = task.sample(50, 30, rng=rng)
        close, total = 0, 0
        for points, corners in zip(sets.unpack(), task.oracle(sets).unpack(), strict=True):
            polygon = points[corners]
            step = polygon.roll(-1, 0) - polygon
            step = step / step.norm(dim=1, keepdim=True)
            turn = step[:, 0] * step.roll(-1, 0)[:, 1] - step[:, 1] * step.roll(-1, 0)[:, 0]
            close += int((turn < 1e-3).sum())
            total += len(corners)
        return close / total

    assert close_calls("sides") > 0.15
    assert close_calls("uniform") < 0.05


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kinds must be among uniform, .*; got \('square',\)"):
        CloudTask(("square",))
    CloudTask(("uniform",))
