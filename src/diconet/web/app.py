"""The page's server: one page, and two questions it asks (for an instance, for its answer)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from diconet.model import DiCoNet
from diconet.solve.hull import convex_hull
from diconet.solve.kmeans import kmeans
from diconet.solve.knapsack import knapsack
from diconet.solve.solution import Solution
from diconet.solve.tsp import tsp
from diconet.stages import Stage, stages_of
from diconet.tree import Growth
from diconet.weights import shipped

Task = Literal["hull", "kmeans", "knapsack", "tsp"]
MOST_ITEMS = 2_000
TSP_LEAF = 40


class Question(BaseModel):
    """An instance: points of the plane, or for a knapsack rows of weight and value."""

    task: Task
    points: list[tuple[float, float]] = Field(max_length=MOST_ITEMS)
    k: int = 4
    capacity: float = 0.0


def create_app() -> FastAPI:
    """The application, for uvicorn or for a test."""
    app = FastAPI(title="diconet", docs_url=None, redoc_url=None)
    page = (files("diconet.web") / "page.html").read_text()

    @app.get("/", response_class=HTMLResponse)
    def index() -> str:
        return page

    @app.get("/api/sample")
    def sample(
        task: Task,
        n: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 60,
        seed: Annotated[int, Query(ge=0, lt=2**63)] = 0,
        k: Annotated[int, Query(ge=1, le=64)] = 4,
    ) -> dict[str, Any]:
        return instance(task, n, seed, k)

    @app.post("/api/solve")
    def solve(question: Question) -> dict[str, Any]:
        try:
            return answer(question)
        except ValueError as error:
            raise HTTPException(422, detail=" ".join(str(error).split())) from error

    return app


def instance(task: Task, n: int, seed: int, k: int) -> dict[str, Any]:
    """A fresh instance: uniform points, heaps of them, or items of a knapsack."""
    rng = np.random.default_rng(seed)
    if task == "kmeans":
        centres = rng.uniform(0.1, 0.9, (k, 2))
        points = centres[rng.integers(k, size=n)] + 0.05 * rng.standard_normal((n, 2))
    elif task == "hull":
        points = 0.5 + 0.17 * rng.standard_normal((n, 2))
    else:
        points = rng.uniform(0.02, 0.98, (n, 2))
    points = points.clip(0.01, 0.99).round(4)
    capacity = round(float(points[:, 0].sum()) / 2, 3)
    return {"points": points.tolist(), "capacity": capacity}


def answer(question: Question) -> dict[str, Any]:
    """The value, what is known of its quality, and every step of the way."""
    points = np.array(question.points, dtype=np.float64).reshape(-1, 2)
    model = _network(question.task)
    solution: Any = _SOLVERS[question.task](points, question, model)
    assert isinstance(solution, Solution)
    stages = stages_of(solution, model=model)
    return {
        "value": solution.value if np.isfinite(solution.value) else None,
        "quality": solution.quality(),
        "stages": [_plain(stage) for stage in stages],
    }


def _plain(stage: Stage) -> dict[str, Any]:
    return {
        "title": stage.title,
        "parts": stage.parts.tolist(),
        "cycles": [{"part": part, "items": rows.tolist()} for part, rows in stage.cycles],
        "marks": [] if stage.marks is None else stage.marks.tolist(),
    }


@lru_cache
def _network(task: Task) -> DiCoNet:
    """The shipped network of a task, read once."""
    model = shipped(task)
    if task == "tsp":  # made for thousands of cities; small leaves give the page a tree to show
        return DiCoNet(model.split, model.merge, Growth(leaf_size=TSP_LEAF))
    return model


_SOLVERS: dict[str, Callable[[np.ndarray, Question, DiCoNet], Any]] = {
    "hull": lambda points, _, model: convex_hull(points, model=model),
    "kmeans": lambda points, q, model: kmeans(points, q.k, model=model),
    "tsp": lambda points, _, model: tsp(points, model=model),
    "knapsack": lambda points, q, model: knapsack(
        points[:, 1], points[:, 0], q.capacity, model=model
    ),
}
