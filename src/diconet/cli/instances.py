"""From a user's file to what the solvers take."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diconet.io.pisinger import is_pisinger, parse_pisinger
from diconet.io.source import Source
from diconet.io.tables import Table, read_tables
from diconet.io.tsplib import parse_tsp

_VALUE = ("value", "values", "profit", "profits", "v", "p")
_WEIGHT = ("weight", "weights", "w")


@dataclass(frozen=True, eq=False)
class Instances:
    """Inputs by name; with them the numbers of clusters, or capacities, or known optima."""

    names: list[str]
    data: list[Any]
    limits: list[Any]

    def with_optima(self, tours: Any) -> list[Any]:
        """The tours, told how short they could be where that is known."""
        return [
            tour if optimum is None else replace(tour, optimum=float(optimum))
            for tour, optimum in zip(tours, self.limits, strict=True)
        ]


def read_instances(options: argparse.Namespace) -> Instances:
    """The instances of the file that the options name."""
    source = Source.of(options.file)
    if options.task == "tsp" and _is_tsplib(source):
        instance = parse_tsp(source)
        optimum = _known_optimum(options, instance.name)
        return Instances([instance.name], [instance], [optimum or instance.optimum])
    if options.task == "knapsack" and is_pisinger(source):
        packs = parse_pisinger(source)
        return Instances(
            [one.name for one in packs],
            [(one.values, one.weights) for one in packs],
            [one.capacity if options.capacity is None else options.capacity for one in packs],
        )
    tables = read_tables(source)
    names = [_stem(table.name) for table in tables]
    if options.task == "knapsack":
        data: list[Any] = [_value_and_weight(table) for table in tables]
        return Instances(names, data, [_limit(t, "capacity", options.capacity) for t in tables])
    places = [_places(table, options) for table in tables]
    data = [table.points(where) for table, where in zip(tables, places, strict=True)]
    if options.task == "kmeans":
        return Instances(names, data, [_limit(table, "k", options.k) for table in tables])
    if options.task == "tsp":
        return Instances(names, data, [_known_optimum(options, name) for name in names])
    return Instances(names, data, [None] * len(names))


def _is_tsplib(source: Source) -> bool:
    return source.suffix == ".tsp" or b"NODE_COORD_SECTION" in source.data[:4_096]


def _stem(name: str) -> str:
    """The name of a file without its ending; the number of an instance within it is kept."""
    found = re.fullmatch(r"(.*?)(?:\.\w+)?(\[\d+\])?", name)
    assert found is not None
    return found[1] + (found[2] or "")


def _places(table: Table, options: argparse.Namespace) -> list[int] | None:
    """The columns asked for; else x and y where a plane is needed and they are named."""
    if options.columns:
        return [_place(table, name.strip()) for name in options.columns.split(",")]
    planar = [table.place("x"), table.place("y")]
    if options.task != "kmeans" and None not in planar:
        return [place for place in planar if place is not None]
    return None


def _place(table: Table, column: str) -> int:
    place = table.place(column)
    if place is None and column.isdecimal() and 1 <= int(column) <= table.width:
        place = int(column) - 1
    if place is None:
        known = ", ".join(table.columns) or f"1 to {table.width}"
        raise ValueError(f"--columns must be among {known}; got {column!r}.")
    return place


def _value_and_weight(table: Table) -> tuple[list[int | float], list[int | float]]:
    if not table.columns and table.width == 2:
        return table.column(0), table.column(1)
    found = [
        next((place for name in names if (place := table.place(name)) is not None), None)
        for names in (_VALUE, _WEIGHT)
    ]
    if found[0] is None or found[1] is None:
        has = ", ".join(table.columns) or f"{table.width} without names"
        raise ValueError(f"columns must be value and weight; {table.name} has {has}.")
    return table.column(found[0]), table.column(found[1])


def _limit(table: Table, name: str, given: Any) -> Any:
    """A number that comes as an option, or else in the file."""
    limit = table.extras.get(name) if given is None else given
    if limit is None:
        raise ValueError(
            f"{name} must be given, as --{name} or under {name!r} in a JSON file;"
            f" {table.name} has none."
        )
    return limit


def _known_optimum(options: argparse.Namespace, name: str) -> float | None:
    """The option, or else what an optima.txt beside the file says: a name and a length a line."""
    if options.optimum is not None:
        if not options.optimum > 0:
            raise ValueError(f"--optimum must be above 0; got {options.optimum}.")
        return float(options.optimum)
    beside = Path(options.file).with_name("optima.txt")
    if options.file == "-" or not beside.is_file():
        return None
    for line in Source.of(beside).text.splitlines():
        found = re.match(r"\s*(\S+?)[\s:=,]+(\d[\d.eE+]*)", line)
        if found and found[1] == name:
            return float(found[2])
    return None
