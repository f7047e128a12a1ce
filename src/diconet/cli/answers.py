"""Answers on their way out: records, files and pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from diconet.cli.show import json_text
from diconet.core.files import write_whole
from diconet.plot.canvas import new_figure, save
from diconet.problems.problem import Record
from diconet.problems.solution import Solution

_MOST_PANELS = 16


def records_of(names: Sequence[str], solutions: Sequence[Solution], seconds: float) -> list[Record]:
    """A flat record per instance, its answer last."""
    records = []
    for name, solution in zip(names, solutions, strict=True):
        record = solution.record()
        answer, values = record.popitem()
        records.append({"instance": name, **record, "seconds": seconds, answer: values})
    return records


def write_answers(path: Path, records: list[Record], solutions: Sequence[Solution]) -> None:
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
    if kind != ".npy":
        solution.write(path, records[0]["instance"])
        return
    buffer = io.BytesIO()
    answer = list(records[0].values())[-1]
    np.save(buffer, np.array(answer, dtype=np.int64 if answer == [] else None))
    write_whole(path, buffer.getvalue())


def _as_csv(names: Sequence[str], solutions: Sequence[Solution]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(solutions) > 1
    for number, (name, solution) in enumerate(zip(names, solutions, strict=True)):
        header, *rows = solution.rows()
        if number == 0:
            writer.writerow(["instance", *header] if several else header)
        writer.writerows([name, *row] if several else row for row in rows)
    return text.getvalue().encode()


def picture(path: Path, solutions: Sequence[Solution]) -> None:
    """Draws the answers, the first few of many."""
    shown = solutions[:_MOST_PANELS]
    figure, axes = new_figure(len(shown), size=5.6, most_across=ceil(sqrt(len(shown))))
    for ax, solution in zip(axes, shown, strict=True):
        solution.plot(ax)
        ax.title.set_fontsize("small")
    save(figure, path)
