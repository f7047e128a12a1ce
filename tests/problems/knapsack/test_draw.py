from __future__ import annotations

import numpy as np

from diconet.plot.levels import levels_figure
from diconet.plot.stages import LEFT
from diconet.problems.knapsack.solve import Packing
from diconet.problems.solution import Partitions


def packing() -> Packing:
    """Four items: the first is taken by the first cut, the third by the second, two are left."""
    at = np.array([0, 3, 1, 3])
    tree = Partitions(at[None] > np.arange(3)[:, None])
    values = weights = np.array([1.0, 9.0, 2.0, 9.0])
    return Packing(3.0, tree, values, weights, 4.0, np.array([0, 2]), 3.0, 3.0)


def test_which_call_took_an_item() -> None:
    assert packing().calls().tolist() == [1, 0, 2, 0]


def test_a_knapsack_fills_call_by_call() -> None:
    stages = packing().stages()
    assert [stage.title for stage in stages] == [
        "call 1: +1, 25.0% full",
        "call 2: +1, 75.0% full",
        "call 3: +0, 75.0% full",
    ]
    assert stages[0].parts.tolist() == [1, LEFT, LEFT, LEFT]
    assert stages[1].parts.tolist() == [0, LEFT, 1, LEFT]


def test_a_panel_per_call() -> None:
    figure = levels_figure(packing())
    titles = [ax.get_title().split(":")[0] for ax in figure.axes]
    assert titles == ["call 1", "call 2", "call 3"]
