"""Processes that die: three kills of a run (`benchmarks/faults.py` does fifty), and one of two."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import torch

from tests.learn.test_train import HERE, ROOT, in_two_processes, small_run, weights

DYING = """
import os, signal, sys, threading, time, torch
from pathlib import Path
torch.set_num_threads(1)
from tests.learn.test_train import small_run

def die():
    while not (Path(sys.argv[1]) / "checkpoint.pt").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    threading.Thread(target=die, daemon=True).start()
small_run(sys.argv[1], int(sys.argv[2]), schedule="epoch")
Path(f"{sys.argv[1]}/ended-{os.environ['RANK']}").write_text(os.environ["TORCHELASTIC_RESTART_COUNT"])
"""


def test_a_run_killed_at_random_moments_ends_as_if_nothing_had_happened() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "faults.py"), "--kills", "3", "--json"]
    done = subprocess.run(
        command, env=os.environ | HERE, capture_output=True, text=True, check=True, timeout=300
    )
    (record,) = json.loads(done.stdout)
    assert record["kills"] == 3
    assert record["alike"] == record["runs"]


def test_when_one_of_two_processes_is_killed_the_run_stops_and_goes_on(tmp_path: Path) -> None:
    script, run = tmp_path / "run.py", tmp_path / "run"
    script.write_text(DYING)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    done = subprocess.run(
        [*torchrun, "--standalone", script, run, "200"],
        cwd=ROOT,
        env=os.environ | HERE,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode != 0
    before = torch.load(run / "checkpoint.pt", weights_only=True)["step"]
    assert 3 <= before < 200
    kept = weights(run)
    small_run(tmp_path / "whole", before, schedule="epoch")
    for name, value in weights(tmp_path / "whole").items():
        assert torch.allclose(value, kept[name], atol=1e-4), name
    small_run(run, before + 3, schedule="epoch")
    assert torch.load(run / "checkpoint.pt", weights_only=True)["step"] == before + 3


def test_processes_that_torchrun_starts_again_go_on_to_the_same_weights(tmp_path: Path) -> None:
    """The restarted ones must not look for each other where the killed ones were."""
    script, run = tmp_path / "run.py", tmp_path / "run"
    script.write_text(DYING)
    in_two_processes(script, run, 60)
    assert [int((run / f"ended-{rank}").read_text()) > 0 for rank in range(2)] == [True, True]
    small_run(tmp_path / "whole", 60, schedule="epoch")
    for name, value in weights(tmp_path / "whole").items():
        assert torch.allclose(value, weights(run)[name], atol=1e-4), name


def test_the_sdist_holds_all_that_its_tests_read_or_import() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    always = {"/README.md", "/LICENSE", "/pyproject.toml"}
    needed = set()
    for file in (ROOT / "tests").rglob("*.py"):
        text = file.read_text()
        needed |= set(re.findall(r'ROOT / "([^"/]+)', text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                needed.add(node.module.split(".")[0])
    there = {f"/{name}" for name in needed if (ROOT / name).exists()}
    assert {"/benchmarks", "/tests", "/docs", "/examples"} <= there
    assert there <= {*packed, *always}
