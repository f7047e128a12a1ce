"""A folder that only one run may write to at a time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two runs in one folder are the user's own care there
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """Holds a folder for this process; the system lets go of it when the process dies.

    The lock lies on an open file, not in its being there: what a killed run leaves behind holds
    nobody up, whatever process has that number now.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "lock"
        self._file: int | None = None

    def take(self) -> None:
        """Takes the folder, or says in one line which process has it."""
        if fcntl is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        while self._file is None:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.read(file, 32).decode(errors="replace").strip()
                os.close(file)
                raise ValueError(
                    f"run must be a folder that no other run uses; process {holder or 'unknown'}"
                    f" trains in {self._folder}."
                ) from None
            if self._is_current(file):
                os.truncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
                self._file = file
            else:  # its holder has just finished and removed it
                os.close(file)

    def release(self) -> None:
        """Lets the next run in."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _is_current(self, file: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        return False
