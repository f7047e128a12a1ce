"""What a weights file says of itself: the text notes in the header of a safetensors file.

The header is a length in 8 bytes and that many bytes of JSON; the tensors follow. Reading and
changing notes needs neither torch nor the tensors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diconet.core.files import write_whole

_LENGTH_BYTES = 8
_ALIGNMENT = 8
"""Where the tensors start is a multiple of this; the JSON is padded with spaces."""

_NOTES = "__metadata__"


def read_notes(path: str | Path) -> dict[str, str]:
    """The notes of a weights file: its network, preset, seed, steps, commit and figures."""
    header, _ = _parts(Path(path))
    notes: dict[str, str] = header.get(_NOTES, {})
    return notes


def annotate(path: str | Path, **notes: str) -> None:
    """Adds notes to a weights file, or replaces those of the same name; all or nothing."""
    header, tensors = _parts(Path(path))
    header[_NOTES] = {**header.get(_NOTES, {}), **notes}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    write_whole(path, len(text).to_bytes(_LENGTH_BYTES, "little") + text + tensors)


def _parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and the bytes after it."""
    try:
        content = path.read_bytes()
        end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
        header = json.loads(content[_LENGTH_BYTES:end])
    except (OSError, ValueError) as error:
        raise ValueError(f"model must be a diconet weights file; {path}: {error}.") from None
    if end > len(content) or not isinstance(header, dict):
        raise ValueError(f"model must be a diconet weights file; {path} has no header.")
    return header, content[end:]
