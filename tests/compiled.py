"""Compiled loops called from tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit


def from_python(loop: Any) -> Callable[..., Any]:
    """A way in from Python to what otherwise only loops call."""
    return cast(Callable[..., Any], njit(lambda *args: loop(*args)))
