"""Problems larger than memory or one machine, on Dask: leaves where the data is, one tree over all.

`diconet.convex_hull`, `kmeans`, `knapsack` and `tsp` call this package when given a Dask collection
or a pattern of files. See docs/scale.md.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_NEEDED = ("dask", "distributed", "pandas", "pyarrow")
_OF_PROBLEM = {"hull": "convex_hull"} | {name: name for name in ("kmeans", "knapsack", "tsp")}
_HOME = {"convex_hull": "hulls", "kmeans": "clusters", "knapsack": "packings", "tsp": "tours"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'diconet.scale' has no attribute {name!r}")
    check_installed()
    return getattr(import_module(f"diconet.scale.{_HOME[name]}"), name)


def check_installed() -> None:
    """Raises an error that says what to install if something is missing."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"data larger than memory needs {' and '.join(missing)};"
            " install them with pip install 'diconet[dask]'."
        )


def solver_of(problem: str) -> Any:
    """The function that solves a problem at scale."""
    if problem not in _OF_PROBLEM:
        raise ValueError(f"TASK must be {', '.join(_OF_PROBLEM)} on Dask; got {problem}.")
    return __getattr__(_OF_PROBLEM[problem])
