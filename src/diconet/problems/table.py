"""Cells of a table beside the paper's, as records for `diconet reproduce`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from diconet.problems.problem import Record

PAPER_BLOCK, PARTS_BLOCK, OURS_BLOCK = "as in the paper", "what dividing and learning do", "ours"
"""The blocks of a table."""


def cells(
    row: str,
    column: str,
    figures: Mapping[str, float | Tensor | None],
    paper: Mapping[str, float] | None = None,
    block: str = OURS_BLOCK,
) -> list[Record]:
    """One record per metric, with the paper's figure beside ours (None if the paper has none).

    A figure is a number, or one value per instance, of which the mean and its standard error are
    given. Metrics that do not apply to the row, with None as figure, are left out.
    """
    paper = {} if paper is None else paper
    head = {"block": block, "row": row, "column": column}
    return [
        {**head, "metric": metric, **_figure(ours), "paper": paper.get(metric)}
        for metric, ours in figures.items()
        if ours is not None
    ]


def standard_error(values: np.ndarray) -> float:
    """That of the mean of values; not a number if there is only one."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


def _figure(ours: float | Tensor) -> dict[str, float | None]:
    if not isinstance(ours, Tensor):
        return {"ours": ours, "error": None}
    values = ours.double()
    error = values.std().item() / len(values) ** 0.5 if len(values) > 1 else None
    return {"ours": values.mean().item(), "error": error}


def ratio_of_means(costs: Tensor, bars: Tensor) -> Tensor:
    """Values per instance whose mean is mean cost over mean bar, with that ratio's standard error.

    To first order, an instance shifts the ratio by its cost minus the ratio times its bar.
    """
    ratio, mean = costs.mean() / bars.mean(), bars.mean()
    return ratio + (costs - ratio * bars) / mean


def in_blocks(records: list[Record]) -> list[Record]:
    """The records grouped by block, each in its original order."""
    order = [PAPER_BLOCK, PARTS_BLOCK, OURS_BLOCK]
    return sorted(records, key=lambda record: order.index(record["block"]))
