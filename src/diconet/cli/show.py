"""Records as tables for people, or as JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from diconet.core.files import json_line
from diconet.problems.problem import Record


def show(records: list[Record], as_json: bool, title: str, *, stderr: bool = False) -> None:
    """Prints flat records as JSON, or as a table with one column per field."""
    if as_json:
        print(json_text(records))
        return
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    fields = list(dict.fromkeys(name for record in records for name in record))
    for name in fields:
        numeric = any(isinstance(record.get(name), int | float) for record in records)
        table.add_column(name, justify="right" if numeric else "left")
    for record in records:
        table.add_row(*(cell(record.get(name)) for name in fields))
    console(stderr).print(table)


def json_text(records: list[Record]) -> str:
    """Flat records as one JSON list."""
    return f"[{', '.join(map(json_line, records))}]"


def show_beside_paper(records: list[Record], title: str) -> None:
    """Prints one table per metric, in blocks, with standard errors and the paper's in brackets."""
    from rich.table import Table

    for metric in dict.fromkeys(record["metric"] for record in records):
        some = [r for r in records if r["metric"] == metric]
        cells = {(r.get("block", ""), r["row"], r["column"]): r for r in some}
        table = Table(title=f"{title}: {metric}, ours (paper)", title_justify="left")
        table.add_column("")
        columns = dict.fromkeys(column for *_, column in cells)
        for column in columns:
            table.add_column(column, justify="right")
        for block in dict.fromkeys(block for block, *_ in cells):
            if block:
                table.add_section()
                table.add_row(f"[bold]{block}[/bold]")
            for row in dict.fromkeys(row for of, row, _ in cells if of == block):
                values = (_beside(cells.get((block, row, column))) for column in columns)
                table.add_row(row, *values)
        console().print(table)


def _beside(record: Record | None) -> str:
    if record is None:
        return ""
    error = record.get("error")
    around = "" if error is None else f" ± {cell(float(f'{error:.1g}'))}"
    paper = "" if record["paper"] is None else f" ({cell(record['paper'])})"
    return cell(record["ours"]) + around + paper


def cell(value: Any) -> str:
    """A value as shown in a table; the first few of a list."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        few = " ".join(map(str, value[:8]))
        return few if len(value) <= 8 else f"{few} ... ({len(value)})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def console(stderr: bool = False) -> Any:
    """The console that tables are printed to."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Keep a table's full width when piped, instead of truncating it to 80 columns.
    width = None if stream.isatty() else 160
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Shows what is going on, on the terminal only, once it has taken a second."""
    if not sys.stderr.isatty():
        yield
        return
    from diconet.problems.progress import listening

    status = console(stderr=True).status(what)
    timer = Timer(1.0, status.start)
    timer.daemon = True
    timer.start()
    try:
        with listening(lambda stage: status.update(f"{what} {stage}")):
            yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
