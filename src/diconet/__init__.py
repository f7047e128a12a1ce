"""Divide and Conquer Networks: learn to split a set into a tree and to merge answers up it.

The whole public face is here; each name is imported when it is first used, so that
`import diconet` costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diconet.check import TaskError, check_task
    from diconet.estimator import DiCoKMeans
    from diconet.model import DiCoNet
    from diconet.sets import SetBatch
    from diconet.solve.hull import Hull, convex_hull
    from diconet.solve.kmeans import Clusters, kmeans
    from diconet.solve.knapsack import Packing, knapsack
    from diconet.solve.solution import Solution
    from diconet.solve.tsp import Tour, tsp
    from diconet.splits import SetSplit
    from diconet.task import Oracle, Task
    from diconet.train import TrainConfig, train
    from diconet.tree import Growth, PartitionTree, fold, grow
    from diconet.weights import load, save, shipped, shipped_names

_HOME = {
    "diconet.check": ("TaskError", "check_task"),
    "diconet.estimator": ("DiCoKMeans",),
    "diconet.model": ("DiCoNet",),
    "diconet.sets": ("SetBatch",),
    "diconet.solve.hull": ("Hull", "convex_hull"),
    "diconet.solve.kmeans": ("Clusters", "kmeans"),
    "diconet.solve.knapsack": ("Packing", "knapsack"),
    "diconet.solve.solution": ("Solution",),
    "diconet.solve.tsp": ("Tour", "tsp"),
    "diconet.splits": ("SetSplit",),
    "diconet.task": ("Oracle", "Task"),
    "diconet.train": ("TrainConfig", "train"),
    "diconet.tree": ("Growth", "PartitionTree", "fold", "grow"),
    "diconet.weights": ("load", "save", "shipped", "shipped_names"),
}
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
    "SetBatch",
    "SetSplit",
    "Solution",
    "Task",
    "TaskError",
    "Tour",
    "TrainConfig",
    "__version__",
    "check_task",
    "convex_hull",
    "fold",
    "grow",
    "kmeans",
    "knapsack",
    "load",
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
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A package in which a public name stays what it is when a module of that name is imported.

    Otherwise `diconet.train` would be the function or the module, whichever came last.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
