"""Reading what users pass in: one instance or many, in whatever array type, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.core.noise import seeds_from


@runtime_checkable
class HasArray(Protocol):
    """An array, a tensor, a DataFrame or a Series."""

    def __array__(self) -> np.ndarray: ...


Numbers = HasArray | Sequence[float]
Points = HasArray | Sequence[Sequence[float]]
ManyNumbers = Sequence[HasArray] | Sequence[Sequence[float]]
ManyPoints = Sequence[HasArray] | Sequence[Sequence[Sequence[float]]]
"""What the public functions take: one instance, or a list of them."""


def as_array(values: Any, name: str) -> np.ndarray:
    """A float64 array from an array, list, DataFrame or tensor, all of it finite."""
    if isinstance(values, Iterator | Set | Mapping) or values is None:
        kind = "None" if values is None else f"a {type(values).__name__}"
        raise ValueError(f"{name} must be an array or a list; got {kind}.")
    try:
        if isinstance(values, torch.Tensor):
            values = to_host(values)
        if np.iscomplexobj(values) or getattr(getattr(values, "dtype", None), "kind", "f") in "mM":
            raise TypeError("not real")
        array = np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"{name} must be numbers; got {_kind(values)}: {text}.") from None
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; got {array[place]} at {place}.")
    return array


def _kind(values: Any) -> str:
    """What was passed; of a table, the columns that are no numbers."""
    if not hasattr(values, "select_dtypes"):
        return type(values).__name__
    odd = ", ".join(map(repr, values.select_dtypes(exclude=["number", "bool"]).columns))
    return f"a table with {odd}" if odd else type(values).__name__


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
        if values.ndim == dims + 1 and len(values) == 0:
            shape = tuple(values.shape)
            raise ValueError(f"there must be one instance or more; got an array of shape {shape}.")
        return values.ndim == dims + 1
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) == 0:
        return False
    depth, first = 1, values[0]
    while isinstance(first, Sequence) and not isinstance(first, str):
        depth, first = depth + 1, first[0] if len(first) else None
    return depth + int(getattr(first, "ndim", 0)) == dims + 1


def check_count(value: Any, name: str, *, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def check_amount(value: Any, name: str) -> float:
    """A finite number of at least 0."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
    return float(value)


def check_seed(seed: int | None) -> int | None:
    """A seed as given, if it is None or one that every generator takes."""
    if seed is None:
        return None
    is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_whole or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1 or None; got {seed!r}.")
    return int(seed)


def tree_seeds(
    seed: int | None, num_sets: int, device: str | torch.device = "cpu"
) -> torch.Tensor | None:
    """The seeds of trees drawn at random, one per set; None for the likeliest trees."""
    if seed is None:
        return None
    return seeds_from(torch.Generator().manual_seed(seed), num_sets).to(device)
