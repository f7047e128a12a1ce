"""Divide and Conquer Networks: learn to split a set into a tree and to merge answers up it.

The whole public API is here. Each name is imported on first use, so that `import diconet` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diconet.core.answers import Sequences, Values
    from diconet.core.check import TaskError, check_task
    from diconet.core.model import DiCoNet
    from diconet.core.relations import Relations
    from diconet.core.sets import SetBatch
    from diconet.core.task import Oracle, Task
    from diconet.core.tree import Growth, PartitionTree, fold, grow
    from diconet.core.weights import load, save
    from diconet.learn import TrainConfig, best_of, diagnose, train
    from diconet.nets.default import network_for
    from diconet.nets.set_split import SetSplit
    from diconet.problems.hull.solve import Hull, convex_hull
    from diconet.problems.kmeans.estimator import DiCoKMeans
    from diconet.problems.kmeans.solve import Clusters, kmeans
    from diconet.problems.knapsack.solve import Packing, knapsack
    from diconet.problems.networks import shipped, shipped_names
    from diconet.problems.problem import Problem
    from diconet.problems.solution import Solution
    from diconet.problems.tsp.solve import Tour, tsp

_HOME = {
    "diconet.core.answers": ("Sequences", "Values"),
    "diconet.core.check": ("TaskError", "check_task"),
    "diconet.core.model": ("DiCoNet",),
    "diconet.core.relations": ("Relations",),
    "diconet.core.sets": ("SetBatch",),
    "diconet.core.task": ("Oracle", "Task"),
    "diconet.core.tree": ("Growth", "PartitionTree", "fold", "grow"),
    "diconet.core.weights": ("load", "save"),
    "diconet.learn": ("TrainConfig", "best_of", "diagnose", "train"),
    "diconet.nets.default": ("network_for",),
    "diconet.nets.set_split": ("SetSplit",),
    "diconet.problems.hull.solve": ("Hull", "convex_hull"),
    "diconet.problems.kmeans.estimator": ("DiCoKMeans",),
    "diconet.problems.kmeans.solve": ("Clusters", "kmeans"),
    "diconet.problems.knapsack.solve": ("Packing", "knapsack"),
    "diconet.problems.networks": ("shipped", "shipped_names"),
    "diconet.problems.problem": ("Problem",),
    "diconet.problems.solution": ("Solution",),
    "diconet.problems.tsp.solve": ("Tour", "tsp"),
}
_OF_ANY_SIZE = ("convex_hull", "kmeans", "knapsack", "tsp")
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Clusters",
    "DiCoKMeans",
    "DiCoNet",
    "Growth",
    "Hull",
    "Oracle",
    "Packing",
    "PartitionTree",
    "Problem",
    "Relations",
    "Sequences",
    "SetBatch",
    "SetSplit",
    "Solution",
    "Task",
    "TaskError",
    "Tour",
    "TrainConfig",
    "Values",
    "__version__",
    "best_of",
    "check_task",
    "convex_hull",
    "diagnose",
    "fold",
    "grow",
    "kmeans",
    "knapsack",
    "load",
    "network_for",
    "save",
    "shipped",
    "shipped_names",
    "train",
    "tsp",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'diconet' has no attribute {name!r}")
    value = getattr(import_module(_MODULE[name]), name)
    if name in _OF_ANY_SIZE:
        value = import_module("diconet.problems.beyond").or_beyond_memory(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
