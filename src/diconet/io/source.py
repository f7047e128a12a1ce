"""Where a file's bytes come from: a path, or standard input as "-"."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A file's `name` (its kind follows from that) and content."""

    name: str
    data: bytes
    path: Path | None = None

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """Reads a file, or standard input."""
        if str(path) == "-":
            return cls("stdin", sys.stdin.buffer.read())
        path = Path(path)
        try:
            return cls(path.name, path.read_bytes(), path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"FILE must be a readable file; {path}: {reason}.") from None

    @property
    def suffix(self) -> str:
        """The ending of the name, in small letters."""
        return Path(self.name).suffix.lower()

    @property
    def text(self) -> str:
        """The content as text."""
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"FILE must be text in UTF-8; {self.name} is not.") from None
        if "\0" in text:
            raise ValueError(f"FILE must be text in UTF-8; {self.name} is binary.")
        return text
