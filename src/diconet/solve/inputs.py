"""Reading what users pass in: one instance or many, in whatever array type, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def as_array(values: Any, name: str) -> np.ndarray:
    """A float64 array from an array, list, DataFrame or tensor, all of it finite."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    try:
        if values is None or np.iscomplexobj(values):
            raise TypeError("not real")
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers; got {type(values).__name__}: {error}.") from None
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; got {array[place]} at {place}.")
    return array


def as_points(values: Any, name: str, *, columns: int | None = None, least: int = 1) -> np.ndarray:
    """An (n, d) array of at least `least` points."""
    array = as_array(values, name)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        wanted = f"(n, {'d' if columns is None else columns})"
        raise ValueError(f"{name} must have shape {wanted}; got {array.shape}.")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least 1 column; got shape {array.shape}.")
    if len(array) < least:
        raise ValueError(f"{name} must hold at least {least} rows; got {len(array)}.")
    return array


def is_many(values: Any, *, dims: int) -> bool:
    """Whether these are several instances (a list of arrays of `dims` dimensions) or one."""
    if isinstance(values, np.ndarray | torch.Tensor):
        return values.ndim == dims + 1
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) == 0:
        return False
    depth, first = 1, values[0]
    while isinstance(first, Sequence) and not isinstance(first, str) and len(first):
        depth, first = depth + 1, first[0]
    return depth + int(getattr(first, "ndim", 0)) == dims + 1


def check_seed(seed: int | None) -> int | None:
    """A seed as given, if it is a whole number or None."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
        raise ValueError(f"seed must be a whole number or None; got {seed!r}.")
    return None if seed is None else int(seed)
