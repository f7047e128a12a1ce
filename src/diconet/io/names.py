"""What columns of coordinates, and files of tables, are called."""

from __future__ import annotations

from pathlib import Path

LONGITUDE = ("lon", "lng", "long", "longitude")
LATITUDE = ("lat", "latitude")
PLANE = (("x", *LONGITUDE, "easting"), ("y", *LATITUDE, "northing"))

ENDINGS = (
    *(".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".geojson", ".parquet", ".xlsx", ".npz"),
)
"""The endings of files that tables are written to, each of which may have .gz behind it."""


def ending_of(path: Path) -> str:
    """The ending that says the format: the one before .gz."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()
