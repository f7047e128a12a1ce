"""A judge that was told what the networks have to learn, and hulls found the slow way."""

from __future__ import annotations

import torch

from diconet.problems.hull.triples import TripleJudge, TripleMerge


def exact_judge(**options: float) -> TripleJudge:
    """Against an edge counts a witness to its right: minus the cross products of the directions."""
    judge = TripleJudge(1, **options)
    to_the_right = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # [witness coordinate, edge coordinate]
    with torch.no_grad():
        judge.forms.copy_(torch.cat([to_the_right, to_the_right])[:, :, None])
    return judge


def exact_merge(**options: float) -> TripleMerge:
    return TripleMerge(exact_judge(), **options)


def hull_edges(points: torch.Tensor) -> set[tuple[int, int]]:
    """All (i, j) with every other point strictly to the left."""
    found = set()
    for i in range(len(points)):
        for j in range(len(points)):
            others = [k for k in range(len(points)) if k not in (i, j)]
            if i != j and all(cross(points[i], points[j], points[k]) > 0 for k in others):
                found.add((i, j))
    return found


def cross(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
