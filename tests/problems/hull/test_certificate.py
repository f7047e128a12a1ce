from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diconet.problems.hull import certificate
from diconet.problems.hull.certificate import is_hull, turns

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True, width=64)
# A short integer grid, where triples in line abound, shaken by single units in the last place.
near_line = st.builds(
    lambda whole, nudges: whole * (1 + nudges * 2.0**-52),
    st.integers(-3, 3).map(float),
    st.integers(-2, 2),
)
coordinate = st.one_of(near_line, st.integers(-2, 2).map(float), finite)


def exact_turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> int:
    """The sign of the determinant in rational numbers."""
    (ax, ay), (bx, by), (cx, cy) = ([Fraction(float(v)) for v in p] for p in (a, b, c))
    det = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    return (det > 0) - (det < 0)


def exact_hull(points: np.ndarray) -> list[int]:
    """Andrew's monotone chain in rational numbers; of equal points the first."""
    order = sorted(range(len(points)), key=lambda i: (*points[i], i))
    distinct = [
        i for n, i in enumerate(order) if n == 0 or (points[i] != points[order[n - 1]]).any()
    ]
    if len(distinct) < 3:
        return distinct

    def chain(indices: list[int]) -> list[int]:
        kept: list[int] = []
        for i in indices:
            while len(kept) > 1 and exact_turn(*points[kept[-2:]], points[i]) <= 0:
                kept.pop()
            kept.append(i)
        return kept[:-1]

    return chain(distinct) + chain(distinct[::-1])


@settings(deadline=None)
@given(arrays(np.float64, (3, 2), elements=coordinate))
@example(np.array([[0.5, 0.5], [12.0, 12.0], [24.0, 24.0]]))
@example(np.array([[0.5, 0.5 + 2.0**-53], [12.0, 12.0], [24.0, 24.0]]))
@example(np.array([[5e-324, 0.0], [0.0, 5e-324], [0.0, 0.0]]))
@example(np.array([[1e308, 0.0], [-1e308, 1e308], [0.0, -1e308]]))
def test_turns_have_the_sign_of_rational_arithmetic(triple: np.ndarray) -> None:
    a, b, c = triple[:, None]
    assert turns(a, b, c).tolist() == [exact_turn(*triple)]


@settings(max_examples=300, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=coordinate))
def test_the_true_hull_is_certified(points: np.ndarray) -> None:
    assert is_hull(points, np.array(exact_hull(points)))


@settings(max_examples=500, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 7), st.just(2)), elements=coordinate),
    st.data(),
)
def test_nothing_but_the_true_hull_is_certified(points: np.ndarray, data: st.DataObject) -> None:
    hull = exact_hull(points)
    wrong = data.draw(
        st.one_of(
            st.lists(st.integers(0, len(points) - 1), max_size=8),
            st.just(hull[::-1]),
            st.sampled_from(hull).map(lambda i: [j for j in hull if j != i]),
            st.tuples(st.integers(0, len(hull)), st.integers(0, len(points) - 1)).map(
                lambda at: [*hull[: at[0]], at[1], *hull[at[0] :]]
            ),
        )
    )
    cycles = {tuple(map(tuple, points[np.roll(hull, -k)])) for k in range(len(hull))}
    assume(tuple(map(tuple, points[np.array(wrong, dtype=int)])) not in cycles)
    assert not is_hull(points, np.array(wrong, dtype=int))


SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [1.0, 1.0]])


def test_a_square_is_certified_from_any_corner() -> None:
    for k in range(4):
        assert is_hull(SQUARE, np.roll(np.arange(4), k))


@pytest.mark.parametrize(
    "corners",
    [[3, 2, 1, 0], [0, 1, 2], [0, 2, 1, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 0, 1, 2, 3], [0], [0, 2]],
    ids=["clockwise", "corner lost", "crossed", "inner point", "twice around", "one", "two"],
)
def test_a_wrong_square_is_not_certified(corners: list[int]) -> None:
    assert not is_hull(SQUARE, np.array(corners))


def test_a_pentagram_is_not_certified() -> None:
    """It turns left at every corner and holds all points, but goes around twice."""
    angle = 2 * np.pi * np.arange(5) / 5
    star = np.stack([np.cos(angle), np.sin(angle)], 1)
    assert is_hull(star, np.arange(5))
    assert not is_hull(star, np.array([0, 2, 4, 1, 3]))


def test_a_point_outside_by_the_last_bit_is_seen() -> None:
    """One unit in the last place above the upper edge of a square."""
    outside = np.array([[1.0, np.nextafter(2.0, 3.0)]])
    assert is_hull(np.concatenate([SQUARE, [[1.0, 2.0]]]), np.arange(4))
    assert not is_hull(np.concatenate([SQUARE, outside]), np.arange(4))


def test_a_corner_straight_on_is_not_strictly_convex() -> None:
    points = np.concatenate([SQUARE, [[1.0, 0.0]]])
    assert is_hull(points, np.array([0, 1, 2, 3]))
    assert not is_hull(points, np.array([0, 5, 1, 2, 3]))


@pytest.mark.parametrize("sweeps", [64, 0])
@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 24), st.just(2)), elements=coordinate))
def test_the_exact_hull_is_that_of_rational_arithmetic(sweeps: int, points: np.ndarray) -> None:
    """Both ways: passes over all points at once, and one point after the other."""
    before, certificate._SWEEPS = certificate._SWEEPS, sweeps
    try:
        found = certificate.exact_hull(points).tolist()
    finally:
        certificate._SWEEPS = before
    expected = exact_hull(points)
    assert sorted(found) == sorted(expected)
    assert is_hull(points, np.array(found))
