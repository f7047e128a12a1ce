from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diconet.problems.knapsack.pisinger import read_pisinger

DATA = Path(__file__).parents[3] / "shared" / "data" / "knapsack" / "knapPI_1_50_1000.csv"

TWO = """knapPI_1_2_10_1
n 2
c 5
z 7
time 0.00
1,7,4,1
2,3,3,0
-----

knapPI_1_2_10_2
n 1
c 1
z 0
time 0.00
1,7,4,0
-----
"""


def test_a_file_of_two(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text(TWO)
    first, second = read_pisinger(path)
    assert (first.name, first.capacity, first.optimum) == ("knapPI_1_2_10_1", 5, 7)
    assert first.values.tolist() == [7, 3]
    assert first.weights.tolist() == [4, 3]
    assert first.chosen.tolist() == [0]
    assert second.chosen.tolist() == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n 2", "m 2", r"'knapPI_1_2_10_1' must have lines n, c, z, time.*from line 1 on"),
        ("1,7,4,1", "1,7,4", r"'knapPI_1_2_10_1' must have lines"),
        ("1,7,4,0\n-----\n", "", r"'knapPI_1_2_10_2' must have all its items; .* ends too early"),
    ],
)
def test_a_broken_file_says_where(tmp_path, old, new, message):
    path = tmp_path / "broken.csv"
    path.write_text(TWO.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_pisinger(path)


def test_pisingers_own_file():
    if not DATA.exists():
        pytest.skip(f"no knapsack instances at {DATA}")
    instances = read_pisinger(DATA)
    assert len(instances) == 100
    for instance in instances:
        assert instance.weights[instance.chosen].sum() <= instance.capacity
        assert instance.values[instance.chosen].sum() == instance.optimum
        assert np.all(instance.weights > 0)
