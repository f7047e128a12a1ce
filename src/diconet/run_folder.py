"""What a run leaves on disk, each file written whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import torch

from diconet.io.output import write_whole
from diconet.model import DiCoNet
from diconet.train_config import TrainConfig
from diconet.weights import save

_FREE = frozenset({"steps", "log_every", "evaluate_every", "checkpoint_every"})
"""Settings that a resumed run may change."""


class RunFolder:
    """What a run leaves on disk: its settings, a checkpoint, its metrics and its weights."""

    def __init__(self, path: Path, config: TrainConfig) -> None:
        self.path = path
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        self._settings = path / "config.json"
        self._config = asdict(config)

    def start(self, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]) -> int:
        """Puts the last checkpoint in place, if there is one; the number of steps behind it."""
        if not self._checkpoint.exists():
            return 0
        self._check_settings()
        kept = torch.load(self._checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        for name, optimiser in optimisers.items():
            optimiser.load_state_dict(kept["optimisers"][name])
        return int(kept["step"])

    def open(self, step: int) -> None:
        """Makes the folder ready to write to: settings noted, metrics past `step` dropped."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self._settings, json.dumps(self._config, indent=2).encode())
        if self._metrics.exists():
            lines = self._metrics.read_text().splitlines()
            known = [line for line in lines if _step_of(line) <= step]
            write_whole(self._metrics, "".join(f"{line}\n" for line in known).encode())

    def _check_settings(self) -> None:
        """A run goes on with the settings it was begun with; only its length may change."""
        before = json.loads(self._settings.read_text())
        for name, value in self._config.items():
            if name not in _FREE and name in before and before[name] != value:
                raise ValueError(
                    f"{name} must stay {before[name]!r} to resume the run in {self.path}; "
                    f"got {value!r}."
                )

    def log(self, record: dict[str, float]) -> None:
        """Adds a line to the metrics."""
        with self._metrics.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def checkpoint(
        self, step: int, model: DiCoNet, optimisers: dict[str, torch.optim.Optimizer]
    ) -> None:
        """Keeps everything that is needed to go on from here, and the weights by themselves."""
        partial = self._checkpoint.with_suffix(".partial")
        state = {name: optimiser.state_dict() for name, optimiser in optimisers.items()}
        torch.save({"step": step, "model": model.state_dict(), "optimisers": state}, partial)
        os.replace(partial, self._checkpoint)
        save(model, self.path / "weights.safetensors", steps=str(step))


def _step_of(line: str) -> float:
    """The step of a line of metrics; a line cut short by a kill counts as not there."""
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError):
        return float("inf")
