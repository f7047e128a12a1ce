"""The page's server: the page, its problems, fresh instances, answers and training."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from diconet.problems.catalog import problems
from diconet.problems.page import Division
from diconet.problems.problem import Problem
from diconet.web.shelf import MOST_ITEMS, Shelf
from diconet.web.training import Training

MOST_BYTES = 500_000
"""The largest request body accepted."""

_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/points.js": ("points.js", "text/javascript"),
    "/panels.js": ("panels.js", "text/javascript"),
}

_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"


class Question(BaseModel):
    """An instance: points in the plane, values of the problem's fields, and how to divide it."""

    task: str = Field(max_length=200)
    points: list[tuple[float, float]] = Field(max_length=MOST_ITEMS)
    fields: dict[str, float] = Field(default_factory=dict, max_length=16)
    division: Division = "learned"
    network: str | None = Field(default=None, max_length=200)


class Wish(BaseModel):
    """What to train."""

    task: str = Field(max_length=200)


def create_app(
    shown: Sequence[Problem] | None = None, *, training: Training | None = None
) -> FastAPI:
    """The application, for uvicorn or a test, with the given problems or all installed ones."""
    live = training or Training()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        live.close()

    app = FastAPI(title="diconet", docs_url=None, redoc_url=None, lifespan=lifespan)
    _guard(app)
    for path, (name, kind) in _FILES.items():
        _serve(app, path, name, kind)
    _answer(app, Shelf(problems() if shown is None else shown, live), live)
    return app


def _serve(app: FastAPI, path: str, name: str, kind: str) -> None:
    """Serves one file of the page, which lies beside this one."""
    content = (files("diconet.web") / name).read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}

    @app.get(path, include_in_schema=False)
    async def send() -> Response:
        return Response(content, media_type=kind, headers=headers)


def _answer(app: FastAPI, shelf: Shelf, live: Training) -> None:
    """Adds the page's endpoints; slow ones run in threads, so that requests do not block others."""

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
        return shelf.sample(task, n, seed, given)

    @app.post("/api/solve")
    def solve(question: Question) -> dict[str, Any]:
        return shelf.answer(**question.model_dump())

    @app.get("/api/training")
    def progress() -> dict[str, Any]:
        return live.progress()

    @app.post("/api/training")
    def start(wish: Wish) -> dict[str, Any]:
        live.start(shelf.find(wish.task)[0])
        return live.progress()

    @app.delete("/api/training")
    def stop() -> dict[str, Any]:
        live.stop()
        return live.progress()


def _guard(app: FastAPI) -> None:
    """Limits the size of bodies; errors are one short line that repeats nothing of the body."""

    @app.middleware("http")
    async def limited(
        request: Request, proceed: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        too_large = JSONResponse({"detail": f"a body must have at most {MOST_BYTES} bytes."}, 413)
        size = request.headers.get("content-length")
        if size is not None and (not size.isdigit() or int(size) > MOST_BYTES):
            return too_large
        if size is None and request.method not in ("GET", "HEAD", "DELETE"):
            return JSONResponse({"detail": "a body must state its length."}, 411)
        return await proceed(request)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part)[:20] for part in first["loc"] if part != "body")
        return JSONResponse({"detail": f"{place or 'body'}: {first['msg'][:200]}."}, 422)

    @app.exception_handler(ValueError)
    @app.exception_handler(OverflowError)
    @app.exception_handler(MemoryError)
    async def refused(_: Request, error: Exception) -> JSONResponse:
        text = " ".join(str(error).split()) or type(error).__name__
        return JSONResponse({"detail": text[:500]}, 422)
