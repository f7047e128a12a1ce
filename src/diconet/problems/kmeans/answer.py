"""The answer to k-means: points in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from diconet.plot.levels import planar
from diconet.plot.stages import Labels, Stage, chosen_levels, relabelled
from diconet.problems.kmeans.frame import Frame
from diconet.problems.kmeans.lloyd import Settled
from diconet.problems.progress import tell
from diconet.problems.solution import Model, Solution

if TYPE_CHECKING:
    import pandas as pd

_CHEAP = 1_000_000
"""The largest n d k for which ten starts of Lloyd's algorithm are run unasked."""


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Solution):
    """Points in k clusters, none of them empty: `labels` from 0 to k - 1 and their `centers`.

    `value` is the k-means cost, the sum of squared distances to the centres, and `reference` the
    cost that Lloyd's algorithm reaches; both weight points by their `weights`. The tree's last
    partition is the network's, before clusters were exchanged and points moved (which took `rounds`
    rounds of Lloyd's algorithm).
    """

    points: np.ndarray
    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    rounds: int

    @property
    def sizes(self) -> np.ndarray:
        """Points per cluster."""
        return np.bincount(self.labels, minlength=len(self.centers))

    def quality(self) -> str:
        """The number of clusters, and the share of the variance that they explain."""
        frame, one = Frame.of(self.points, self.weights), np.zeros(len(self.points), np.int64)
        whole = frame.apart(one, 1)
        apart = frame.apart(self.labels, len(self.centers))
        kept = 1 - apart / whole if whole > 0 else 1.0
        text = f"{len(self.centers)} clusters, {100 * kept:.1f}% of the variance explained"
        if not self._is_cheap:
            return f"{text}, {self.note()}"
        return f"{text}, cost of k-means++: {self.reference:.6g}"

    @property
    def _is_cheap(self) -> bool:
        return self.points.size * len(self.centers) <= _CHEAP

    def note(self) -> str | None:
        """Why k-means++ was not run for comparison, if so."""
        if self._is_cheap:
            return None
        return "cost of k-means++ omitted, since it would take long: use .reference"

    @cached_property
    def reference(self) -> float:
        """The cost of scikit-learn's Lloyd: the best of 10 k-means++ starts, run on demand."""
        from diconet.problems.kmeans.references import best_start

        tell("running k-means++ for comparison")
        frame = Frame.of(self.points, self.weights)
        labels = best_start(frame.x, len(self.centers), frame.weights)
        return frame.cost(labels, int(labels.max()) + 1)

    def record(self) -> dict[str, Any]:
        """Points, cost, that of k-means++ if cheap to compute, clusters and labels."""
        return {
            "points": len(self.points),
            "value": self.value,
            "k-means++": self.reference if self._is_cheap else None,
            "clusters": len(self.centers),
            "labels": self.labels.tolist(),
        }

    def item_columns(self) -> dict[str, np.ndarray]:
        return {f"x{i + 1}": column for i, column in enumerate(self.points.T)}

    def answer_columns(self) -> dict[str, Any]:
        """The cluster of every point."""
        return {"label": self.labels}

    def more_tables(self) -> dict[str, pd.DataFrame]:
        """The centres."""
        import pandas as pd

        return {"centers": pd.DataFrame(self.centers, columns=list(self.item_columns()))}

    def title(self) -> str:
        return "k-means"

    def plane(self) -> np.ndarray:
        return planar(self.points)[0]

    def answer_stage(self) -> Stage:
        return Stage("", self.labels, marks=planar(self.points, self.centers)[1])

    def stages(self, most: int = 6) -> list[Stage]:
        """The cuts from the root to the leaves, then the final clusters."""
        down = [Stage(name, parts) for name, parts in chosen_levels(self.tree, most)]
        final = relabelled(self.labels, down[-1].parts)
        return [*down, Stage("answer", final, marks=self.answer_stage().marks)]


def clusters_of(
    frame: Frame, found: Settled, k: int, tree: Sequence[Labels], model: Model
) -> Clusters:
    """The answer with these labels."""
    labels = found.labels
    # rounding must not carry a mean out of its points' range, or out of that of doubles
    inside = np.clip(frame.means(labels, k) * frame.reach + frame.mean, -1, 1)
    centers = np.clip(inside * frame.largest, frame.points.min(0), frame.points.max(0))
    cost = frame.cost(labels, k)
    if not np.isfinite(cost):
        raise ValueError(
            "points must be closer together: the cost of their clusters, in squared distances, "
            f"exceeds double precision; got points up to {frame.largest:.3g}."
        )
    return Clusters(
        cost, tree, frame.points, labels, centers, frame.given, found.rounds, model=model
    )
