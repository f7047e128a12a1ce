"""Run folders: used by one run at a time, with every file written atomically."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from diconet.core.files import json_line, remove_partial, write_whole
from diconet.core.host import host_copy
from diconet.core.model import DiCoNet
from diconet.core.task import Task
from diconet.core.weights import describe_network, fit, save
from diconet.learn.config import TrainConfig

try:
    import fcntl
except ImportError:  # Windows: users must avoid two runs in one folder themselves
    fcntl = None  # type: ignore[assignment]

_FREE = frozenset({"steps", "seconds", "log_every", "evaluate_every", "checkpoint_every"})
"""Settings that a resumed run may change."""


class RunFolder:
    """A run on disk: its settings, a checkpoint, its metrics and its weights.

    The settings record how it trains, and what: the network, the task and the loss. If TensorBoard
    is installed, the metrics are also written for it. As a context, it locks the folder.
    """

    def __init__(
        self, path: Path, config: TrainConfig, model: DiCoNet, task: Task, loss: Callable[..., Any]
    ) -> None:
        self.path = path
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        self._settings = path / "config.json"
        self._weights = path / "weights.safetensors"
        self._lock = FolderLock(path)
        self._board: Any = None
        what = {**describe_network(model), "task": described(task), "loss": described(loss)}
        self._config = {**asdict(config), "trains": json.loads(json.dumps(what))}

    def __enter__(self) -> RunFolder:
        self._lock.take()
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()
        self._lock.release()

    def start(
        self, model: DiCoNet, optimisers: Mapping[str, torch.optim.Optimizer]
    ) -> tuple[int, float]:
        """Loads the last checkpoint, if any; returns the steps and seconds already done.

        Afterwards the folder is ready to be written to.
        """
        step, seconds = 0, 0.0
        if self._checkpoint.exists():
            self.check()
            kept = self._read_checkpoint()
            fit(model, kept["model"], f"the weights in {self._checkpoint} do not fit the network")
            for name, optimiser in optimisers.items():
                optimiser.load_state_dict(kept["optimisers"][name])
            step, seconds = int(kept["step"]), float(kept.get("seconds", 0.0))
        self._open(step)
        if step > 0 and self._weights_are_behind():
            self._save_weights(step, model)
        return step, seconds

    def _read_checkpoint(self) -> dict[str, Any]:
        try:
            kept = torch.load(self._checkpoint, weights_only=True, map_location="cpu")
        except OSError:
            raise
        except Exception as error:  # an unpickler may raise anything on junk
            raise ValueError(
                f"{self._checkpoint} must be the checkpoint of a run; it cannot be read."
            ) from error
        return cast(dict[str, Any], kept)

    def _open(self, step: int) -> None:
        """Writes the settings, and drops metrics past `step` and unfinished writes."""
        self.path.mkdir(parents=True, exist_ok=True)
        for file in (self._checkpoint, self._metrics, self._settings, self._weights):
            remove_partial(file)
        write_whole(self._settings, json.dumps(self._config, indent=2).encode())
        if self._metrics.exists():
            lines = self._metrics.read_text().splitlines()
            known = [line for line in lines if _step_of(line) <= step]
            write_whole(self._metrics, "".join(f"{line}\n" for line in known).encode())
        self._board = _board(self.path / "tensorboard", step)

    def check(self) -> None:
        """Raises an error if the folder holds a different run; only the length may change."""
        if not self._checkpoint.exists():
            return
        before, now = json.loads(self._settings.read_text()), dict(self._config)
        # Compare what is trained first: other settings differ with it and would only hide it.
        found = list(changes("", before.pop("trains", {}), now.pop("trains")))
        found += [change for change in changes("", before, now) if change[0] not in _FREE]
        if found:
            name, old, new = found[0]
            raise ValueError(
                f"{name} must stay {old!r} to resume the run in {self.path}; got {new!r}."
            )

    def log(self, record: Mapping[str, float | str]) -> None:
        """Adds a line to the metrics, and its numbers to TensorBoard."""
        with self._metrics.open("a") as file:
            file.write(json_line(record) + "\n")
        if self._board is not None:
            for name, value in record.items():
                if name != "step" and not isinstance(value, str):
                    self._board.add_scalar(name, value, record["step"])

    def checkpoint(
        self,
        step: int,
        seconds: float,
        model: DiCoNet,
        optimisers: Mapping[str, torch.optim.Optimizer],
    ) -> None:
        """Saves everything needed to resume from here, and the weights separately."""
        state = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        content = io.BytesIO()
        kept = {"model": model.state_dict(), "optimisers": state}
        torch.save({"step": step, "seconds": seconds, **host_copy(kept)}, content)
        write_whole(self._checkpoint, content.getvalue())
        self._save_weights(step, model)

    def _save_weights(self, step: int, model: DiCoNet) -> None:
        save(model, self._weights, steps=str(step), seed=str(self._config["seed"]))

    def _weights_are_behind(self) -> bool:
        """Whether a kill came between writing the checkpoint and its weights."""
        if not self._weights.exists():
            return True
        return self._weights.stat().st_mtime_ns < self._checkpoint.stat().st_mtime_ns


def _board(path: Path, step: int) -> Any:
    """A TensorBoard writer, if installed; metrics past `step` are dropped."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(path, purge_step=step + 1)


def _step_of(line: str) -> float:
    """The step of a line of metrics; infinite for a line truncated by a kill."""
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return float("inf")


class FolderLock:
    """Locks a folder for this process; the system releases it when the process dies.

    The lock is on an open file, not on the file's existence, so that a file left behind by a killed
    run blocks nobody, even if another process now has the same id.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "lock"
        self._file: int | None = None

    def take(self) -> None:
        """Takes the lock, or raises a one-line error that names the process that has it."""
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
        """Releases the lock."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _is_current(self, file: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        return False


def described(thing: Any) -> Any:
    """A JSON description of a task or loss: names, numbers, and the shapes of arrays."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, list | tuple):
        return [described(one) for one in thing]
    if isinstance(thing, dict):
        return {str(name): described(one) for name, one in thing.items()}
    if isinstance(thing, partial):
        return {"class": _call(thing)}
    words: dict[str, Any] = {"class": getattr(thing, "__name__", type(thing).__name__)}
    if is_dataclass(thing) and not isinstance(thing, type):
        words |= {field.name: described(getattr(thing, field.name)) for field in fields(thing)}
    elif hasattr(thing, "shape"):
        words["shape"] = list(thing.shape)
    return words


def _call(made: partial[Any]) -> str:
    """A partial function call as it would be written in code."""
    given = [str(described(one)) for one in made.args]
    given += [f"{name}={described(one)}" for name, one in made.keywords.items()]
    return f"{described(made.func)['class']}({', '.join(given)})"


def changes(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two descriptions differ in what both contain: (name, old, new)."""
    if isinstance(old, dict) and isinstance(new, dict) and old.get("class") == new.get("class"):
        for key in new:
            if key in old:
                yield from changes(f"{name}.{key}".lstrip("."), old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from changes(f"{name}[{place}]", before, now)
    elif isinstance(old, list) and isinstance(new, list):
        yield f"the number of {name}", len(old), len(new)
    elif old != new:
        yield name, _brief(old), _brief(new)


def _brief(words: Any) -> Any:
    """A short form of a description for one line: the class without its path."""
    if not isinstance(words, dict):
        return words
    name = words.get("class")
    return name.rpartition(".")[2] if isinstance(name, str) and "(" not in name else name
