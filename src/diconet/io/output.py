"""Files that are written whole or not at all, and what they may hold."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any


def json_line(record: Mapping[str, Any]) -> str:
    """A flat record as JSON, which has no word for infinity or no number: null in their place."""

    def known(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps({name: known(value) for name, value in record.items()}, allow_nan=False)


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes beside the file first, then puts that in its place."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a device or a pipe: nothing to lose
        path.write_bytes(content)
        return
    partial = Path(_beside(path))
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_output(path: Path, option: str, endings: Sequence[str]) -> None:
    """Refuses, before any work is done, a file that could not be written in the end."""
    if path.suffix.lower() not in endings and path != Path(os.devnull):
        raise ValueError(f"{option} must end in one of {', '.join(endings)}; got {str(path)!r}.")
    if path.is_dir():
        raise ValueError(f"{option} must be a file; {path} is a folder.")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise ValueError(f"{option} must be writable; {path} is not.")
        if not path.is_file():
            return
    try:
        Path(_beside(path)).unlink()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{option} must be writable; {path}: {reason}.") from None


def _beside(path: Path) -> str:
    """A new empty file in the same folder, readable as any other file of the user's."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(file.name, 0o666 & ~mask)
        return file.name
