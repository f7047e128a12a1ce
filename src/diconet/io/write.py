"""Writes answers beside the user's rows, in the format given by the file's suffix."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diconet.io.read import needs
from diconet.io.source import LATITUDE, LONGITUDE
from diconet.io.tables import Table


def table_bytes(frame: pd.DataFrame, ending: str, like: Table | None = None) -> bytes:
    """A table in the format of a suffix; `like` is the table that its rows come from."""
    if ending in (".csv", ".tsv", ""):
        mark = "\t" if ending == ".tsv" else like.mark if like is not None else ","
        text: str = frame.to_csv(index=False, sep=mark, lineterminator="\n")
        return text.encode()
    frame = typed(frame, like)
    if ending == ".geojson":
        return _geojson(frame)
    records = _records(frame)
    if ending == ".json":
        return f"[{', '.join(records)}]\n".encode()
    if ending in (".jsonl", ".ndjson"):
        return "".join(f"{record}\n" for record in records).encode()
    if ending == ".npz":
        return _buffered(lambda file: np.savez(file, allow_pickle=False, **_arrays(frame)))
    package, write = {
        ".parquet": ("pyarrow", frame.to_parquet),
        ".xlsx": ("openpyxl", frame.to_excel),
    }[ending]
    return _buffered(lambda file: needs(package, f"{ending} files", write)(file, index=False))


def squeezed(path: Path, content: bytes) -> bytes:
    """The content for a file of that name: compressed if it ends in .gz."""
    return gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content


def typed(frame: pd.DataFrame, like: Table | None) -> pd.DataFrame:
    """The table with numeric columns that were read as text converted to numbers."""
    found = frame.copy()
    for column in frame.columns:
        if frame[column].dtype.kind in "biufM":
            continue
        source = Table("", frame[[column]], decimal=like.decimal if like else None)
        cells = frame[column]
        if len(cells) and all(source.is_number(cell) for cell in cells):
            numbers = source.numbers(column)
            found[column] = pd.Series(numbers, index=frame.index).infer_objects()
        else:
            found[column] = cells.infer_objects()
    return found


def _records(frame: pd.DataFrame) -> list[str]:
    """The rows as JSON objects, with null for what is missing or not a number."""
    plain = frame.astype(object).where(frame.notna(), None)
    names = list(frame.columns)
    return [
        json.dumps(dict(zip(names, map(_plain, row), strict=True)), default=str)
        for row in plain.itertuples(index=False, name=None)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _geojson(frame: pd.DataFrame) -> bytes:
    """GeoJSON points with all other columns as properties."""
    names = Table("", frame)
    pairs = [(names.role(LONGITUDE), names.role(LATITUDE)), (names.role(["x"]), names.role(["y"]))]
    lon, lat = next((pair for pair in pairs if None not in pair), (None, None))
    if lon is None:
        raise ValueError(
            "--out must not be .geojson unless columns are called lon and lat, or x and y;"
            f" there are {', '.join(map(str, frame.columns))}."
        )
    rows = [json.loads(row) for row in _records(frame)]
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [row.pop(lon), row.pop(lat)]},
            "properties": row,
        }
        for row in rows
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def _arrays(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """An array per column; missing whole numbers become NaN, text stays text."""
    found = {}
    for column in frame.columns:
        cells = frame[column]
        if cells.dtype.kind in "biuf":
            gaps = cells.isna().any()
            how: dict[str, Any] = {"dtype": np.float64, "na_value": np.nan} if gaps else {}
            found[str(column)] = cells.to_numpy(**how)
        else:
            found[str(column)] = np.array([str(cell) for cell in cells], dtype=np.str_)
    return found


def _buffered(write: Callable[[io.BytesIO], object]) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()


def together(names: Sequence[str], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table of all instances, with a first column of names if there are several."""
    if len(frames) == 1:
        return frames[0]
    both = pd.concat(frames, keys=range(len(frames)))
    first = "instance" if "instance" not in both.columns else "diconet_instance"
    both.insert(0, first, [names[number] for number, _ in both.index])
    return both.reset_index(drop=True)
