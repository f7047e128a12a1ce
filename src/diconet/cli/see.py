"""`diconet plot`, `web` and `demo`: pictures and the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.cli.options import add_command, add_shared, add_task
from diconet.cli.show import patience, show
from diconet.io.parse import count
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem, Record

if TYPE_CHECKING:
    import numpy as np


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the three commands."""
    plot = add_command(commands, "plot", _plot, "training curves from the metrics of runs")
    plot.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folder; several are shown together"
    )
    plot.add_argument("--out", type=Path, default=Path("curves.png"), help=".png, .svg or .pdf")

    web = add_command(commands, "web", _web, "an interactive page: place points, see them solved")
    add_task(web, many=True)
    web.add_argument("--port", type=count, default=8000, help="default: 8000")
    web.add_argument("--host", default="127.0.0.1", help="0.0.0.0 to allow other machines")

    demo = add_command(commands, "demo", _demo, "solve one instance of each problem")
    add_task(demo, many=True)
    demo.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    add_shared(demo, "--json")


def _plot(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.core.files import check_output

    check_output(options.out, "--out", (".png", ".svg", ".pdf"))
    with patience("drawing ..."):
        from diconet.plot.curves import curves_figure
        from diconet.plot.levels import save

        save(curves_figure(options.runs), options.out)
    print(f"picture: {options.out}")


def _web(options: argparse.Namespace, _: list[str]) -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"the page needs {' and '.join(missing)}; install them with pip install 'diconet[web]'."
        )
    if options.port > 65_535:
        raise ValueError(f"--port must be at most 65535; got {options.port}.")
    if options.tasks and all(one.page is None for one in options.tasks):
        names = ", ".join(one.name for one in options.tasks)
        raise ValueError(
            f"TASK must be a problem of points in a plane, which the page can draw; got {names}."
        )
    import uvicorn

    from diconet.web.app import create_app

    print(f"http://{options.host}:{options.port} (Ctrl-C to stop)", flush=True)
    uvicorn.run(
        create_app(options.tasks or None), host=options.host, port=options.port, log_level="warning"
    )


def _demo(options: argparse.Namespace, _: list[str]) -> None:
    shown = options.tasks or [one for one in problems() if one.name in one.weights]
    with patience("solving one instance of each problem ..."):
        records = demo(options.out, shown)
    show(records, options.json, title="one instance of each problem")
    if not options.json:
        print(f"pictures: {options.out}")


def demo(folder: Path, shown: Sequence[Problem], *, scale: float = 1.0) -> list[Record]:
    """Solves one instance per problem; returns a record each and writes pictures to `folder`.

    `seconds` is the time of our answer alone, once compiled. A `scale` below 1 makes the instances
    smaller.
    """
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    return [_record(one, rng, scale, folder) for one in shown]


def _record(problem: Problem, rng: np.random.Generator, scale: float, folder: Path) -> Record:
    example = problem.demo(rng, scale)
    problem.solve(example.instances)  # so that compilation is not timed
    start = time.perf_counter()
    (solution,) = problem.solve(example.instances)
    seconds = time.perf_counter() - start
    picture = solution.save_levels(folder / f"{problem.name}.png")
    by, best = (None, None) if example.oracle is None else example.oracle
    return {
        "task": problem.name,
        "instance": example.text,
        "measure": example.measure,
        "ours": solution.value,
        "reference": example.reference[1](),
        "reference by": example.reference[0],
        "oracle": None if best is None else best(),
        "oracle by": by,
        "seconds": seconds,
        "picture": picture.name,
    }
