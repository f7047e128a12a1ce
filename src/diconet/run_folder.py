"""What a run leaves on disk, each file written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from diconet.io.output import json_line, write_whole
from diconet.model import DiCoNet
from diconet.task import Task
from diconet.train_config import TrainConfig
from diconet.weights import describe_network, fit, save

_FREE = frozenset({"steps", "log_every", "evaluate_every", "checkpoint_every"})
"""Settings that a resumed run may change."""


class RunFolder:
    """What a run leaves on disk: its settings, a checkpoint, its metrics and its weights.

    The settings say how it trains, and what: the network, the task and the loss. Where TensorBoard
    is installed, it finds the metrics in the folder, too.
    """

    def __init__(
        self,
        path: Path,
        config: TrainConfig,
        model: DiCoNet,
        task: Task,
        loss: Callable[..., Any],
    ) -> None:
        self.path = path
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        self._settings = path / "config.json"
        self._board: Any = None
        what = {**describe_network(model), "task": _told(task), "loss": _told(loss)}
        self._config = {**asdict(config), "trains": json.loads(json.dumps(what))}

    def start(self, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]) -> int:
        """Puts the last checkpoint in place, if there is one; the number of steps behind it."""
        if not self._checkpoint.exists():
            return 0
        self.check()
        kept = self._read_checkpoint()
        fit(model, kept["model"], f"the weights in {self._checkpoint} do not fit the network")
        for name, optimiser in optimisers.items():
            optimiser.load_state_dict(kept["optimisers"][name])
        return int(kept["step"])

    def _read_checkpoint(self) -> dict[str, Any]:
        try:
            kept = torch.load(self._checkpoint, weights_only=True)
        except OSError:
            raise
        except Exception as error:  # junk makes an unpickler raise anything
            raise ValueError(
                f"{self._checkpoint} must be the checkpoint of a run; it cannot be read."
            ) from error
        return cast(dict[str, Any], kept)

    def open(self, step: int) -> None:
        """Makes the folder ready to write to: settings noted, metrics past `step` dropped."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self._settings, json.dumps(self._config, indent=2).encode())
        if self._metrics.exists():
            lines = self._metrics.read_text().splitlines()
            known = [line for line in lines if _step_of(line) <= step]
            write_whole(self._metrics, "".join(f"{line}\n" for line in known).encode())
        self._board = _board(self.path / "tensorboard", step)

    def check(self) -> None:
        """A run goes on as what it was begun as; only its length may change."""
        if not self._checkpoint.exists():
            return
        before, now = json.loads(self._settings.read_text()), dict(self._config)
        # what is trained comes first: settings that differ with it would only hide it
        changes = list(_changes("", before.pop("trains", {}), now.pop("trains")))
        changes += [change for change in _changes("", before, now) if change[0] not in _FREE]
        if changes:
            name, old, new = changes[0]
            raise ValueError(
                f"{name} must stay {old!r} to resume the run in {self.path}; got {new!r}."
            )

    def log(self, record: dict[str, float]) -> None:
        """Adds a line to the metrics."""
        with self._metrics.open("a") as file:
            file.write(json_line(record) + "\n")
        if self._board is not None:
            for name in record.keys() - {"step"}:
                self._board.add_scalar(name, record[name], record["step"])

    def checkpoint(
        self, step: int, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]
    ) -> None:
        """Keeps everything that is needed to go on from here, and the weights by themselves."""
        partial = self._checkpoint.with_suffix(".partial")
        state = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        torch.save({"step": step, "model": model.state_dict(), "optimisers": state}, partial)
        os.replace(partial, self._checkpoint)
        save(model, self.path / "weights.safetensors", steps=str(step))


def _board(path: Path, step: int) -> Any:
    """The metrics for TensorBoard too, where it is installed; those past `step` are dropped."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(path, purge_step=step + 1)


def _told(thing: Any) -> Any:
    """A task or a loss as far as JSON can say it: names, numbers, and the shapes of arrays."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, list | tuple):
        return [_told(one) for one in thing]
    if isinstance(thing, dict):
        return {str(name): _told(one) for name, one in thing.items()}
    if isinstance(thing, partial):
        return {"class": _call(thing)}
    told: dict[str, Any] = {"class": getattr(thing, "__name__", type(thing).__name__)}
    if is_dataclass(thing) and not isinstance(thing, type):
        told |= {field.name: _told(getattr(thing, field.name)) for field in fields(thing)}
    elif hasattr(thing, "shape"):
        told["shape"] = list(thing.shape)
    return told


def _call(made: partial[Any]) -> str:
    """A function with some of its arguments given, as one would write it."""
    given = [str(_told(one)) for one in made.args]
    given += [f"{name}={_told(one)}" for name, one in made.keywords.items()]
    return f"{_told(made.func)['class']}({', '.join(given)})"


def _changes(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two descriptions differ, of what both of them tell: its name, what it was and is."""
    if isinstance(old, dict) and isinstance(new, dict) and old.get("class") == new.get("class"):
        for key in new:
            if key in old:
                yield from _changes(f"{name}.{key}".lstrip("."), old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from _changes(f"{name}[{place}]", before, now)
    elif isinstance(old, list) and isinstance(new, list):
        yield f"the number of {name}", len(old), len(new)
    elif old != new:
        yield name, _brief(old), _brief(new)


def _brief(told: Any) -> Any:
    """What stands for a description in a line."""
    return told.get("class") if isinstance(told, dict) else told


def _step_of(line: str) -> float:
    """The step of a line of metrics; a line cut short by a kill counts as not there."""
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return float("inf")
