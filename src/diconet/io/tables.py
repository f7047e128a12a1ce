"""Tables of numbers: CSV with or without a header, .npy and JSON, recognised by name or content."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diconet.io.source import Source

_KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".dat": "csv"} | {
    ".npy": "npy",
    ".json": "json",
}

_BESIDE = ("context", "edges")
"""Lists of a JSON object that are no columns: numbers of the set, and pairs of its items."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of `cells` under `columns` (none where the file names none), read when asked for.

    `extras` is what else an instance says of itself, such as its capacity. `lines` are where the
    rows stand in their file.
    """

    name: str
    cells: Sequence[Sequence[Any]] | np.ndarray
    columns: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[int] = ()

    @property
    def width(self) -> int:
        """Columns, named or not."""
        if isinstance(self.cells, np.ndarray):
            return self.cells.shape[1] if self.cells.ndim > 1 else 1
        return len(self.cells[0]) if self.cells else len(self.columns)

    def place(self, column: str) -> int | None:
        """Where a column stands, by its name in whatever case; None if nowhere."""
        names = [name.strip().lower() for name in self.columns]
        return names.index(column.lower()) if column.lower() in names else None

    def places(self, columns: str) -> list[int]:
        """Where columns stand that were asked for by name or number from 1, such as "x,y"."""
        return [self._place(name.strip()) for name in columns.split(",")]

    def _place(self, column: str) -> int:
        place = self.place(column)
        if place is None and column.isdecimal() and 1 <= int(column) <= self.width:
            place = int(column) - 1
        if place is None:
            known = ", ".join(self.columns) or f"1 to {self.width}"
            raise ValueError(f"--columns must be among {known}; got {column!r}.")
        return place

    def planar(self) -> list[int] | None:
        """Where x and y stand, if columns are called so."""
        found = [self.place("x"), self.place("y")]
        places = [place for place in found if place is not None]
        return places if len(places) == 2 else None

    def extra(self, name: str, given: Any) -> Any:
        """A number that came as an option, or else stands in the file."""
        limit = self.extras.get(name) if given is None else given
        if limit is None:
            raise ValueError(
                f"{name} must be given, as --{name} or under {name!r} in a JSON file;"
                f" {self.name} has none."
            )
        return limit

    def column(self, place: int) -> list[int | float]:
        """The numbers of a column; whole ones stay exact, however large."""
        if isinstance(self.cells, np.ndarray):
            numbers: list[int | float] = self.cells[:, place].tolist()
            return numbers
        return [self._number(row, place, number) for number, row in enumerate(self.cells)]

    def points(self, places: Sequence[int] | None = None) -> np.ndarray:
        """The numbers of these columns (all without), a row each."""
        if isinstance(self.cells, np.ndarray):
            return self.cells if places is None else self.cells[:, list(places)]
        places = range(self.width) if places is None else places
        columns = [self.column(place) for place in places]
        try:
            return np.array(columns, dtype=np.float64).T.reshape(len(self.cells), len(columns))
        except OverflowError:
            raise ValueError(
                f"every number must be in the range of float64; {self.name} has one beyond it."
            ) from None

    def _number(self, row: Sequence[Any], place: int, number: int) -> int | float:
        cell = row[place]
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            return cell
        for kind in (int, float):
            try:
                return kind(cell)
            except (TypeError, ValueError):
                pass
        where = f"line {self.lines[number]}" if self.lines else f"row {number + 1}"
        under = f" under {self.columns[place]!r}" if self.columns else ""
        raise ValueError(
            f"every cell must be a number; {self.name} has {cell!r} in {where}{under}."
        )


def stem(name: str) -> str:
    """The name of a file without its ending; the number of an instance within it is kept."""
    found = re.fullmatch(r"(.*?)(?:\.\w+)?(\[\d+\])?", name)
    assert found is not None
    return found[1] + (found[2] or "")


def read_tables(source: Source) -> list[Table]:
    """The instances of a file: one, or several where it holds a list of them."""
    if not source.data.strip():
        raise ValueError(f"FILE must hold numbers; {source.name} is empty.")
    kind = _KINDS.get(source.suffix) or _guess(source)
    readers = {"csv": _from_csv, "npy": _from_npy, "json": _from_json}
    return readers[kind](source)


def _guess(source: Source) -> str:
    if source.data.startswith(b"\x93NUMPY"):
        return "npy"
    return "json" if source.data.lstrip()[:1] in (b"[", b"{") else "csv"


def _from_csv(source: Source) -> list[Table]:
    text = source.text
    lines_in = (line for line in io.StringIO(text) if line.strip() and line.lstrip()[0] != "#")
    first = next(lines_in, "")
    mark = next((mark for mark in (",", ";", "\t") if mark in first), None)
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text), delimiter=mark or " ", skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row if mark or cell.strip()]
            if any(cells) and not cells[0].startswith("#"):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"FILE must be CSV; {source.name}: {error}.") from None
    header: tuple[str, ...] = ()
    if rows and not any(_is_number(cell) for cell in rows[0]):
        header, rows, lines = tuple(rows[0]), rows[1:], lines[1:]
    if not rows:
        raise ValueError(f"FILE must hold at least one row of numbers; {source.name} has none.")
    width = len(header or rows[0])
    for line, row in zip(lines, rows, strict=True):
        if len(row) != width:
            raise ValueError(
                f"every row must have {width} cells like the first; {source.name} has {len(row)}"
                f" in line {line}."
            )
    return [Table(source.name, rows, header, lines=lines)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_npy(source: Source) -> list[Table]:
    try:
        array = np.load(io.BytesIO(source.data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"FILE must be a NumPy array of numbers; {source.name}: {error}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"FILE must be a NumPy array of numbers; {source.name} is of {kind}.")
    if array.ndim == 3:
        return [Table(f"{source.name}[{i}]", part) for i, part in enumerate(array)]
    if array.ndim != 2:
        raise ValueError(
            f"FILE must hold a table (2 dimensions) or several (3); {source.name} has shape"
            f" {array.shape}."
        )
    return [Table(source.name, array)]


def _from_json(source: Source) -> list[Table]:
    try:
        content = json.loads(source.text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"FILE must be JSON; {source.name}: {error}.") from None
    if isinstance(content, list) and content and all(_is_instance(one) for one in content):
        return [_table(f"{source.name}[{i}]", one) for i, one in enumerate(content)]
    return [_table(source.name, content)]


def _is_instance(content: Any) -> bool:
    """Whether this is a whole table of its own: an object of lists, or a list of lists."""
    if isinstance(content, dict):
        return any(isinstance(value, list) for value in content.values())
    return isinstance(content, list) and bool(content) and isinstance(content[0], list | dict)


def _table(name: str, content: Any) -> Table:
    extras: dict[str, Any] = {}
    columns: tuple[str, ...] = ()
    rows = content
    if isinstance(content, dict):
        lists = {
            key: value
            for key, value in content.items()
            if isinstance(value, list) and key not in _BESIDE
        }
        extras = {key: value for key, value in content.items() if key not in lists}
        tables = [value for value in lists.values() if value and isinstance(value[0], list | dict)]
        if tables:
            return Table(name, *_rows(name, tables[0]), extras=extras)
        if len({len(value) for value in lists.values()}) != 1:
            found = ", ".join(f"{len(value)} {key}" for key, value in lists.items()) or "none"
            raise ValueError(f"lists of a JSON object must be equally long; {name} has {found}.")
        columns, rows = tuple(lists), [list(row) for row in zip(*lists.values(), strict=True)]
        return Table(name, rows, columns, extras)
    return Table(name, *_rows(name, rows), extras=extras)


def edges_beside(tables: Sequence[Table], path: Path | None) -> list[np.ndarray | None]:
    """The edges that come with tables, a row each: those within their file, or of another one."""
    found = [_edges_within(table) for table in tables]
    if path is None:
        return found
    if len(tables) > 1:
        raise ValueError(f"--edges must go with one instance; FILE holds {len(tables)}.")
    if found[0] is not None:
        raise ValueError(f"--edges must not be given where {tables[0].name} holds edges; got both.")
    edges = read_tables(Source.of(path))
    if len(edges) > 1:
        raise ValueError(f"--edges must be one table; {path} holds {len(edges)}.")
    return [edges[0].points()]


def _edges_within(table: Table) -> np.ndarray | None:
    rows = table.extras.get("edges")
    if rows is None:
        return None
    name = f"edges of {table.name}"
    return Table(name, *_rows(name, rows)).points() if rows else np.zeros((0, 2))


def _rows(name: str, rows: Any) -> tuple[list[list[Any]], tuple[str, ...]]:
    """Rows from a list of lists, or of flat records with the same keys."""
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"FILE must hold a list of rows; {name} has {_short(rows)}.")
    if all(isinstance(row, dict) for row in rows):
        keys = tuple(rows[0])
        for number, row in enumerate(rows):
            if set(row) != set(keys):
                raise ValueError(
                    f"every record must have the keys {', '.join(keys)}; {name} has"
                    f" {', '.join(row)} in row {number + 1}."
                )
        return [[row[key] for key in keys] for row in rows], keys
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(rows[0]):
            raise ValueError(
                f"every row must be a list as long as the first; {name} has {_short(row)} in row"
                f" {number + 1}."
            )
    return rows, ()


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
