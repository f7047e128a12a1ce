"""The public functions say what they take and give, and their examples run."""

from __future__ import annotations

import doctest
import inspect

import pytest

import diconet
from diconet.problems import solution

FUNCTIONS = [diconet.convex_hull, diconet.kmeans, diconet.knapsack, diconet.tsp]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_every_parameter_is_documented_and_the_example_runs(function: object) -> None:
    text = inspect.getdoc(function) or ""
    for name in inspect.signature(function).parameters:  # type: ignore[arg-type]
        assert f"    {name}: " in text, name
    assert "Returns:" in text
    assert ">>> " in text
    module = inspect.getmodule(function)
    assert module is not None
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_examples_of_solutions_run() -> None:
    found = doctest.testmod(solution)
    assert found.attempted > 0
    assert found.failed == 0
