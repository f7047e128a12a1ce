"""A short training run that the page starts, monitors and stops: `diconet train` in a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import RLock, Timer
from typing import Any

from diconet.problems.networks import WEIGHTS
from diconet.problems.problem import Problem

MOST_SECONDS = 120.0
_GRACE = 5.0
"""Seconds that a run may take to finish its step before it is killed."""

_MOST_SCORES = 400
_COMMAND = """
import signal, sys
longest = int(sys.argv.pop(1))
if hasattr(signal, "alarm"):
    signal.alarm(longest)
from diconet.cli import main
main(sys.argv[1:])
"""
"""The command line, with a time limit even if nobody is left to stop it."""


class Training:
    """One run at a time, for at most `seconds`, in a folder that is deleted with the page.

    The run is a separate process, on one thread, so that the page stays responsive.
    """

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._limit = seconds
        self._lock = RLock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: Timer | None = None
        self._problem: Problem | None = None
        self._began = 0.0
        self._stopped = ""

    def start(self, problem: Problem) -> None:
        """Starts a run; one in progress must be stopped first."""
        with self._lock:
            if self._is_running:
                assert self._problem is not None
                raise ValueError(f"one training at a time; {self._problem.name} is being trained.")
            self._forget()
            self._folder = tempfile.TemporaryDirectory(prefix="diconet-page-")
            folder = Path(self._folder.name)
            options = ["--run", str(folder / "run"), "--quiet", *problem.page_training()]
            longest = str(int(self._limit + 2 * _GRACE))
            with (folder / "said").open("wb") as said:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _COMMAND, longest, "train", problem.address, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=os.environ | {"OMP_NUM_THREADS": "1"},
                    start_new_session=True,
                )
            self._problem, self._began, self._stopped = problem, time.monotonic(), ""
            self._timer = Timer(self._limit, self.stop, [f"{self._limit:g} seconds are up"])
            self._timer.daemon = True
            self._timer.start()

    def stop(self, why: str = "stopped") -> None:
        """Ends the run, if there is one, after the current step; its network is kept."""
        with self._lock:
            if not self._is_running:
                return
            assert self._process is not None
            self._stopped = why
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def progress(self) -> dict[str, Any]:
        """The name of the run, whether it is running, its scores, and the age of its network."""
        with self._lock:
            if self._problem is None or self._process is None:
                return {"state": "none"}
            state = "running" if self._is_running else "done"
            said = self._stopped
            if state == "done" and not said and self._process.returncode:
                state, said = "failed", self._last_words()
            newest = self._newest()
            return {
                "state": state,
                "task": self._problem.name,
                "said": said,
                "seconds": round(time.monotonic() - self._began, 1),
                "limit": self._limit,
                "stage": "" if newest is None else newest.parent.name,
                "version": 0 if newest is None else newest.stat().st_mtime_ns // 1_000_000,
                "scores": list(self._scores())[-_MOST_SCORES:],
            }

    def weights(self, problem: Problem) -> Path:
        """The newest weights of the run, which must be for this problem."""
        with self._lock:
            newest = self._newest()
            if self._problem is not problem or newest is None:
                raise ValueError(f"no network of {problem.name} has been trained here yet.")
            return newest

    def close(self) -> None:
        """Ends the run and removes its files."""
        self.stop()
        with self._lock:
            self._forget()

    @property
    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = self._process = self._timer = self._problem = None

    def _files(self, name: str) -> list[Path]:
        """All files of a name that the stages of the run have written, oldest first."""
        if self._folder is None:
            return []
        found = Path(self._folder.name, "run").rglob(name)
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def _newest(self) -> Path | None:
        return next(reversed(self._files(WEIGHTS)), None)

    def _scores(self) -> Iterator[dict[str, Any]]:
        for file in self._files("metrics.jsonl"):
            for line in file.read_text().splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:  # the line is still being written
                    continue
                if record.get("score") is not None:
                    stage = "" if file.parent.name == "run" else file.parent.name
                    yield {"stage": stage, "step": record["step"], "score": record["score"]}

    def _last_words(self) -> str:
        assert self._folder is not None
        lines = Path(self._folder.name, "said").read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"ended with code {self._process.returncode}"  # type: ignore[union-attr]
