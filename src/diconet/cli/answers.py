"""Answers on their way out: records, files and pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diconet.cli.show import json_text
from diconet.io.output import check_output, write_whole
from diconet.solve.hull import Hull
from diconet.solve.kmeans import Clusters
from diconet.solve.knapsack import Packing
from diconet.solve.solution import Solution
from diconet.solve.tsp import Tour

_MOST_PANELS = 16


def check_outputs(task: str, out: Path | None, plot: Path | None) -> None:
    """Refuses files that could not be written in the end."""
    if out:
        own = (".tour",) if task == "tsp" else ()
        check_output(out, "--out", (".csv", ".json", ".npy", *own))
    if plot:
        check_output(plot, "--plot", (".png", ".svg", ".pdf", ".jpg"))


def records_of(
    names: Sequence[str], solutions: Sequence[Solution], seconds: float
) -> list[dict[str, Any]]:
    """A flat record an instance, its answer last."""
    records = []
    for name, solution in zip(names, solutions, strict=True):
        record = solution.record()
        answer, values = record.popitem()
        records.append({"instance": name, **record, "seconds": seconds, answer: values})
    return records


def write_answers(path: Path, records: list[dict[str, Any]], solutions: Sequence[Solution]) -> None:
    """The answers as a file, by its ending; all or nothing."""
    kind = path.suffix.lower()
    if kind == ".json":
        write_whole(path, json_text(records).encode())
        return
    if kind == ".csv":
        write_whole(path, _as_csv([record["instance"] for record in records], solutions))
        return
    if len(solutions) > 1:
        raise ValueError(f"--out must be .csv or .json for several instances; got {path}.")
    (solution,) = solutions
    if isinstance(solution, Tour) and kind == ".tour":
        solution.write(path, records[0]["instance"])
        return
    buffer = io.BytesIO()
    np.save(buffer, np.array(list(records[0].values())[-1], dtype=np.int64))
    write_whole(path, buffer.getvalue())


def _as_csv(names: Sequence[str], solutions: Sequence[Solution]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(solutions) > 1
    for number, (name, solution) in enumerate(zip(names, solutions, strict=True)):
        header, *rows = _rows(solution)
        if number == 0:
            writer.writerow(["instance", *header] if several else header)
        writer.writerows([name, *row] if several else row for row in rows)
    return text.getvalue().encode()


def _rows(solution: Solution) -> Iterator[Sequence[Any]]:
    """An answer as a table: its header, then a row an item, in the answer's order."""
    if isinstance(solution, Hull):
        yield "index", "x", "y"
        for index in solution.indices.tolist():
            yield index, *solution.points[index].tolist()
    elif isinstance(solution, Clusters):
        yield "index", "label"
        yield from enumerate(solution.labels.tolist())
    elif isinstance(solution, Packing):
        yield "index", "value", "weight"
        for index in solution.chosen.tolist():
            yield index, float(solution.values[index]), float(solution.weights[index])
    elif isinstance(solution, Tour):
        yield "city", "x", "y"
        for city in solution.tour.tolist():
            yield city, *solution.cities[city].tolist()


def picture(path: Path, solutions: Sequence[Solution]) -> None:
    """Draws the answers, the first few of many."""
    from matplotlib.figure import Figure

    shown = solutions[:_MOST_PANELS]
    across = int(np.ceil(np.sqrt(len(shown))))
    down = -(-len(shown) // across)
    figure = Figure(figsize=(6.4 * across, 5.6 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, solution in zip(axes, shown, strict=False):
        solution.plot(ax)
        ax.title.set_fontsize("small")
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lower().removeprefix("."), dpi=120)
    write_whole(path, buffer.getvalue())
