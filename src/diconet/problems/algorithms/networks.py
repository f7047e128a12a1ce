"""The network of each problem: a split by a line, and one of the general merges."""

from __future__ import annotations

from collections.abc import Callable

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.nets.closest import ClosestMerge, DominanceMerge
from diconet.nets.forms import ComparedMerge, DescentMerge, DescentSplit
from diconet.nets.line_split import LineSplit
from diconet.nets.rules import RuleMerge

_TABLES = 16
"""The number of rule tables trained side by side; the best one is kept."""

NETWORKS: dict[str, Callable[[], DiCoNet]] = {
    "sort": lambda: DiCoNet(LineSplit(1, ordered=True), ComparedMerge(1), Growth()),
    "select": lambda: DiCoNet(DescentSplit(LineSplit(1)), DescentMerge(), Growth()),
    "subarray": lambda: DiCoNet(
        LineSplit(1, ordered=True), RuleMerge(num_tables=_TABLES), Growth()
    ),
    "closest": lambda: DiCoNet(LineSplit(2), ClosestMerge(), Growth()),
    "skyline": lambda: DiCoNet(LineSplit(2), DominanceMerge(2), Growth()),
}
"""Untrained networks by problem name; every leaf is one item."""
