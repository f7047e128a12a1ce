"""What `evaluate` grades is what `solve` answers, for every built-in problem, by default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diconet.cli import main
from diconet.problems.catalog import built_in
from diconet.problems.problem import Instances, Problem
from diconet.problems.solution import Solution


def as_file(problem: Problem, instances: Instances) -> list[dict[str, Any]]:
    """The same instances as a user would have them in a JSON file."""
    written = []
    for number, one in enumerate(instances.data):
        given = {name: values[number] for name, values in instances.given.items()}
        if problem.name == "knapsack":
            values, weights = (np.asarray(side).tolist() for side in one)
            written.append({"value": values, "weight": weights, **given})
        else:
            written.append({"points": np.asarray(one).tolist(), **given})
    return written


@pytest.mark.parametrize("problem", built_in().values(), ids=built_in())
def test_evaluate_and_solve_give_the_same_answers(
    problem: Problem,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graded: list[tuple[Instances, Sequence[Solution]]] = []

    def grade(instances: Instances, solutions: Sequence[Solution]) -> dict[str, float]:
        graded.append((instances, solutions))
        return {}

    size = str(problem.sizes[0])
    with monkeypatch.context() as patch:
        patch.setitem(vars(problem), "grade", grade)
        main(["evaluate", problem.name, "--sizes", size, "--num-sets", "3", "--seed", "5"])
    capsys.readouterr()
    ((instances, solutions),) = graded
    file = tmp_path / "fresh.json"
    file.write_text(json.dumps(as_file(problem, instances)))
    main(["solve", problem.name, str(file), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert len(printed) == len(solutions) == 3
    for record, solution in zip(printed, solutions, strict=True):
        answer, places = solution.record().popitem()
        assert record[answer] == places
        assert record["value"] == solution.value
