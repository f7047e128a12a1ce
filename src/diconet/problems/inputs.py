"""User input: one instance or many, in any array type, checked once and packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypedDict, runtime_checkable

import numpy as np
import torch

from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator, seeds_from
from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.problems.problem import Instances, Problem


@runtime_checkable
class HasArray(Protocol):
    """An array, a tensor, a DataFrame or a Series."""

    def __array__(self) -> np.ndarray: ...


Numbers = HasArray | Sequence[float]
Points = HasArray | Sequence[Sequence[float]]
ManyNumbers = Sequence[HasArray] | Sequence[Sequence[float]]
ManyPoints = Sequence[HasArray] | Sequence[Sequence[Sequence[float]]]
"""Types that the public functions accept: one instance, or a list of them."""


class Asked(TypedDict, total=False):
    """The options shared by all public functions."""

    model: str | Path | DiCoNet | None
    seed: int | None
    device: str | torch.device


def as_array(values: Any, name: str) -> np.ndarray:
    """A float64 array from an array, list, DataFrame or tensor, checked to be finite."""
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
    """The type of what was passed; for a table, its columns that are not numeric."""
    if not hasattr(values, "select_dtypes"):
        return type(values).__name__
    odd = ", ".join(map(repr, values.select_dtypes(exclude=["number", "bool"]).columns))
    return f"a table with {odd}" if odd else type(values).__name__


def as_points(values: Any, name: str, *, columns: int | None = None) -> np.ndarray:
    """An (n, d) array of at least one point."""
    array = as_array(values, name)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        wanted = f"(n, {'d' if columns is None else columns})"
        raise ValueError(f"{name} must have shape {wanted}; got {array.shape}.")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least 1 column; got shape {array.shape}.")
    if len(array) == 0:
        raise ValueError(f"{name} must hold at least 1 rows; got 0.")
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
    """The seed, checked to be None or valid for every generator."""
    if seed is None:
        return None
    is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_whole or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1 or None; got {seed!r}.")
    return int(seed)


def tree_seeds(
    seed: int | None, num_sets: int, device: str | torch.device = "cpu"
) -> torch.Tensor | None:
    """The seeds of random trees, one per set; None for the likeliest trees."""
    if seed is None:
        return None
    return seeds_from(torch.Generator().manual_seed(seed), num_sets).to(device)


_LOOK = (32, 20)
"""The number and size of the sets drawn to inspect a task's inputs."""

_ENDS = 2
"""An edge begins with the indices of the two items that it connects."""


@dataclass(frozen=True)
class Look:
    """What belongs to a task's inputs besides the items.

    That is the number of context features, and of edge features (None if there are no edges);
    edges are `symmetric` if each goes both ways.
    """

    context: int
    edge_features: int | None
    symmetric: bool


@lru_cache(maxsize=64)
def look_at(problem: Problem) -> Look:
    """A description of the inputs of a problem's task, from a few samples."""
    sets = problem.task.sample(*_LOOK, rng=phase_generator("look", 0))
    edges = sets.relations
    if edges is None:
        return Look(sets.context.shape[1], None, False)
    return Look(sets.context.shape[1], edges.num_features, edges.symmetric)


def instances_of(sets: SetBatch, names: list[str]) -> Instances:
    """Packed sets as instances, the inverse of `sets_of`."""
    given: dict[str, list[Any]] = {}
    if sets.context.shape[1]:
        given["context"] = sets.context.double().tolist()
    if (edges := sets.relations) is not None:
        pairs = torch.stack([edges.source, edges.target], 1).double()
        table = torch.cat([pairs, edges.features.double()], 1)
        given["edges"] = [part.numpy() for part in table.split(edges.sizes.tolist())]
    return Instances(names, [items.double().numpy() for items in sets.unpack()], given)


def sets_of(problem: Problem, instances: Instances, device: str | torch.device = "cpu") -> SetBatch:
    """Instances as a batch, with their contexts and edges."""
    look = look_at(problem)
    features = problem.task.num_features
    arrays = [as_points(one, "items", columns=features) for one in instances.data]
    context = _context(problem, instances, look)
    relations = None
    tables = instances.given.get("edges", [None] * len(arrays))
    if look.edge_features is not None:
        sizes = [len(one) for one in arrays]
        relations = _relations(problem, instances.names, tables, sizes, look)
    elif any(one is not None for one in tables):
        raise ValueError(f"edges must not be given; {problem.name} is not a task on graphs.")
    # a task may need double precision
    dtype = torch.float64 if getattr(problem.task, "precise", False) else torch.float32
    items = [torch.from_numpy(one).to(dtype) for one in arrays]
    context = None if context is None else context.to(dtype)
    return SetBatch.of(items, context, relations).to(device)


def _context(problem: Problem, instances: Instances, look: Look) -> torch.Tensor | None:
    rows = instances.given.get("context")
    if look.context == 0 and rows is None:
        return None
    found = [as_array([] if row is None else row, "context").reshape(-1) for row in rows or [None]]
    for row in found:
        if len(row) != look.context:
            raise ValueError(
                f"context must hold {look.context} numbers per set for {problem.name}, as 'context'"
                f" in a JSON file; got {len(row)}."
            )
    return torch.from_numpy(np.stack(found))


def _relations(
    problem: Problem, names: Sequence[str], tables: Sequence[Any], sizes: Sequence[int], look: Look
) -> Relations:
    """The edges of all instances; symmetric ones may be given once or in both directions."""
    width = _ENDS + (look.edge_features or 0)
    edges = []
    for name, table, size in zip(names, tables, sizes, strict=True):
        if table is None:
            raise ValueError(
                f"edges must be given: {problem.name} is a task on graphs; use --edges FILE, or"
                f" 'edges' beside 'items' in a JSON file; {name} has none."
            )
        array = as_array(table, "edges")
        array = array.reshape(0, width) if array.size == 0 else array
        _check_edges(name, array, width, size)
        edges.append(_both_ways(name, array) if look.symmetric else array)
    pairs = [torch.from_numpy(one[:, :_ENDS]).long() for one in edges]
    features = [torch.from_numpy(one[:, _ENDS:]).float() for one in edges]
    return replace(Relations.of(pairs, features, symmetric=False), symmetric=look.symmetric)


def _check_edges(name: str, edges: np.ndarray, width: int, size: int) -> None:
    if edges.ndim != 2 or edges.shape[1] != width:
        more = f" and {width - _ENDS} features" if width > _ENDS else ""
        raise ValueError(
            f"edges must have {width} columns, source, target{more}; {name} has shape"
            f" {edges.shape}."
        )
    ends = edges[:, :_ENDS]
    wrong = (ends < 0) | (ends >= size) | (ends != np.floor(ends))
    if wrong.any():
        raise ValueError(
            f"edges must refer to items by index, 0 to {size - 1}; {name} has {ends[wrong][0]:g}."
        )


def _both_ways(name: str, edges: np.ndarray) -> np.ndarray:
    """The edges and their reverses, unless these are already there."""
    turned = np.column_stack([edges[:, 1], edges[:, 0], edges[:, _ENDS:]])
    there, back = (one[np.lexsort(one.T[::-1])] for one in (edges, turned))
    if np.array_equal(there, back):
        return edges
    pairs = np.sort(edges[:, :_ENDS], axis=1)
    if len(np.unique(pairs, axis=0)) < len(pairs):
        raise ValueError(
            f"edges must be given once each, or all of them in both directions; {name} has some"
            " twice."
        )
    return np.stack([edges, turned], 1).reshape(-1, edges.shape[1])
