"""Dispatches data that is not in memory, Dask collections and patterns of files, to `scale`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SCALE = "diconet.scale"
"""A layer above the problems, so it is imported by name, and only when needed."""

_ROOM = 2**16 + 100
"""Slots in the frame of a solver: Python then reserves twice as many, in one piece, for the calls
below. In its usual small pieces, compiling may allocate and free one at every call, for seconds."""


def or_beyond_memory(solve: Callable[P, R]) -> Callable[P, R]:
    """A solver that passes Dask collections and patterns of files to its namesake in `scale`."""
    first = next(iter(signature(solve).parameters))

    @wraps(solve)
    def anywhere(*args: P.args, **options: P.kwargs) -> R:
        data: Any = args[0] if args else options.get(first)
        if isinstance(data, str | Path) or hasattr(data, "__dask_graph__"):
            at_scale = getattr(import_module(_SCALE), solve.__name__)
            _check_options(options, list(signature(at_scale).parameters))
            return at_scale(*args, **options)
        return solve(*args, **options)

    code: Any = anywhere
    code.__code__ = code.__code__.replace(co_stacksize=_ROOM)
    return anywhere


def _check_options(options: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise ValueError(
                f"{name} must not be used with Dask collections and files, which take"
                f" {', '.join(known[1:])}; got {name}={options[name]!r}."
            )
