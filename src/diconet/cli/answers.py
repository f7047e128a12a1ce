"""Output of answers: records, files and pictures."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from diconet.core.files import write_whole
from diconet.io.source import ENDINGS, ending_of
from diconet.io.tables import Table
from diconet.io.write import squeezed, table_bytes, together
from diconet.plot.levels import new_figure, save
from diconet.problems.problem import Instances, Record
from diconet.problems.solution import Solution

_MOST_PANELS = 16


def records_of(names: Sequence[str], solutions: Sequence[Solution], seconds: float) -> list[Record]:
    """A flat record per instance, the answer last, and a note where something is unknown."""
    records = []
    for name, solution in zip(names, solutions, strict=True):
        record = solution.record()
        answer, values = record.popitem()
        note = solution.note()
        notes = {} if note is None else {"note": note}
        records.append({"instance": name, **record, **notes, "seconds": seconds, answer: values})
    return records


def write_answers(path: Path, instances: Instances, solutions: Sequence[Solution]) -> None:
    """Writes the answers beside the items, in the format given by the suffix, atomically."""
    ending = ending_of(path)
    if ending not in ENDINGS and str(path) != "-":
        if len(solutions) > 1:
            raise ValueError(
                f"--out must be a table, such as .csv, for several instances; got {path}."
            )
        _write_alone(path, ending, instances.names[0], solutions[0])
        return
    tables = instances.tables or [None] * len(solutions)
    frames = [
        solution.frame(None if table is None else table.frame)
        for solution, table in zip(solutions, tables, strict=True)
    ]
    _write(path, instances.names, frames, tables[0])


def _write_alone(path: Path, ending: str, name: str, solution: Solution) -> None:
    """Writes the answer without the items, as an array or in the problem's own format."""
    if ending != ".npy":
        solution.write(path, name)
        return
    buffer = io.BytesIO()
    answer = list(solution.record().values())[-1]
    np.save(buffer, np.array(answer, dtype=np.int64 if answer == [] else None))
    write_whole(path, squeezed(path, buffer.getvalue()))


def write_more(
    path: Path,
    what: str,
    columns: Sequence[Sequence[str]],
    instances: Instances,
    solutions: Sequence[Solution],
) -> None:
    """Writes another table of the answers, such as centres, named like the items' columns."""
    frames = [solution.more_tables()[what] for solution in solutions]
    if columns:
        frames = [one.set_axis(names, axis=1) for one, names in zip(frames, columns, strict=True)]
    _write(path, instances.names, frames, None)


def _write(
    path: Path, names: Sequence[str], frames: Sequence[pd.DataFrame], like: Table | None
) -> None:
    content = table_bytes(together(names, frames), ending_of(path), like)
    if str(path) == "-":
        sys.stdout.write(content.decode())
        return
    write_whole(path, squeezed(path, content))


def picture(path: Path, solutions: Sequence[Solution]) -> None:
    """Draws the first few answers."""
    shown = solutions[:_MOST_PANELS]
    figure, axes = new_figure(len(shown), size=5.6, most_across=ceil(sqrt(len(shown))))
    for ax, solution in zip(axes, shown, strict=True):
        solution.plot(ax)
        ax.title.set_fontsize("small")
    save(figure, path)
