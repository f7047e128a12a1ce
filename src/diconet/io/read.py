"""Reads user files into tables with pandas and NumPy; the suffix or else the content decides."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diconet.io.source import Source
from diconet.io.tables import Table

_BESIDE = ("context", "edges")
"""Lists in a JSON object that are not columns: features of the set, and pairs of its items."""

_MARKS = "\t;|,"
_OPAQUE = (".xls", ".ods", ".shp", ".gpkg", ".pdf", ".docx", ".zip", ".mat", ".h5", ".pkl")


def read_tables(source: Source, decimal: str | None = None) -> list[Table]:
    """The instances in a file: one, or several if it holds a list of them."""
    if not source.data.strip():
        raise ValueError(f"FILE must hold numbers; {source.name} is empty.")
    if source.suffix in _OPAQUE:
        kinds = ", ".join(one for one in _READERS if one != ".txt")
        raise ValueError(f"FILE must be one of {kinds}; save {source.name} as one of these.")
    tables = _READERS.get(source.suffix, _guessed(source))(source, decimal)
    for table in tables:
        if table.frame.empty and not (len(table.columns) and table.extras):
            raise ValueError(f"FILE must hold at least one row of numbers; {table.name} has none.")
    return tables


def _guessed(source: Source) -> Callable[[Source, str | None], list[Table]]:
    start = source.data.lstrip()[:4]
    if start == b"PK\x03\x04":
        return _from_xlsx if b"xl/" in source.data else _from_numpy
    if start in (b"\x93NUM", b"PAR1"):
        return _from_numpy if start == b"\x93NUM" else _from_parquet
    return _from_json if start[:1] in (b"[", b"{") else _from_csv


# Text with rows and cells.


def _from_csv(source: Source, decimal: str | None) -> list[Table]:
    rows = source.text.splitlines()
    rows = ["" if row.lstrip().startswith("#") else row for row in rows]  # keeps line numbers
    top = [row for row in rows[:1_000] if row.strip()][:5]
    if not top:
        raise ValueError(f"FILE must hold at least one row of numbers; {source.name} has none.")
    marks = [m for m in _MARKS if m != decimal and m in top[0]]
    mark = next((m for m in marks if all(m in row for row in top)), next(iter(marks), None))
    how: dict[str, Any] = {"dtype": object, "keep_default_na": False, "skipinitialspace": True}
    try:
        found = pd.read_csv(io.StringIO("\n".join(rows)), sep=mark or r"\s+", header=None, **how)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        wrong = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if wrong is None:
            reason = str(error).strip().removesuffix(".")
            raise ValueError(f"FILE must be CSV; {source.name}: {reason}.") from None
        width, line, cells = wrong.groups()
        raise ValueError(
            f"every row must have {width} cells like the first; {source.name} has {cells} in line"
            f" {line}."
        ) from None
    lines = [number for number, row in enumerate(rows, start=1) if row.strip()]
    if len(lines) != len(found):  # some cells span several lines
        lines = list(range(1, len(found) + 1))
    return [_headed(source.name, found, decimal, mark or " ", lines)]


def _from_xlsx(source: Source, decimal: str | None) -> list[Table]:
    read = needs("openpyxl", "spreadsheets", pd.read_excel)
    found = _sound(source, "a spreadsheet (.xlsx)", read, header=None, dtype=object)
    found = found.dropna(axis=1, how="all").dropna(axis=0, how="all")
    found = found.astype(object).where(found.notna(), None)
    return [_headed(source.name, found, decimal, ",", [int(row) + 1 for row in found.index])]


def _headed(
    name: str, found: pd.DataFrame, decimal: str | None, mark: str, lines: Sequence[int]
) -> Table:
    """A table without empty rows; its first row is the header if none of its cells is a number."""
    blank = np.array(
        [all(c is None or not str(c).strip() for c in row) for row in found.to_numpy()], dtype=bool
    )
    found, lines = found[~blank], [n for n, gone in zip(lines, blank, strict=True) if not gone]
    table = Table(name, found, decimal=decimal, mark=mark)
    named = len(found) > 0 and not any(table.is_number(cell) for cell in found.iloc[0])
    if named:
        names = [str(cell or "").strip() for cell in found.iloc[0]]
        found, lines = found.iloc[1:], lines[1:]
    else:
        names = [f"column{place + 1}" for place in range(found.shape[1])]
    found = found.set_axis(_unique(names), axis=1).reset_index(drop=True)
    return Table(name, found, named, decimal=decimal, mark=mark, lines=lines)


def _unique(names: Iterable[Any]) -> list[str]:
    """Names as text, with a number appended to repeated ones."""
    found: list[str] = []
    for name in map(str, names):
        number, new = 2, name
        while new in found:
            number, new = number + 1, f"{name}_{number}"
        found.append(new)
    return found


# Arrays and columns.


def _from_numpy(source: Source, decimal: str | None) -> list[Table]:
    def load(file: io.BytesIO) -> Any:
        found = np.load(file, allow_pickle=False)
        return dict(found) if isinstance(found, Mapping) else found

    found, name = _sound(source, "a NumPy array of numbers", load), source.name
    if isinstance(found, dict):
        return _tables(name, {k: _checked_array(f"{name}[{k}]", v) for k, v in found.items()})
    return _tables(name, _checked_array(name, found))


def _checked_array(name: str, array: Any) -> Any:
    """An array of numbers or text of at most 3 dimensions; a single number is kept."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"FILE must be a NumPy array of numbers; {name} is of {kind}.")
    if array.ndim > 3:
        raise ValueError(
            f"FILE must hold a table (2 dimensions) or several (3); {name} has shape {array.shape}."
        )
    return array.item() if array.ndim == 0 else array


def _from_parquet(source: Source, decimal: str | None) -> list[Table]:
    read = needs("pyarrow", "Parquet files", pd.read_parquet)
    found = _sound(source, "a Parquet file", read)
    if not isinstance(found.index, pd.RangeIndex):
        found = found.reset_index()
    return [Table(source.name, found.set_axis(_unique(found.columns), axis=1))]


def _sound(source: Source, kind: str, read: Callable[..., Any], **how: Any) -> Any:
    """A reader's result with one-line errors; on junk, readers may raise anything."""
    try:
        return read(io.BytesIO(source.data), **how)
    except MissingExtraError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).removesuffix(".")[:200] or type(error).__name__
        raise ValueError(f"FILE must be {kind}; {source.name}: {reason}.") from None


class MissingExtraError(ValueError):
    """A required package is not installed."""


def needs(package: str, what: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a one-line error in place of an ImportError."""

    def run(*given: Any, **how: Any) -> Any:
        try:
            return work(*given, **how)
        except ImportError:
            raise MissingExtraError(
                f"{what} need {package}; install it with pip install 'diconet[files]'."
            ) from None

    return run


# JSON.


def _from_json(source: Source, decimal: str | None) -> list[Table]:
    try:
        content = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        if "Extra data" in str(error) and "\n" in source.text.strip():
            return _from_json_lines(source, decimal)
        raise ValueError(f"FILE must be JSON; {source.name}: {error}.") from None
    return _tables(source.name, content)


def _from_json_lines(source: Source, decimal: str | None) -> list[Table]:
    rows = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"every line must be JSON; {source.name} line {number}: {error}."
            ) from None
    return _tables(source.name, rows)


def _tables(name: str, content: Any) -> list[Table]:
    """The instances in an array, a list, or an object of lists."""
    if isinstance(content, dict):
        return _of_object(name, content)
    if isinstance(content, np.ndarray) and content.ndim in (1, 2):
        return [_plain_table(name, content[:, None] if content.ndim == 1 else content)]
    if not isinstance(content, list | np.ndarray) or len(content) == 0:
        raise ValueError(f"FILE must hold a list of rows; {name} has {_short(content)}.")
    if isinstance(content, np.ndarray) or all(_is_instance(one) for one in content):
        return [table for i, one in enumerate(content) for table in _tables(f"{name}[{i}]", one)]
    if any(isinstance(row, list | dict) != isinstance(content[0], list | dict) for row in content):
        raise ValueError(f"every row must be like the first; {name} has {_short(content)}.")
    return [_plain_table(name, content)]


def _is_instance(content: Any) -> bool:
    """Whether this is a separate table: an object of lists, or a list of lists."""
    if isinstance(content, dict):
        return any(isinstance(value, list) for value in content.values())
    return isinstance(content, list) and bool(content) and isinstance(content[0], list | dict)


def _of_object(name: str, content: Mapping[str, Any]) -> list[Table]:
    """The tables of an object of columns or of tables, with its other values, or of GeoJSON."""
    if content.get("type") in ("FeatureCollection", "Feature"):
        return [_of_features(name, content)]
    lists = {
        key: value
        for key, value in content.items()
        if isinstance(value, list | np.ndarray) and key not in _BESIDE
    }
    extras = {key: value for key, value in content.items() if key not in lists}
    inner = {
        k: v for k, v in lists.items() if len(v) and isinstance(v[0], list | dict | np.ndarray)
    }
    if inner:
        return [
            Table(table.name, table.frame, table.named, extras | dict(table.extras))
            for key, rows in inner.items()
            for table in _tables(name if len(inner) == 1 else f"{name}[{key}]", rows)
        ]
    if len({len(value) for value in lists.values()}) != 1:
        found = ", ".join(f"{len(value)} {key}" for key, value in lists.items()) or "none"
        raise ValueError(f"lists of a JSON object must be equally long; {name} has {found}.")
    columns = {key: pd.Series(value, dtype=_kind(value)) for key, value in lists.items()}
    return [Table(name, pd.DataFrame(columns), extras=extras)]


def _plain_table(name: str, rows: Any) -> Table:
    """A table from rows given as lists or as flat named records; missing values are None."""
    if isinstance(rows, list) and isinstance(rows[0], list):
        width = max(map(len, rows))
        rows = [[*row, *[None] * (width - len(row))] for row in rows]
    frame = pd.DataFrame(rows, dtype=_kind(rows))
    named = isinstance(rows, list) and isinstance(rows[0], dict)
    names = frame.columns if named else [f"column{i + 1}" for i in range(frame.shape[1])]
    return Table(name, frame.set_axis(_unique(names), axis=1), named)


def _kind(values: Any) -> Any:
    """The dtype to use: lists stay objects, since pandas would round very large whole numbers."""
    return None if isinstance(values, np.ndarray) else object


def _of_features(name: str, content: Mapping[str, Any]) -> Table:
    """The points of GeoJSON with their properties, in columns lon and lat."""
    rows: list[dict[str, Any]] = []
    features = content.get("features", [content])
    for number, feature in enumerate(features if isinstance(features, list) else [], start=1):
        try:
            kind, places = (feature["geometry"][key] for key in ("type", "coordinates"))
            about = feature.get("properties") or {}
            if kind not in ("Point", "MultiPoint"):
                raise ValueError(kind)
            for lon, lat, *_ in [places] if kind == "Point" else places:
                rows.append({**about, "lon": lon, "lat": lat})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"every feature must be a Point or MultiPoint with coordinates; number {number} of"
                f" {name} is not: {error}."
            ) from None
    if not rows:
        raise ValueError(f"FILE must hold at least one feature; {name} has none.")
    return _plain_table(name, rows)


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}..."


_READERS: dict[str, Callable[[Source, str | None], list[Table]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat"), _from_csv),
    **dict.fromkeys((".json", ".geojson"), _from_json),
    **dict.fromkeys((".jsonl", ".ndjson"), _from_json_lines),
    **dict.fromkeys((".npy", ".npz"), _from_numpy),
    ".parquet": _from_parquet,
    ".xlsx": _from_xlsx,
}


def edges_beside(tables: Sequence[Table], path: Path | None) -> list[np.ndarray | None]:
    """The edges of each table, one per row: from its own file, or from another one."""
    found = [_edges_within(table) for table in tables]
    if path is None:
        return found
    if len(tables) > 1:
        raise ValueError(f"--edges must go with one instance; FILE holds {len(tables)}.")
    if found[0] is not None:
        raise ValueError(f"--edges must not be given if {tables[0].name} holds edges; got both.")
    edges = read_tables(Source.of(path))
    if len(edges) > 1:
        raise ValueError(f"--edges must be one table; {path} holds {len(edges)}.")
    return [edges[0].points(edges[0].columns)]


def _edges_within(table: Table) -> np.ndarray | None:
    rows = table.extras.get("edges")
    if rows is None:
        return None
    if len(rows) == 0:
        return np.zeros((0, 2))
    (edges,) = _tables(f"edges of {table.name}", rows)
    return edges.points(edges.columns)
