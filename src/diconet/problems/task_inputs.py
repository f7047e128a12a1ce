"""What users bring for a task of their own: items, numbers of a set, edges; checked, and packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from diconet.core.noise import phase_generator
from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.problems.inputs import as_array, as_points
from diconet.problems.problem import Instances, Problem

_LOOK = (32, 20)
"""How many sets of how many items are drawn to see what a task's inputs look like."""

_ENDS = 2
"""An edge begins with the indices of the two items that it joins."""


@dataclass(frozen=True)
class Look:
    """What belongs to a task's inputs beside the items.

    That is numbers per set, and edges with this many features (None where there are no edges),
    which are `symmetric` where each goes both ways.
    """

    context: int
    edge_features: int | None
    symmetric: bool


@lru_cache(maxsize=64)
def look_at(problem: Problem) -> Look:
    """What the inputs of a problem's task look like, by a few of them."""
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
    """Instances as a batch, with the context and the edges that are given with them."""
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
        raise ValueError(f"edges must go with a task on graphs; {problem.name} has no edges.")
    # a task may ask for double precision
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
    """The edges of all instances; where they go both ways, each may be given once or twice."""
    width = _ENDS + (look.edge_features or 0)
    edges = []
    for name, table, size in zip(names, tables, sizes, strict=True):
        if table is None:
            raise ValueError(
                f"edges must be given, for {problem.name} is a task on graphs: as --edges FILE, or"
                f" as 'edges' beside 'items' in a JSON file; {name} has none."
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
            f"edges must join items by their indices, 0 to {size - 1}; {name} has"
            f" {ends[wrong][0]:g}."
        )


def _both_ways(name: str, edges: np.ndarray) -> np.ndarray:
    """The edges and their reverses, if these are not there already."""
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
