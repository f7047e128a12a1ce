from __future__ import annotations

import pytest
import torch

from diconet.core.sets import SetBatch
from diconet.problems.hull.calipers import NOBODY, Edges, all_edges, caliper_edges
from diconet.problems.hull.task import hull_of
from tests.problems.hull.exact import cross, hull_edges


def two_hulls(first: int, second: int, apart: float, rng: torch.Generator) -> SetBatch:
    """The hulls of two random clouds, counter-clockwise; far apart, touching or in one another."""
    clouds = [torch.rand(n, 2, generator=rng, dtype=torch.float64) for n in (first, second)]
    clouds[1] = clouds[1] + torch.tensor([apart, 0.3 * apart])
    return SetBatch.of([cloud[torch.from_numpy(hull_of(cloud.numpy()))] for cloud in clouds])


def holds(edges: Edges, points: torch.Tensor) -> list[bool]:
    """Whether each edge has all of its own witnesses to the left."""
    return [
        all(cross(points[t], points[h], points[k]) > 0 for k in witness if k != NOBODY)
        for t, h, witness in zip(
            edges.tail.tolist(), edges.head.tolist(), edges.witness.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 2), (1, 9), (2, 30), (9, 9), (40, 30)])
@pytest.mark.parametrize("apart", [0.0, 0.7, 5.0])
def test_candidates_hold_every_edge_of_the_joint_hull_and_witnesses_no_other(
    sizes: tuple[int, int], apart: float, rng: torch.Generator
) -> None:
    for _ in range(20):
        pairs = two_hulls(*sizes, apart, rng)
        edges = caliper_edges(pairs, pairs.items)
        listed = zip(edges.tail.tolist(), edges.head.tolist(), strict=True)
        kept = {edge for edge, good in zip(listed, holds(edges, pairs.items), strict=True) if good}
        assert kept == hull_edges(pairs.items)


def test_candidates_and_witnesses_are_a_constant_number_a_corner(rng: torch.Generator) -> None:
    angle = torch.rand(400, generator=rng, dtype=torch.float64).sort().values * 2 * torch.pi
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    pairs = SetBatch.of([circle[::2], circle[1::2]])
    edges = caliper_edges(pairs, pairs.items)
    assert len(edges) <= 4 * 400
    assert edges.witness.shape[1] == 5


def test_nodes_do_not_look_at_one_another(rng: torch.Generator) -> None:
    nodes = [two_hulls(9, 12, 0.5, rng) for _ in range(3)]
    alone = [caliper_edges(node, node.items) for node in nodes]
    packed = SetBatch.of([half for node in nodes for half in node.unpack()])
    together = caliper_edges(packed, packed.items)
    expected, start = [], 0
    for node, edges in zip(nodes, alone, strict=True):
        place = torch.arange(start, start + node.num_items)
        moved = edges.among(place)
        expected += torch.cat([moved.tail[:, None], moved.head[:, None], moved.witness], 1).tolist()
        start += node.num_items
    found = torch.cat([together.tail[:, None], together.head[:, None], together.witness], 1)
    assert sorted(found.tolist()) == sorted(expected)


def test_a_polygon_without_another_keeps_its_own_edges(rng: torch.Generator) -> None:
    hull = two_hulls(20, 1, 0.0, rng).unpack()[0]
    pairs = SetBatch.of([hull, hull[:0]])
    edges = caliper_edges(pairs, pairs.items)
    own = {(i, (i + 1) % len(hull)) for i in range(len(hull))}
    assert own <= set(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))


def test_all_edges_of_small_sets_by_hand() -> None:
    """Two points have an edge each way and no witness; a lone point and an empty set have none."""
    sets = SetBatch.of([torch.zeros(1, 2), torch.zeros(0, 2), torch.zeros(2, 2), torch.zeros(3, 2)])
    edges = all_edges(sets)
    listed = list(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))
    assert listed == [(1, 2), (2, 1), (3, 4), (3, 5), (4, 3), (4, 5), (5, 3), (5, 4)]
    witnesses = [{k for k in row if k != NOBODY} for row in edges.witness.tolist()]
    assert witnesses == [set(), set(), {5}, {4}, {5}, {3}, {4}, {3}]


def test_splitting_edges_keeps_them_all(rng: torch.Generator) -> None:
    edges = all_edges(SetBatch.of([torch.rand(5, 2, generator=rng)]))
    pieces = edges.split(7)
    assert [len(piece) for piece in pieces] == [7, 7, 6]
    assert torch.cat([piece.witness for piece in pieces]).equal(edges.witness)
