"""What a run leaves on disk, each file written whole or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch

from diconet.core.files import json_line, remove_partial, write_whole
from diconet.core.host import host_copy
from diconet.core.model import DiCoNet
from diconet.core.task import Task
from diconet.core.weights import describe_network, fit, save
from diconet.learn.config import TrainConfig
from diconet.learn.describe import changes, described
from diconet.learn.lock import FolderLock

_FREE = frozenset({"steps", "seconds", "log_every", "evaluate_every", "checkpoint_every"})
"""Settings that a resumed run may change."""


class RunFolder:
    """What a run leaves on disk: its settings, a checkpoint, its metrics and its weights.

    The settings say how it trains, and what: the network, the task and the loss. Where TensorBoard
    is installed, it finds the metrics in the folder, too. As a context, it keeps other runs out.
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
        """Puts the last checkpoint in place, if there is one; the steps and seconds behind it.

        Then the folder is ready to be written to.
        """
        step, seconds = 0, 0.0
        if self._checkpoint.exists():
            self.check()
            step, seconds = self._restore(model, optimisers)
        self._open(step)
        if step > 0 and self._weights_are_behind():
            self._save_weights(step, model)
        return step, seconds

    def _restore(
        self, model: DiCoNet, optimisers: Mapping[str, torch.optim.Optimizer]
    ) -> tuple[int, float]:
        kept = self._read_checkpoint()
        fit(model, kept["model"], f"the weights in {self._checkpoint} do not fit the network")
        for name, optimiser in optimisers.items():
            optimiser.load_state_dict(kept["optimisers"][name])
        return int(kept["step"]), float(kept.get("seconds", 0.0))

    def _read_checkpoint(self) -> dict[str, Any]:
        try:
            kept = torch.load(self._checkpoint, weights_only=True, map_location="cpu")
        except OSError:
            raise
        except Exception as error:  # junk makes an unpickler raise anything
            raise ValueError(
                f"{self._checkpoint} must be the checkpoint of a run; it cannot be read."
            ) from error
        return cast(dict[str, Any], kept)

    def _open(self, step: int) -> None:
        """Notes the settings, and drops metrics past `step` and what a kill left unfinished."""
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
        """Refuses to go on as another run than was begun; only its length may change."""
        if not self._checkpoint.exists():
            return
        before, now = json.loads(self._settings.read_text()), dict(self._config)
        # what is trained comes first: settings that differ with it would only hide it
        found = list(changes("", before.pop("trains", {}), now.pop("trains")))
        found += [change for change in changes("", before, now) if change[0] not in _FREE]
        if found:
            name, old, new = found[0]
            raise ValueError(
                f"{name} must stay {old!r} to resume the run in {self.path}; got {new!r}."
            )

    def log(self, record: Mapping[str, float | str]) -> None:
        """Adds a line to the metrics; TensorBoard gets its numbers."""
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
        """Keeps everything that is needed to go on from here, and the weights by themselves."""
        state = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        content = io.BytesIO()
        kept = {"model": model.state_dict(), "optimisers": state}
        torch.save({"step": step, "seconds": seconds, **host_copy(kept)}, content)
        write_whole(self._checkpoint, content.getvalue())
        self._save_weights(step, model)

    def _save_weights(self, step: int, model: DiCoNet) -> None:
        save(model, self._weights, steps=str(step), seed=str(self._config["seed"]))

    def _weights_are_behind(self) -> bool:
        """Whether a kill came between the checkpoint and its weights."""
        if not self._weights.exists():
            return True
        return self._weights.stat().st_mtime_ns < self._checkpoint.stat().st_mtime_ns


def _board(path: Path, step: int) -> Any:
    """The metrics for TensorBoard too, where it is installed; those past `step` are dropped."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(path, purge_step=step + 1)


def _step_of(line: str) -> float:
    """The step of a line of metrics; a line cut short by a kill counts as not there."""
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return float("inf")
