"""Data in chunks: Dask collections, or files matching a pattern, each chunk read where it is used.

Chunks are numbered in the order of the data, and rows are addressed by leaf and row until the
sizes of all leaves are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np

CHUNK_BYTES = 32 * 2**20
"""About how much of a file is read at once."""

FEWEST_ROWS = 100_000
"""Chunks known to have fewer rows together share a leaf."""

ROW_BITS = 40
"""A row within its leaf takes the lower bits of an address, the leaf's number the upper ones."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are read together: a Delayed or a function without arguments; maybe how many."""

    name: str
    source: Any
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Chunks:
    """All rows of some data, grouped into leaves of one or more chunks."""

    what: str
    leaves: tuple[tuple[Chunk, ...], ...]

    @classmethod
    def of(cls, data: Any, what: str, columns: Sequence[str] | None = None) -> Chunks:
        """The chunks of a Dask array or dataframe, or of the files that match a pattern.

        `columns` are wanted by name where columns have names; `what` is what messages call rows.
        """
        if isinstance(data, str | Path):
            chunks = _of_files(str(data), columns)
        elif hasattr(data, "to_dask_array"):
            chunks = _of_frame(data, columns, "partition")
        elif isinstance(data, da.Array):
            chunks = _of_array(data, what)
        else:
            raise ValueError(f"{what} must be a Dask array or dataframe; got {type(data)}.")
        return cls(what, tuple(_grouped(chunks)))

    def __len__(self) -> int:
        return len(self.leaves)


def read(sources: Sequence[Any], names: Sequence[str], what: str) -> np.ndarray:
    """The rows of a leaf in float64, all of them finite."""
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
    # A sum is finite if all of it is, and costs less than asking each.
    with np.errstate(over="ignore", invalid="ignore"):
        sure = bool(np.isfinite(array.sum()))
    if not sure and not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} must be finite; got {array[row, column]} in row {row} of {name}.")
    return array


def _grouped(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Consecutive chunks in leaves; those of unknown size stay alone."""
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


def _of_array(array: da.Array, what: str) -> list[Chunk]:
    if array.ndim != 2:
        raise ValueError(f"{what} must have shape (n, d); got {array.shape}.")
    number = [str(i) for i in range(array.numblocks[0])]
    if not np.isnan(array.shape[0]):
        # Dask joins blocks in one go; a task with many small ones would cost more than the work.
        groups = _grouped([Chunk(i, None, n) for i, n in zip(number, array.chunks[0], strict=True)])
        number = [" to ".join(dict.fromkeys([g[0].name, g[-1].name])) for g in groups]
        sizes = tuple(sum(chunk.rows or 0 for chunk in group) for group in groups)
        array = array.rechunk({0: sizes})
    blocks = array.rechunk({1: -1}).to_delayed().ravel()
    return [Chunk(f"chunk {i}", block) for i, block in zip(number, blocks, strict=True)]


def _of_frame(frame: Any, columns: Sequence[str] | None, name: str) -> list[Chunk]:
    wanted = _wanted([str(c) for c in frame.columns], columns, f"the {name}s")
    by_name = {str(c): c for c in frame.columns}
    parts = frame[[by_name[c] for c in wanted]].to_delayed()
    return [Chunk(f"{name} {i}", part) for i, part in enumerate(parts)]


def _wanted(there: Sequence[str], columns: Sequence[str] | None, name: str) -> list[str]:
    """The columns to read: those asked for in whatever case; the only ones there; else refused."""
    if columns is None:
        return list(there)
    lower = {one.strip().lower(): one for one in there}
    if all(column.lower() in lower for column in columns):
        return [lower[column.lower()] for column in columns]
    if len(there) == len(columns):
        return list(there)
    raise ValueError(f"columns must be {' and '.join(columns)}; {name} have {', '.join(there)}.")


def _of_files(pattern: str, columns: Sequence[str] | None) -> list[Chunk]:
    """The parts of every file in the order of their names; folders of Parquet count as files."""
    paths = sorted(glob(pattern)) or ([pattern] if "://" in pattern else [])
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern!r}.")
    readers = {".parquet": _of_parquet, ".npy": _of_npy, ".csv": _of_csv, ".zarr": _of_zarr}
    chunks: list[Chunk] = []
    for path in paths:
        kind = Path(path).suffix.lower()
        if kind not in readers:
            raise ValueError(f"files must be {', '.join(readers)}; got {path}.")
        inside = kind == ".parquet" and sorted(map(str, Path(path).rglob("*.parquet")))
        for one in inside or [path]:
            parts = readers[kind](one, columns)
            many = len(parts)
            chunks += [
                replace(part, name=one if many == 1 else f"{one} (part {i})")
                for i, part in enumerate(parts)
            ]
    return chunks


def _of_parquet(path: str, columns: Sequence[str] | None) -> list[Chunk]:
    """A chunk per row group."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        wanted = _wanted(file.schema_arrow.names, columns, path)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [Chunk(path, partial(_row_group, path, i, wanted), rows) for i, rows in enumerate(sizes)]


def _row_group(path: str, group: int, columns: list[str]) -> np.ndarray:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        table = file.read_row_group(group, columns=columns, use_threads=False)
    return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in columns])


def _of_npy(path: str, columns: Sequence[str] | None) -> list[Chunk]:
    """Chunks of a file that is never read as a whole, nor mapped, which would count as memory."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.flags.c_contiguous:
        raise ValueError(f"{path} must be a table of numbers by rows; got shape {array.shape}.")
    if columns is not None and array.shape[1] != len(columns):
        raise ValueError(f"{path} must have {len(columns)} columns; got {array.shape[1]}.")
    start, dtype, (num, width) = int(array.offset), array.dtype, array.shape
    size = width * dtype.itemsize
    step = max(1, CHUNK_BYTES // max(1, size))
    return [
        Chunk(path, partial(_slice, path, dtype, start + low * size, rows, width), rows)
        for low in range(0, max(1, num), step)
        for rows in [min(step, num - low)]
    ]


def _slice(path: str, dtype: np.dtype, offset: int, rows: int, width: int) -> np.ndarray:
    flat = np.fromfile(path, dtype, rows * width, offset=offset)
    if len(flat) < rows * width:
        raise ValueError(f"{path} must not shrink while it is read; it has.")
    return flat.reshape(rows, width)


def _of_csv(path: str, columns: Sequence[str] | None) -> list[Chunk]:
    with open(path, encoding="utf-8") as file:
        first = file.readline()
    header = None if any(_is_number(cell) for cell in first.split(",")) else 0
    return _of_frame(dd.read_csv(path, blocksize=CHUNK_BYTES, header=header), columns, "block")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _of_zarr(path: str, columns: Sequence[str] | None) -> list[Chunk]:
    return _of_array(da.from_zarr(path), path)
