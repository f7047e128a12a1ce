"""Data in chunks: Dask collections, or files matching a pattern, each chunk read where it is used.

Chunks are numbered in the order of the data, and rows are addressed by leaf and row until the
sizes of all leaves are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from diconet.io.tables import Table

CHUNK_BYTES = 32 * 2**20
"""Approximate number of bytes read from a file at once."""

FEWEST_ROWS = 100_000
"""Consecutive chunks share a leaf while they are known to have fewer rows together."""

ROW_BITS = 40
"""An address has the row within its leaf in its lower bits, the leaf's number in the upper ones."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are read together: a Delayed or a function, and their number if known."""

    name: str
    source: Any
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Chunks:
    """All rows of some data, grouped into leaves of one or more chunks."""

    what: str
    leaves: tuple[tuple[Chunk, ...], ...]

    @classmethod
    def of(
        cls,
        data: Any,
        what: str,
        usual: Sequence[str] | None = None,
        asked: Sequence[str] | None = None,
    ) -> Chunks:
        """The chunks of a Dask array or dataframe, or of the files that match a pattern.

        Columns are those `asked` for by name or number from 1, or else the `usual` ones by name;
        all columns if `usual` is None. `what` is the word for rows in messages.
        """
        columns = Columns(usual, asked)
        if isinstance(data, str | Path):
            chunks = _of_files(str(data), columns)
        elif hasattr(data, "to_dask_array"):
            chunks = _of_frame(data, columns, "the table")
        elif isinstance(data, da.Array):
            chunks = _of_array(data, columns, what)
        else:
            raise ValueError(f"{what} must be a Dask array or dataframe; got {type(data)}.")
        return cls(what, tuple(_grouped(chunks)))

    def __len__(self) -> int:
        return len(self.leaves)


def read(sources: Sequence[Any], names: Sequence[str], what: str) -> np.ndarray:
    """The rows of a leaf in float64, checked to be finite."""
    parts = [
        _numbers(s() if callable(s) else s, n, what) for s, n in zip(sources, names, strict=True)
    ]
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"{what} must have as many columns in {names[0]} as in {names[-1]}.")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _numbers(values: Any, name: str, what: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be numbers; {name}: {error}.") from None
    if array.ndim != 2:
        raise ValueError(f"{what} must have two dimensions; {name} has shape {array.shape}.")
    # A sum is finite if all terms are, and costs less than checking each.
    with np.errstate(over="ignore", invalid="ignore"):
        sure = bool(np.isfinite(array.sum()))
    if not sure and not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} must be finite; got {array[row, column]} in row {row} of {name}.")
    return array


def _grouped(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Consecutive chunks grouped into leaves; those of unknown size stay alone."""
    groups: list[tuple[Chunk, ...]] = []
    room = 0
    for chunk in chunks:
        if groups and chunk.rows is not None and chunk.rows <= room:
            groups[-1] += (chunk,)
            room -= chunk.rows
        else:
            groups.append((chunk,))
            room = 0 if chunk.rows is None else FEWEST_ROWS - chunk.rows
    return groups


def _of_array(array: da.Array, columns: Columns, what: str) -> list[Chunk]:
    if array.ndim != 2:
        raise ValueError(f"{what} must have shape (n, d); got {array.shape}.")
    if columns.asked:
        array = array[:, columns.numbered(array.shape[1], what)]
    number = [str(i) for i in range(array.numblocks[0])]
    if not np.isnan(array.shape[0]):
        # Let Dask concatenate: many small blocks in one task would cost more than the work.
        groups = _grouped([Chunk(i, None, n) for i, n in zip(number, array.chunks[0], strict=True)])
        number = [" to ".join(dict.fromkeys([g[0].name, g[-1].name])) for g in groups]
        sizes = tuple(sum(chunk.rows or 0 for chunk in group) for group in groups)
        array = array.rechunk({0: sizes})
    blocks = array.rechunk({1: -1}).to_delayed().ravel()
    return [Chunk(f"chunk {i}", block) for i, block in zip(number, blocks, strict=True)]


def _of_frame(frame: Any, columns: Columns, name: str) -> list[Chunk]:
    called = {str(c): c for c in frame.columns}
    wanted = columns.of(dict(zip(called, frame.dtypes, strict=True)), name)
    parts = frame[[called[c] for c in wanted]].to_delayed()
    return [Chunk(f"partition {i}", part) for i, part in enumerate(parts)]


@dataclass(frozen=True)
class Columns:
    """Which columns to read: those asked for, else the usual ones, else all."""

    usual: Sequence[str] | None
    asked: Sequence[str] | None

    def of(self, there: Mapping[str, Any], name: str, *, named: bool = True) -> list[str]:
        """The names of the columns to read, given the types of all columns by name."""
        empty = pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in there.items()})
        table = Table(name, empty, named)
        if self.asked:
            return table.asked(self.asked)
        called = [one for name in self.usual or () if (one := table.role([name])) is not None]
        if self.usual and len(called) == len(self.usual):
            return called
        return table.numeric(len(self.usual) if self.usual else None)

    def numbered(self, width: int, name: str) -> list[int]:
        """The positions of the columns to read if they have no names."""
        names = [f"column{i + 1}" for i in range(width)]
        found = self.of(dict.fromkeys(names, np.float64), name, named=False)
        return [names.index(one) for one in found]


def paths_of(pattern: str) -> list[str]:
    """The files that match a pattern, in the order of their names."""
    paths = sorted(glob(pattern)) or ([pattern] if "://" in pattern else [])
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern!r}.")
    for path in paths:
        if Path(path).suffix.lower() not in (kinds := (".parquet", ".npy", ".csv", ".zarr")):
            raise ValueError(f"files must be {', '.join(kinds)}; got {path}.")
    return paths


def _of_files(pattern: str, columns: Columns) -> list[Chunk]:
    """The chunks of every file; a Parquet folder counts as the files in it."""
    readers = {".parquet": _of_parquet, ".npy": _of_npy, ".csv": _of_csv, ".zarr": _of_zarr}
    chunks: list[Chunk] = []
    for path in paths_of(pattern):
        kind = Path(path).suffix.lower()
        inside = kind == ".parquet" and sorted(map(str, Path(path).rglob("*.parquet")))
        for one in inside or [path]:
            parts = readers[kind](one, columns)
            many = len(parts)
            chunks += [
                replace(part, name=one if many == 1 else f"{one} (part {i})")
                for i, part in enumerate(parts)
            ]
    return chunks


def _of_parquet(path: str, columns: Columns) -> list[Chunk]:
    """One chunk per row group; an index that pandas wrote is not a column."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        empty = schema.empty_table().to_pandas(ignore_metadata=True)
        kinds = {c: kind for c, kind in empty.dtypes.items() if c not in index}
        wanted = columns.of(kinds, path)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [Chunk(path, partial(_row_group, path, i, wanted), rows) for i, rows in enumerate(sizes)]


def _row_group(path: str, group: int, columns: list[str]) -> np.ndarray:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        table = file.read_row_group(group, columns=columns, use_threads=False)
    return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in columns])


def _of_npy(path: str, columns: Columns) -> list[Chunk]:
    """Chunks of a file that is never read whole, nor mapped, which would count as memory."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.flags.c_contiguous:
        raise ValueError(f"{path} must be a table of numbers by rows; got shape {array.shape}.")
    start, dtype, (num, width) = int(array.offset), array.dtype, array.shape
    wanted = columns.numbered(width, path)
    size = width * dtype.itemsize
    step = max(1, CHUNK_BYTES // max(1, size))
    return [
        Chunk(path, partial(_slice, path, dtype, start + low * size, rows, width, wanted), rows)
        for low in range(0, max(1, num), step)
        for rows in [min(step, num - low)]
    ]


def _slice(
    path: str, dtype: np.dtype, offset: int, rows: int, width: int, columns: list[int]
) -> np.ndarray:
    flat = np.fromfile(path, dtype, rows * width, offset=offset)
    if len(flat) < rows * width:
        raise ValueError(f"{path} must not shrink while it is being read; it did.")
    table = flat.reshape(rows, width)
    return table if columns == list(range(width)) else table[:, columns]


def _of_csv(path: str, columns: Columns) -> list[Chunk]:
    with open(path, encoding="utf-8") as file:
        first = file.readline().split(",")
    how: dict[str, Any] = {}
    if any(_is_number(cell) for cell in first):
        how = {"header": None, "names": [f"column{i + 1}" for i in range(len(first))]}
    return _of_frame(dd.read_csv(path, blocksize=CHUNK_BYTES, **how), columns, path)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _of_zarr(path: str, columns: Columns) -> list[Chunk]:
    return _of_array(da.from_zarr(path), columns, path)
