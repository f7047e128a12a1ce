"""The problems that the page shows: their descriptions and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from diconet.plot.stages import Stage
from diconet.problems.page import Division, Page
from diconet.problems.problem import Problem
from diconet.problems.solution import Solution
from diconet.web.training import Training

MOST_ITEMS = 2_000

LIVE = "live"
"""The name of the network being trained on the page."""


class Shelf:
    """The problems that can be drawn in a plane, by name."""

    def __init__(self, shown: Sequence[Problem], training: Training) -> None:
        pages = [(one, one.page) for one in shown]
        self._shown = {one.name: (one, page) for one, page in pages if page is not None}
        self._training = training

    def described(self) -> list[dict[str, Any]]:
        """A description of each problem for the page; its default network comes first."""
        return [
            {
                "name": one.name,
                "summary": one.summary,
                "networks": sorted(one.weights, key=lambda name: (name != one.name, name)),
                **asdict(page),
            }
            for one, page in self._shown.values()
        ]

    def sample(self, task: str, n: int, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """A fresh instance: its points, and values for the fields that depend on them."""
        problem, page = self.find(task)
        return problem.page_sample(n, seed, **page.read(given))

    def answer(
        self,
        task: str,
        points: Sequence[tuple[float, float]],
        fields: Mapping[str, float],
        division: Division,
        network: str | None,
    ) -> dict[str, Any]:
        """The value, what is known of its quality, and every step that led to it."""
        problem, page = self.find(task)
        array = np.array(points, dtype=np.float64).reshape(-1, 2)
        page.check(len(array), division)
        model = self._network(problem, network)
        given = page.read(fields)
        return _plain(problem.page_solve(array, division, model, **given))

    def find(self, name: str) -> tuple[Problem, Page]:
        """A problem and its description for the page."""
        if name not in self._shown:
            raise ValueError(f"task must be one of {', '.join(self._shown)}; got {name[:50]!r}.")
        return self._shown[name]

    def _network(self, problem: Problem, name: str | None) -> Any:
        """A shipped network by name, or the one in training; no other file is ever read."""
        if name is None or name in problem.weights:
            return name
        if name == LIVE:
            return self._training.weights(problem)
        known = ", ".join([*problem.weights, LIVE])
        raise ValueError(f"network must be one of {known}; got {name[:50]!r}.")


def _plain(solution: Solution) -> dict[str, Any]:
    stages = solution.stages()
    counts = [len(np.unique(stage.parts)) for stage in stages]
    deepest = counts.index(max(counts))  # sets are cut up to there, and merged from there on
    kinds = ["cut" if place <= deepest else "merge" for place in range(len(stages))]
    kinds[-1] = "answer"
    return {
        "value": solution.value if np.isfinite(solution.value) else None,
        "quality": solution.quality(),
        "stages": [_plain_stage(stage, kind) for stage, kind in zip(stages, kinds, strict=True)],
    }


def _plain_stage(stage: Stage, kind: str) -> dict[str, Any]:
    marks = [] if stage.marks is None else np.nan_to_num(stage.marks).tolist()
    return {
        "title": stage.title,
        "kind": kind,
        "parts": stage.parts.tolist(),
        "cycles": [{"part": part, "items": rows.tolist()} for part, rows in stage.cycles],
        "marks": marks,
    }
