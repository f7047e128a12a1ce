"""The page's server: the page, the problems it shows, fresh instances and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from diconet.plot.stages import Stage
from diconet.problems.catalog import problems
from diconet.problems.problem import Page, Problem
from diconet.problems.solution import Solution

MOST_ITEMS = 2_000


class Question(BaseModel):
    """An instance: points of the plane, and numbers for the problem's fields."""

    task: str
    points: list[tuple[float, float]] = Field(max_length=MOST_ITEMS)
    fields: dict[str, float] = Field(default_factory=dict, max_length=16)


def create_app(shown: Sequence[Problem] | None = None) -> FastAPI:
    """The application, for uvicorn or for a test, of some problems or of all installed ones."""
    app = FastAPI(title="diconet", docs_url=None, redoc_url=None)
    page = (files("diconet.web") / "page.html").read_text()
    shelf = _Shelf(problems() if shown is None else shown)

    @app.get("/", response_class=HTMLResponse)
    def index() -> str:
        return page

    @app.get("/api/problems")
    def listed() -> list[dict[str, Any]]:
        return shelf.described()

    @app.get("/api/sample")
    def sample(
        request: Request,
        task: str,
        n: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 60,
        seed: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    ) -> dict[str, Any]:
        known = ("task", "n", "seed")
        given = {name: text for name, text in request.query_params.items() if name not in known}
        return _refused(lambda: shelf.sample(task, n, seed, given))

    @app.post("/api/solve")
    def solve(question: Question) -> dict[str, Any]:
        return _refused(lambda: shelf.answer(question))

    return app


def _refused(work: Any) -> Any:
    """What the work gives, or a refusal that says what and why."""
    try:
        return work()
    except ValueError as error:
        raise HTTPException(422, detail=" ".join(str(error).split())) from error


class _Shelf:
    """The problems that the page shows, those that a plane can draw."""

    def __init__(self, shown: Sequence[Problem]) -> None:
        pages = [(one, one.page) for one in shown]
        self._shown = {one.name: (one, page) for one, page in pages if page is not None}

    def described(self) -> list[dict[str, Any]]:
        """What the page needs to know of each problem."""
        return [
            {"name": one.name, "summary": one.summary, **asdict(page)}
            for one, page in self._shown.values()
        ]

    def sample(self, task: str, n: int, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """A fresh instance: its points, and values for the fields that depend on them."""
        problem, page = self._find(task)
        return problem.page_sample(n, seed, **page.read(given))

    def answer(self, question: Question) -> dict[str, Any]:
        """The value, what is known of its quality, and every step that led there."""
        problem, page = self._find(question.task)
        points = np.array(question.points, dtype=np.float64).reshape(-1, 2)
        return _plain(problem.page_solve(points, **page.read(question.fields)))

    def _find(self, name: str) -> tuple[Problem, Page]:
        if name not in self._shown:
            raise ValueError(f"task must be one of {', '.join(self._shown)}; got {name!r}.")
        return self._shown[name]


def _plain(solution: Solution) -> dict[str, Any]:
    return {
        "value": solution.value if np.isfinite(solution.value) else None,
        "quality": solution.quality(),
        "stages": [_plain_stage(stage) for stage in solution.stages()],
    }


def _plain_stage(stage: Stage) -> dict[str, Any]:
    return {
        "title": stage.title,
        "parts": stage.parts.tolist(),
        "cycles": [{"part": part, "items": rows.tolist()} for part, rows in stage.cycles],
        "marks": [] if stage.marks is None else stage.marks.tolist(),
    }
