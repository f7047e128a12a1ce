import numpy as np
import pytest

from diconet.problems.tsp.search.metric import Metric


def test_euclidean_length_counts_the_way_home() -> None:
    square = Metric.of(np.array([[0, 0], [3, 0], [3, 4], [0, 4]]))
    assert square.length(np.array([0, 1, 2, 3])) == 14
    assert square.length(np.array([0, 2, 1, 3])) == 5 + 4 + 5 + 4


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("EUC_2D", 1),  # sqrt(2) = 1.414 rounds down
        ("CEIL_2D", 2),
        ("ATT", 1),  # sqrt(2 / 10) = 0.447 rounds to 0, which is below it: one more
    ],
)
def test_rounding_by_hand(kind: str, expected: int) -> None:
    there_and_back = Metric.of(np.array([[0, 0], [1, 1]]), kind).length(np.array([0, 1]))
    assert there_and_back == 2 * expected


def test_att_does_not_add_one_to_what_was_rounded_up() -> None:
    # sqrt(64 / 10) = 2.53 rounds to 3, which is not below it
    assert Metric.of(np.array([[0, 0], [8, 0]]), "ATT").length(np.array([0, 1])) == 6


def test_geo_reads_minutes_not_decimals() -> None:
    # A degree of longitude on the equator is 6378.388 * pi / 180 = 111.3 km; 30 minutes are half.
    whole = Metric.of(np.array([[0, 0], [0, 1.0]]), "GEO").length(np.array([0, 1])) / 2
    half = Metric.of(np.array([[0, 0], [0, 0.30]]), "GEO").length(np.array([0, 1])) / 2
    assert (whole, half) == (112, 56)


def test_unknown_metric_is_named() -> None:
    with pytest.raises(ValueError, match=r"metric must be one of .*GEO.*; got 'MAN_2D'"):
        Metric.of(np.zeros((2, 2)), "MAN_2D")
