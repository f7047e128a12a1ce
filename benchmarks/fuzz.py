"""Odd inputs to the four functions: no wrong answer, no false proof, no foreign exception.

python benchmarks/fuzz.py [--inputs N] [--task TASK] [--seed S] [--json]

The inputs and the checks, in exact arithmetic where that matters, are those of the test suite
(tests/odd_inputs.py), which runs a few hundred of them. The exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.odd_inputs import SOLVE, cases, fault

_SHOWN = 5
_PATIENCE = 300
"""Time limit per input in seconds; the first one compiles."""


def run(task: str, inputs: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """The counts of a problem, and descriptions of the first few faults."""
    counts: Counter[str] = Counter()
    shown: list[str] = []
    start = time.process_time()
    for number, case in enumerate(islice(cases(task, seed), inputs)):
        faulthandler.dump_traceback_later(_PATIENCE, exit=True)  # compiled loops ignore alarms
        found = fault(case)
        if found is None:
            continue
        kinds = ("foreign", "false proof", "refused")
        counts[next((kind for kind in kinds if found.startswith(kind)), "wrong")] += 1
        if len(shown) < _SHOWN:
            shown.append(f"{task} {seed}:{number} {case.kind}: {found}"[:300])
    record: dict[str, Any] = {"task": task, "inputs": inputs}
    record |= {kind: counts[kind] for kind in ("wrong", "false proof", "foreign", "refused")}
    return record | {"seconds": round(time.process_time() - start, 1)}, shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=25_000, help="per problem")
    parser.add_argument("--task", choices=list(SOLVE), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # NumPy's warnings of overflow in a check
    records = []
    for task in options.task or list(SOLVE):
        record, shown = run(task, options.inputs, options.seed)
        records.append(record)
        print("\n".join(shown), file=sys.stderr, end="\n" if shown else "")
        if not options.json:
            print("  ".join(f"{name} {value}" for name, value in record.items()), flush=True)
    if options.json:
        print(json.dumps(records))
    bad = ("wrong", "false proof", "foreign", "refused")
    sys.exit(any(record[kind] for record in records for kind in bad))


if __name__ == "__main__":
    main()
