"""A signal that nobody learned: short edges are good edges."""

from __future__ import annotations

from dataclasses import replace

import torch

from diconet.core.answers import Sequences
from diconet.core.model import Part
from diconet.core.tree import Level
from diconet.nets.near import NearGraph
from diconet.problems.tsp.edges import EdgeSignal, at_roots, log_likelihood


class LengthMerge(Part):
    """Scores every edge by minus its length, in units of the mean distance to near neighbours.

    The control for what learning buys: everything after it is the same. The factor `scale` sets
    how much the noise of a decoder weighs against it.
    """

    def __init__(self, slots: int = 8, scale: float = 7.0) -> None:
        super().__init__()
        self.slots = slots
        self.scale = scale

    def forward(
        self, level: Level, below: EdgeSignal | None, target: Sequences | None
    ) -> EdgeSignal | None:
        if level.number:
            return None  # the root alone sees every edge
        sets = level.sets
        graph = NearGraph.of(sets, self.slots)
        length = torch.linalg.vector_norm(sets.items[graph.neighbour] - sets.items[:, None], dim=2)
        near = length[:, :5].mean(1)
        unit = sets.mean(near)[sets.owner].clamp(min=torch.finfo(near.dtype).tiny)
        logits = -self.scale * length / unit[:, None]
        answer = at_roots(level.roots, sets, graph, logits)
        return (
            answer if target is None else replace(answer, log_prob=log_likelihood(answer, target))
        )
