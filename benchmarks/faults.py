"""A run killed at random moments, or with a full disk, ends with exactly the same weights.

python benchmarks/faults.py [--kills N] [--seed S] [--json]

A small training run is killed (SIGKILL) at a random moment and restarted, N times in all; each
restarted run may be killed again, and once it cannot write files of more than a few bytes, as on a
full disk. Its final weights are compared bit for bit with those of an undisturbed run. The exit
code is 1 if any differ, or if files are left behind.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch

from diconet.core.model import DiCoNet
from diconet.core.tree import Growth
from diconet.learn import TrainConfig, train
from diconet.nets.pointer import PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask

STEPS = 24


def small_run(folder: Path) -> None:
    """A run of a second or two, with a checkpoint at every other step."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DiCoNet(SetSplit(2), PointerMerge(2, 16), Growth(halve_to=5.0))
    sizes = {"batch_size": 8, "tree_samples": 2, "min_size": 5, "max_size": 14}
    small = TrainConfig(steps=STEPS, log_every=1, checkpoint_every=2, **sizes)
    task = HullTask()
    train(model, task, small, oracle=task.oracle, run=folder, quiet=True)


def started(
    folder: Path, work: Callable[[Path], None] = small_run
) -> multiprocessing.process.BaseProcess:
    """Starts the run in a separate process, which need not import anything again."""
    process = multiprocessing.get_context("fork").Process(target=work, args=(folder,))
    process.start()
    return process


def starved_run(folder: Path) -> None:
    """A run in which no file can be completed; it must fail, and only with an OSError."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    try:
        small_run(folder)
    except OSError:
        os._exit(3)


def survives_a_full_disk(folder: Path) -> bool:
    """Whether a run that cannot write reports it, and leaves existing files unchanged."""
    kept = folder / "checkpoint.pt"
    before = kept.read_bytes() if kept.exists() else b""
    process = started(folder, starved_run)
    process.join()
    return process.exitcode == 3 and (kept.read_bytes() if kept.exists() else b"") == before


def killed_until_done(folder: Path, kills: int, seconds: float, rng: Random) -> list[int]:
    """Kills a run at random moments, then lets it finish; returns the steps saved at each kill."""
    kept = []
    for _ in range(kills):
        process = started(folder)
        process.join(rng.uniform(0, seconds))
        if process.exitcode is not None:
            break
        process.kill()
        process.join()
        there = folder / "checkpoint.pt"
        kept.append(int(torch.load(there, weights_only=True)["step"]) if there.exists() else 0)
    assert not kept or survives_a_full_disk(folder)
    last = started(folder)
    last.join()
    assert last.exitcode == 0
    return kept


def content(folder: Path) -> dict[str, Any]:
    """The weights of a run, and the names of its files."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)["model"]
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines if "loss" in json.loads(line)]
    files = sorted(one.name for one in folder.iterdir() if one.name != "tensorboard")
    return {"state": state, "steps": steps, "files": files}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs ended the same: weights to the last bit, metrics of every step, files."""
    weights = all(torch.equal(value, other["state"][name]) for name, value in one["state"].items())
    return weights and one["steps"] == other["steps"] and one["files"] == other["files"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng, done, alike, runs = Random(options.seed), 0, 0, 0
    kept: list[int] = []
    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        whole = started(Path(place) / "whole")
        whole.join()
        seconds = time.perf_counter() - start
        expected = content(Path(place) / "whole")
        while done < options.kills:
            folder = Path(place) / f"run{runs}"
            found = killed_until_done(folder, min(5, options.kills - done), seconds, rng)
            done, runs, kept = done + len(found), runs + 1, kept + found
            alike += same(expected, content(folder))
    record = {"kills": done, "runs": runs, "alike": alike, "kept at a kill": kept}
    print(json.dumps([record]) if options.json else record)
    sys.stdout.flush()
    os._exit(runs != alike)


if __name__ == "__main__":
    main()
