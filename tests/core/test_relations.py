"""Relations stay with their items, however sets are taken, cut, chosen from or put together."""

from __future__ import annotations

import pytest
import torch

from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, children, grow


def _named(sets: SetBatch) -> set[tuple[float, float, float]]:
    """Each edge as the features of both ends and its own: the same wherever the items lie."""
    assert sets.relations is not None
    source, target = sets.relations.rows(sets.offsets)
    assert torch.equal(sets.owner[source], sets.relations.owner)
    assert torch.equal(sets.owner[target], sets.relations.owner)
    ends = (sets.items[source, 0], sets.items[target, 0], sets.relations.features[:, 0])
    return set(zip(*(end.tolist() for end in ends), strict=True))


def _batch() -> SetBatch:
    """Items named 0 to 8; edge features name both ends."""
    edges = [torch.tensor([[0, 1], [1, 2], [0, 3]]), torch.tensor([[4, 0], [2, 3]])]
    features = [torch.tensor([[1.0], [12.0], [3.0]]), torch.tensor([[84.0], [67.0]])]
    relations = Relations.of(edges, features)
    names = torch.arange(9.0)[:, None]
    return SetBatch.of([names[:4], names[4:]], relations=relations)


def test_pairs_stand_for_both_directions():
    assert _named(_batch()) == {
        (0, 1, 1), (1, 0, 1), (1, 2, 12), (2, 1, 12), (0, 3, 3), (3, 0, 3),
        (8, 4, 84), (4, 8, 84), (6, 7, 67), (7, 6, 67),
    }  # fmt: skip


def test_sets_are_taken_with_their_edges():
    taken = _batch().take(torch.tensor([1, 0, 1]))
    assert taken.relations.sizes.tolist() == [4, 6, 4]
    assert _named(taken) == _named(_batch())
    assert _named(_batch().repeat(2)) == _named(_batch())


def test_children_keep_the_edges_within_them():
    sets = _batch()
    side = torch.tensor([0, 0, 1, 1, 0, 1, 1, 1, 0]).bool()
    parts = children(sets, Cut(side, torch.zeros(2)))
    assert _named(parts) == {(0, 1, 1), (1, 0, 1), (8, 4, 84), (4, 8, 84), (6, 7, 67), (7, 6, 67)}
    assert parts.relations.sizes.tolist() == [2, 0, 2, 2]


def test_a_choice_of_items_keeps_the_edges_among_them():
    chosen = _batch().select(torch.tensor([2, 1, 0, 7]), torch.tensor([3, 1]))
    assert _named(chosen) == {(0, 1, 1), (1, 0, 1), (1, 2, 12), (2, 1, 12)}


def test_batches_are_put_together_with_their_edges():
    both = SetBatch.cat([_batch(), _batch()])
    assert both.relations.sizes.tolist() == [6, 4, 6, 4]
    assert _named(both) == _named(_batch())


def test_every_level_of_a_tree_holds_the_edges_within_its_nodes():
    def split(sets, seeds):
        return Cut(sets.position % 2 == 1, torch.zeros(len(sets)))

    tree = grow(split, _batch(), Growth(depth=2))
    for level in tree.levels:
        node = tree.nodes_at(level.number)
        within = {edge for edge in _named(_batch()) if node[int(edge[0])] == node[int(edge[1])]}
        assert _named(level.sets) == within


def test_a_matrix_says_which_items_are_joined():
    joined = torch.zeros(1, 3, 3, dtype=torch.bool)
    joined[0, 0, 2] = joined[0, 2, 0] = True
    relations = Relations.where(joined)
    assert relations.symmetric
    assert relations.source.tolist() == [0, 2]
    joined[0, 1, 0] = True
    assert not Relations.where(joined).symmetric


def test_an_edge_to_nowhere_is_refused():
    with pytest.raises(ValueError, match="source must be positions within a set of 2 items; got 2"):
        SetBatch.of([torch.zeros(2, 1)], relations=Relations.of([torch.tensor([[0, 2]])]))
    SetBatch.of([torch.zeros(3, 1)], relations=Relations.of([torch.tensor([[0, 2]])]))
