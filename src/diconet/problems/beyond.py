"""Data that does not lie in memory goes elsewhere: Dask collections and patterns of files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SCALE = "diconet.scale"
"""Stands above the problems, so it is found by name, and only when it is needed."""


def or_beyond_memory(solve: Callable[P, R]) -> Callable[P, R]:
    """A solver that hands Dask collections and patterns of files to its namesake at scale."""
    first = next(iter(signature(solve).parameters))

    @wraps(solve)
    def anywhere(*args: P.args, **options: P.kwargs) -> R:
        data: Any = args[0] if args else options.get(first)
        if isinstance(data, str) or hasattr(data, "__dask_graph__"):
            found: R = getattr(import_module(_SCALE), solve.__name__)(*args, **options)
            return found
        return solve(*args, **options)

    return anywhere
