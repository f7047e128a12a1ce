"""A user's file: its content, its format, and the names of files and columns."""

from __future__ import annotations

import gzip
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

LONGITUDE = ("lon", "lng", "long", "longitude")
LATITUDE = ("lat", "latitude")
PLANE = (("x", *LONGITUDE, "easting"), ("y", *LATITUDE, "northing"))

ENDINGS = (
    *(".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".geojson", ".parquet", ".xlsx", ".npz"),
)
"""The suffixes of files that tables can be written to; each may be followed by .gz."""


def ending_of(path: Path) -> str:
    """The suffix that gives the format: the one before .gz."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()


_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Source:
    """A file's `name` (which gives its kind) and content, decompressed if gzipped."""

    name: str
    data: bytes

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """Reads a file, or standard input."""
        if str(path) == "-":
            return cls("stdin", _unpacked("stdin", sys.stdin.buffer.read()))
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"FILE must be a readable file; {path}: {reason}.") from None
        name = path.stem if path.suffix.lower() == ".gz" else path.name
        return cls(name, _unpacked(path.name, data))

    @property
    def suffix(self) -> str:
        """The suffix of the name, in lower case."""
        return Path(self.name).suffix.lower()

    @property
    def text(self) -> str:
        """The content as text: UTF-8, or the encodings that spreadsheets use instead."""
        if self.data.startswith(_UTF_16):
            return self.data.decode("utf-16", errors="replace")
        if b"\0" in self.data:
            raise ValueError(f"FILE must be text in UTF-8; {self.name} is binary.")
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return self.data.decode("cp1252", errors="replace")


def _unpacked(name: str, data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"FILE must be a valid gzip file; {name}: {error}.") from None
