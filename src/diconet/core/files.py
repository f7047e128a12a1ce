"""Files: atomic writes, checks of output paths, listings by suffix."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def json_line(record: Mapping[str, Any]) -> str:
    """A flat record as one line of JSON, with null for infinity and NaN, which JSON lacks."""

    def known(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps({name: known(value) for name, value in record.items()}, allow_nan=False)


def named_files(folder: Traversable | None, ending: str) -> dict[str, Traversable]:
    """The files of a folder (if any) with this suffix, keyed by name without it."""
    found = [] if folder is None else sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(ending): file for file in found if file.name.endswith(ending)}


def read_notes(weights: str | Path) -> dict[str, str]:
    """The notes in a weights file: its network, preset, seed, steps, commit and figures."""
    from safetensors import safe_open

    with safe_open(weights, framework="np") as file:
        notes: dict[str, str] = file.metadata() or {}
        return notes


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file atomically: first to a temporary file beside it, then renamed into place.

    The old content stays until then, so a full disk or a kill loses only the new content.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # a device or a pipe: write to it directly
        path.write_bytes(content)
        return
    partial = Path(_beside(path))
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the name without the content
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove_partial(path: Path) -> None:
    """Removes temporary files that a killed write of this file left behind."""
    for partial in path.parent.glob(f".{path.name}.*"):
        partial.unlink(missing_ok=True)


def check_output(path: Path, option: str, endings: Sequence[str]) -> None:
    """Rejects an output path that could not be written, before any work is done."""
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
    """A new empty file in the same folder, with the user's default permissions."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(file.name, 0o666 & ~mask)
        return file.name
