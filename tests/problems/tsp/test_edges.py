"""The merge over near neighbours."""

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.host import to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth
from diconet.nets.axes import AcrossSplit
from diconet.nets.near import NearGraph, edge_features
from diconet.problems.tsp.edges import (
    EdgeMerge,
    EdgeSignal,
    LengthMerge,
    at_roots,
    log_likelihood,
    scored_once,
)
from tests.made_up_device import MadeUpDevice


def network(leaf_size: int = 1_000, **options: int) -> DiCoNet:
    torch.manual_seed(0)
    merge = EdgeMerge(EdgeMerge.fresh(width=8, num_layers=2).net, slots=5, **options)
    return DiCoNet(AcrossSplit(), merge, Growth(leaf_size=leaf_size)).eval()


def table(signal: EdgeSignal) -> np.ndarray:
    """The scores of all pairs of the only set, -inf where there is no edge."""
    (edges, scores) = signal.candidates()[0]
    size = signal.roots.num_items
    out = np.full((size, size), -np.inf)
    out[edges[:, 0], edges[:, 1]] = out[edges[:, 1], edges[:, 0]] = scores
    return out


def cities(*sizes: int, seed: int = 0) -> SetBatch:
    rng = torch.Generator().manual_seed(seed)
    return SetBatch.of([torch.rand(size, 2, generator=rng) for size in sizes])


def test_neighbours_are_the_nearest_of_the_same_set() -> None:
    sets = cities(30, 1, 4, 50)
    graph = NearGraph.of(sets, 6)
    for row in range(sets.num_items):
        gap = (sets.items - sets.items[row]).norm(dim=1)
        gap[sets.owner != sets.owner[row]] = torch.inf
        gap[row] = torch.inf
        expected = gap.argsort(stable=True)[:6]
        expected = expected[~torch.isinf(gap[expected])]
        assert graph.neighbour[row][graph.present[row]].tolist() == expected.tolist()
        assert (graph.neighbour[row][~graph.present[row]] == row).all()


def test_the_way_back_is_found_where_there_is_one() -> None:
    graph = NearGraph.of(cities(40), 4)
    back = graph.reverse
    rows = torch.arange(40)[:, None].expand(-1, 4)
    there = graph.neighbour
    mutual = graph.mutual
    assert (there.flatten()[back][mutual] == rows[mutual]).all()
    for i, slot in (~mutual).nonzero().tolist():
        assert i not in graph.neighbour[there[i, slot]].tolist()


def test_features_do_not_change_with_place_and_scale() -> None:
    sets = cities(30)
    graph = NearGraph.of(sets, 5)
    moved = 64 * sets.items + 3
    assert torch.allclose(edge_features(sets.items, graph), edge_features(moved, graph), atol=1e-3)


def test_blockers_by_hand() -> None:
    # City 2 lies between 0 and 1 (in circle and lune), city 3 in neither, seen from city 0.
    points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 0.1], [-1.5, 0.0]])
    graph = NearGraph.of(SetBatch.of([points]), 3)
    assert graph.neighbour[0].tolist() == [2, 3, 1]
    features = edge_features(points, graph)
    in_circle, empty_circle, in_lune, empty_lune = features[0, :, 9:13].T
    assert (4 * in_circle).tolist() == [0, 0, 1]
    assert (4 * in_lune).tolist() == [0, 0, 1]
    assert empty_circle.tolist() == empty_lune.tolist() == [1, 1, 0]


@pytest.mark.parametrize("leaf_size", [1_000, 12])
def test_renaming_cities_renames_the_signal(leaf_size: int) -> None:
    sets = cities(60)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(3))
    model = network(leaf_size)
    with torch.no_grad():
        plain = table(model(sets).answer)
        renamed = table(model(SetBatch.of([sets.items[order]])).answer)
    np.testing.assert_allclose(renamed, plain[np.ix_(order, order)], atol=1e-4)


@pytest.mark.parametrize("leaf_size", [1_000, 12])
def test_a_set_gets_the_same_signal_alone_or_in_a_batch(leaf_size: int) -> None:
    batch = cities(60, 7, 35)
    model = network(leaf_size)
    with torch.no_grad():
        together = model(batch).answer.candidates()
        for number, items in enumerate(batch.unpack()):
            (alone,) = model(SetBatch.of([items])).answer.candidates()
            assert np.array_equal(alone[0], together[number][0])
            np.testing.assert_allclose(alone[1], together[number][1], atol=1e-4)


def test_groups_change_nothing_but_memory() -> None:
    batch = cities(60, 7, 35)
    whole, grouped = network(20), network(20, chunk=10)
    grouped.load_state_dict(whole.state_dict())
    with torch.no_grad():
        a, b = whole(batch).answer, grouped(batch).answer
    assert torch.allclose(a.logits, b.logits, atol=1e-5)


def test_a_merge_looks_again_only_near_the_cut() -> None:
    """Two far clusters: the cut damages nobody, so the leaves' scores stand as they are."""
    one = torch.rand(20, 2, generator=torch.Generator().manual_seed(0))
    items = torch.cat([one, one + torch.tensor([100.0, 0.0])])
    sets = SetBatch.of([items])
    model = network(20)
    with torch.no_grad():
        whole = model(sets)
        (left, _) = (model(SetBatch.of([half])).answer for half in items.split(20))
    assert whole.tree.depth == 1
    assert torch.equal(whole.answer.logits[:20], left.logits)


def test_the_root_has_every_edge_that_a_flat_graph_has() -> None:
    sets = cities(200)
    with torch.no_grad():
        cut, flat = network(30)(sets).answer, network()(sets).answer
    assert torch.equal(cut.graph.neighbour, flat.graph.neighbour)
    assert bool((cut.logits != 0).all())


def test_likelihood_by_hand() -> None:
    """A square: sides have score 2, diagonals -1; per city -2 log(1 + e^-2) - log(1 + e^-1)."""
    square = SetBatch.of([torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])])
    graph = NearGraph.of(square, 3)
    diagonal = (graph.neighbour - torch.arange(4)[:, None]).abs() == 2
    signal = EdgeSignal(square, graph, torch.where(diagonal, -1.0, 2.0))
    tour = Sequences.of([torch.tensor([0, 1, 2, 3])])
    expected = -2 * np.log1p(np.exp(-2)) - np.log1p(np.exp(-1))
    assert log_likelihood(signal, tour).item() == pytest.approx(expected, abs=1e-6)


def test_gradients_reach_the_network_through_both_levels() -> None:
    sets = cities(40)
    model = network(20).train()
    tour = Sequences.of([torch.arange(40)])
    model(sets, None, tour).log_prob.sum().backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_gradient_of_the_way_back_is_right() -> None:
    """The hand-written gradient of the network against finite differences."""
    sets = cities(8)
    graph = NearGraph.of(sets, 3)
    net = EdgeMerge.fresh(width=4, num_layers=1).net.double()
    features = torch.randn(8, 3, 17, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: net(graph, x), (features,), atol=1e-6)


def test_the_control_scores_by_length_alone() -> None:
    sets = cities(30)
    signal = DiCoNet(AcrossSplit(), LengthMerge(slots=5), depth=1)(sets).answer
    length = (sets.items[signal.graph.neighbour] - sets.items[:, None]).norm(dim=2)
    ratio = signal.logits / length
    assert torch.allclose(ratio, ratio[0, 0].expand_as(ratio), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_few_or_equal_cities_do_no_harm(size: int) -> None:
    sets = SetBatch.of([torch.zeros(size, 2), torch.rand(size, 2)])
    with torch.no_grad():
        answer = network(4)(sets).answer
    assert bool(torch.isfinite(answer.logits).all())
    assert [sorted(tour.tolist()) for tour in answer.solution.unpack()] == [list(range(size))] * 2


def test_cities_may_lie_on_another_device() -> None:
    sets = cities(30, 1, 12)
    graph = NearGraph.of(sets, 4)
    with MadeUpDevice() as device:
        there = sets.to(device)
        same = NearGraph.of(there, 4)
        logits = torch.zeros(same.neighbour.shape, device=device)
        edge_features(there.items[:9], same.within(there.index[:9]))
        signal = at_roots(there, there, same, logits)
        signal.candidates()
        log_likelihood(signal, Sequences(there.position, there.sizes))
        reverse = to_host(same.reverse)
    assert reverse.tolist() == graph.reverse.tolist()


def test_leaf_by_leaf_the_network_says_the_same_as_at_once() -> None:
    """Cities around a leaf are looked at with it, so a shallow network hardly sees a cut."""
    torch.manual_seed(0)
    merge = EdgeMerge.fresh(8, 1)
    sets = SetBatch.of([torch.rand(300, 2, generator=torch.Generator().manual_seed(1))])
    with torch.no_grad():
        whole = scored_once(merge, sets, leaf_size=300)
        parts = scored_once(merge, sets, leaf_size=40)
        plain = DiCoNet(AcrossSplit(), merge, depth=0)(sets).answer
    assert torch.allclose(whole.logits, plain.logits, atol=1e-5)
    assert torch.allclose(whole.logits, parts.logits, atol=2e-3)
    (likely,) = plain.likely(2)
    best = plain.logits.argmax(1)
    assert (likely[:, 0] == plain.graph.neighbour[torch.arange(300), best].numpy()).all()
