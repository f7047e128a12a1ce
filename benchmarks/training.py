"""Training examples per second of each preset `paper`, before and after, in one run.

Before is the code of commit f942fc7, checked out from git into a temporary folder, with the
trees per example of its presets; after are the current presets. Both run the same command,
`diconet train`, on the same sizes and batches, and are stopped after some steps. With one thread,
time is CPU time of the process, from the run's own log, whose clock is set to that; with more, it
is wall-clock time, so nothing else should be running then.

python benchmarks/training.py [NAME ...] [--steps N] [--threads N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

BEFORE = "f942fc7"
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Case:
    """A preset at one size: settings for both versions, and those that only one of them has."""

    name: str
    task: str
    settings: str
    before: str = ""
    after: str = ""
    batch: int = 128


def hull(size: int, trees: int = 2) -> Case:
    """The joint step of split and merge at the paper's width, including the policy gradient."""
    settings = "--row diconet_reg"
    settings += f" --train.min_size {size} --train.max_size {size}"
    after = "--pointer.alone_steps 1 --pointer.hard_steps 1 --train.policy_from 0"
    return Case(
        f"hull n={size}, 4 trees before, {trees} after",
        "hull",
        settings,
        before="--train.tree_samples 4 --baseline.steps 1"
        f" --baseline.min_size {size} --baseline.max_size {size}",
        after=f"{after} --train.tree_samples {trees}",
    )


def kmeans(k: int) -> Case:
    """A step of the graph network with 20 layers: ten trees per example."""
    points = "--data [gaussian2]"
    return Case(f"kmeans k={k}", "kmeans", points, f"--stages [{k}]", f"--clusters [{k}]", batch=32)


CASES = (
    hull(10),
    hull(20),
    hull(38),
    hull(38, trees=1),
    kmeans(4),
    kmeans(16),
    Case("knapsack n=50", "knapsack", "", batch=64),
    Case("tsp n=20", "tsp", "--train.min_size 20 --train.max_size 20 --num_labels 64", batch=32),
)
"""The authors' code draws one tree per hull, and has no baseline."""

LONG = 100_000
"""Steps that a run is told it has: a short one would check itself for trouble at every step."""

RUN = "import runpy; runpy.run_module('diconet', run_name='__main__', alter_sys=True)"
CPU_CLOCK = "import time; time.monotonic = time.process_time; "
"""What comes before, for a clock that counts the CPU seconds of this process."""


def seconds_per_step(source: Path, case: Case, settings: str, steps: int, threads: int) -> float:
    """The mean time of a training step after the first, which compiles and warms up."""
    with tempfile.TemporaryDirectory() as folder:
        command = f"train {case.task} --preset paper {case.settings} {settings} --quiet"
        command += f" --run {folder} --train.batch_size {case.batch}"
        command += f" --train.steps {LONG} --train.log_every 1"
        run = subprocess.Popen(
            [sys.executable, "-c", (CPU_CLOCK if threads == 1 else "") + RUN, *command.split()],
            env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": str(threads)},
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        times: list[float] = []
        try:
            while len(times) <= steps:
                if run.poll() is not None:
                    assert run.stderr is not None
                    raise SystemExit(f"{case.name}: {run.stderr.read().strip().splitlines()[-1]}")
                time.sleep(0.2)
                times = _times(Path(folder))
        finally:
            run.kill()
            run.wait()
    return (times[steps] - times[0]) / steps


def _times(folder: Path) -> list[float]:
    """The seconds after each step so far of the longest stage of a run."""
    logs = [log.read_text().splitlines() for log in folder.rglob("metrics.jsonl")]
    longest = max(logs, key=len, default=[])
    lines = [json.loads(line) for line in longest if line.endswith("}")]
    return [line["seconds"] for line in lines if "seconds" in line]


def old_code(folder: Path) -> Path:
    """The sources of the earlier commit."""
    archive = subprocess.run(
        ["git", "archive", BEFORE, "src"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="prefixes of the cases to run (default: all)")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = [c for c in CASES if not options.names or c.name.startswith(tuple(options.names))]
    records = []
    with tempfile.TemporaryDirectory() as folder:
        old = old_code(Path(folder))
        for case in chosen:
            how = options.steps, options.threads
            before = seconds_per_step(old, case, case.before, *how)
            after = seconds_per_step(ROOT / "src", case, case.after, *how)
            records.append(
                {
                    "case": case.name,
                    "before": case.batch / before,
                    "after": case.batch / after,
                    "ratio": before / after,
                }
            )
            if not options.json:  # so that an interrupted run has printed something
                print(f"{case.name}: {before:.2f} s per step, then {after:.2f} s", flush=True)
    if options.json:
        print(json.dumps(records))
        return
    table = Table(title="training examples per second", title_justify="left")
    for column in ("case", "before", "after", "ratio"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for record in records:
        cells = (f"{record[name]:.1f}" for name in ("before", "after", "ratio"))
        table.add_row(record["case"], *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
