"""Cells of a table beside the paper's, as the records that `diconet reproduce` prints."""

from __future__ import annotations

from collections.abc import Mapping

from diconet.problems.problem import Record


def cells(
    row: str,
    column: str,
    figures: Mapping[str, float | None],
    paper: Mapping[str, float] | None = None,
) -> list[Record]:
    """One record per metric, ours beside the paper's figure (None where the paper has none).

    A metric that does not apply to the row, whose figure is None, is left out.
    """
    paper = {} if paper is None else paper
    return [
        {"row": row, "column": column, "metric": metric, "ours": ours, "paper": paper.get(metric)}
        for metric, ours in figures.items()
        if ours is not None
    ]
