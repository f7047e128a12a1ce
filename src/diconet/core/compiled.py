"""Options of `numba.njit` for compiled loops, chosen to keep the first call of a problem short."""

from __future__ import annotations

KERNEL = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""For a function that Python calls. Its file on disk includes the functions that it calls."""

INNER = {**KERNEL, "cache": False, "no_cpython_wrapper": True}
"""For a function that only compiled ones call."""
