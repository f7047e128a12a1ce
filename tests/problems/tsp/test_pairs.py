"""The paper's networks over all pairs of cities."""

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.nets.pair_net import PairNet, Pairs
from diconet.problems.networks import shipped
from diconet.problems.tsp.pairs import (
    MERGE_EDGE_INPUTS,
    MERGE_NODE_INPUTS,
    NODE_INPUTS,
    SURE,
    PairMerge,
    PairSignal,
    PairSplit,
    handed_up,
    merge_inputs,
)
from diconet.problems.tsp.task import TspTask
from tests.made_up_device import MadeUpDevice
from tests.problems.tsp.search.test_search import edges_of


def net(edge_inputs: int = 1) -> PairNet:
    return PairNet(NODE_INPUTS, edge_inputs, width=6, num_layers=2)


def merge_net() -> PairNet:
    return PairNet(MERGE_NODE_INPUTS, MERGE_EDGE_INPUTS, width=6, num_layers=2)


def reference() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(PairSplit(net()), PairMerge(net()), depth=0)


def paper() -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(PairSplit(net()), PairMerge(net(), merge_net()), depth=1)


def cities(*sizes: int) -> SetBatch:
    rng = torch.Generator().manual_seed(0)
    return SetBatch.of([torch.rand(size, 2, generator=rng) for size in sizes])


def test_pairs_are_numbered_as_they_lie() -> None:
    pairs = Pairs.of(cities(4, 1, 3))
    assert list(zip(pairs.one.tolist(), pairs.other.tolist(), strict=True)) == [
        *[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
        *[(5, 6), (5, 7), (6, 7)],
    ]
    assert torch.equal(pairs.number(pairs.other, pairs.one), torch.arange(9))


def test_each_city_spreads_probability_one_over_the_others() -> None:
    with torch.no_grad():
        signal = reference()(cities(7, 2, 5)).answer
    for _, scores in signal.rows():
        assert np.allclose(np.exp(scores).sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("model", [reference(), paper()])
def test_renaming_cities_renames_the_signal(model: DiCoNet) -> None:
    sets = cities(9)
    order = torch.tensor([4, 0, 8, 2, 6, 1, 3, 7, 5])
    with torch.no_grad():
        plain = model(sets).answer
        renamed = model(SetBatch.of([sets.items[order]])).answer
    both = plain.pairs.number(order[renamed.pairs.one], order[renamed.pairs.other])
    assert torch.allclose(renamed.logits, plain.logits[both], atol=1e-4)


def test_a_set_gets_the_same_signal_alone_or_in_a_batch() -> None:
    batch = cities(9, 4, 12)
    model = paper()
    seeds = torch.tensor([5, 6, 7])
    with torch.no_grad():
        together = model(batch, seeds).answer.logits.split([36, 6, 66])
        for number, items in enumerate(batch.unpack()):
            alone = model(SetBatch.of([items]), seeds[number : number + 1]).answer.logits
            assert torch.allclose(alone, together[number], atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_a_deep_split_sends_cities_to_both_sides_from_the_start(seed: int) -> None:
    """What cities have in common grows with depth; without care all of them end on one side."""
    torch.manual_seed(seed)
    split = PairSplit(PairNet(NODE_INPUTS, 1, width=20, num_layers=20))
    sets = cities(20, 30, 40)
    with torch.no_grad():
        likelier = split(sets, None)
    share = sets.mean(likelier.side.float()[:, None]).squeeze(1)
    assert share.min() > 0.1
    assert share.max() < 0.9
    assert likelier.prob.std() > 0.01


def test_the_shipped_network_cuts_its_sets_in_two() -> None:
    sets = cities(20, 40, 80)
    with torch.no_grad():
        likelier = shipped("tsp_paper").split(sets, None)
    share = sets.mean(likelier.side.float()[:, None]).squeeze(1)
    assert share.min() > 0.2
    assert share.max() < 0.8


def test_the_merge_hears_what_the_leaves_said() -> None:
    """Cities 0, 2 | 1, 3 were apart: only the pairs 0-2 and 1-3 were seen below."""
    sets = cities(4)
    child = SetBatch(
        sets.items[[0, 2, 1, 3]],
        torch.tensor([2, 2]),
        sets.context.repeat(2, 1),
        torch.tensor([0, 2, 1, 3]),
    )
    below = PairSignal(Pairs.of(child), torch.tensor([1.0, 2.0]))
    prior, known = handed_up(Pairs.of(sets), below)
    assert known.tolist() == [0, 1, 0, 0, 1, 0]
    assert prior.tolist() == pytest.approx([0] * 6, abs=1e-6)  # a lone pair is certain


def test_within_a_leaf_the_merge_knows_what_the_leaf_said_and_nothing_else() -> None:
    """Pairs of a leaf show no length, pairs across the cut no signal; larger sets look alike."""
    sets = cities(6)
    child = SetBatch(sets.items, torch.tensor([3, 3]), sets.context.repeat(2, 1), torch.arange(6))
    pairs = Pairs.of(sets)
    below = PairSignal(Pairs.of(child), torch.randn(6, generator=torch.Generator().manual_seed(1)))
    nodes, edges, weight = merge_inputs(pairs, below)
    together = (pairs.one < 3) == (pairs.other < 3)
    assert (edges[together][:, :3] == 0).all()
    assert (edges[~together][:, 3:] == 0).all()
    assert (weight > 0).all()
    wider = Pairs.of(sets.with_items(7 * sets.items))
    for mine, scaled in zip((nodes, edges, weight), merge_inputs(wider, below), strict=True):
        assert torch.allclose(mine, scaled, atol=1e-5)


def test_made_choices_are_the_edges_of_the_tours() -> None:
    """However unsure the scores are; one city has no edge, two have one, three have all."""
    sets = cities(1, 7, 2, 3)
    pairs = Pairs.of(sets)
    scores = torch.randn(len(pairs.one), generator=torch.Generator().manual_seed(2)) / 100
    signal = PairSignal(pairs, scores)
    sure = torch.stack([pairs.one, pairs.other], 1)[signal.decided().logits > 0].tolist()
    wanted = set()
    for tour, start in zip(signal.solution.unpack(), sets.offsets.tolist(), strict=False):
        wanted |= {edge for edge in edges_of(start + tour.numpy()) if len(edge) == 2}
    assert {frozenset(edge) for edge in sure} == wanted
    assert len(sure) == 7 + 1 + 3
    assert set(signal.decided().logits.tolist()) == {0.0, SURE}


@pytest.mark.parametrize("binarise", [True, False])
def test_a_merge_of_made_choices_knows_only_the_tours_of_its_parts(binarise: bool) -> None:
    """Twice the scores of the leaves, the same tours: the same answer, which soft scores change."""
    torch.manual_seed(0)
    merge = PairMerge(net(), merge_net(), binarise)
    model = DiCoNet(PairSplit(net()), merge, depth=1)
    sets = cities(12)
    with torch.no_grad():
        before = model(sets).answer.logits
        merge.leaf_head.weight *= 2
        merge.leaf_head.bias *= 2
        after = model(sets).answer.logits
    assert torch.equal(before, after) == binarise


def test_a_split_sees_parts_of_any_size_at_one_scale() -> None:
    sets = cities(20)
    split = PairSplit(net())
    with torch.no_grad():
        near, far = (split(sets.with_items(scale * sets.items), None) for scale in (0.1, 7.0))
    assert torch.allclose(near.prob, far.prob, atol=1e-4)


def test_likelihood_by_hand() -> None:
    """Three cities, equal scores: each of the two neighbours has probability 1/2, for each city."""
    signal = PairSignal(Pairs.of(cities(3)), torch.zeros(3))
    from diconet.problems.tsp.pairs import log_likelihood

    tour = Sequences.of([torch.tensor([0, 2, 1])])
    assert log_likelihood(signal, tour).item() == pytest.approx(2 * np.log(0.5))


def test_an_exact_signal_gives_the_optimal_tour() -> None:
    sets = cities(12, 9)
    best = TspTask().oracle(sets)
    pairs = Pairs.of(sets)
    logits = torch.full((len(pairs.one),), -9.0)
    for tour, start in zip(best.unpack(), sets.offsets.tolist(), strict=False):
        logits[pairs.number(start + tour, start + tour.roll(1))] = 0.0
    found = PairSignal(pairs, logits).solution
    for a, b in zip(found.unpack(), best.unpack(), strict=True):
        assert edges_of(a.numpy()) == edges_of(b.numpy())


def test_the_leaves_stay_as_they_came_and_the_rest_learns() -> None:
    model = paper()
    sets = cities(10, 10)
    outcome = model(sets, torch.tensor([1, 2]), TspTask().oracle(sets))
    (outcome.log_prob.sum() + outcome.tree.log_prob.sum()).backward()
    trained = {name.split(".")[1] for name, p in model.named_parameters() if p.grad is not None}
    assert trained == {"net", "head", "merge", "merge_head"}
    assert not any(p.requires_grad for p in model.merge.leaf.parameters())


def test_a_reference_cannot_merge() -> None:
    model = DiCoNet(PairSplit(net()), PairMerge(net()), depth=1)
    with pytest.raises(ValueError, match="a tree with cuts needs a merge network; got none"):
        model(cities(8))


def test_every_pair_is_a_candidate() -> None:
    sets = cities(3, 1, 2)
    scores = torch.tensor([1.0, 2.0, 3.0, 4.0])
    found = PairSignal(Pairs.of(sets), scores).candidates()
    edges = [some.tolist() for some, _ in found]
    assert edges == [[[0, 1], [0, 2], [1, 2]], [], [[0, 1]]]
    assert [mine.tolist() for _, mine in found] == [[1, 2, 3], [], [4]]


def test_pairs_may_lie_on_another_device() -> None:
    sets = cities(4, 5)
    with MadeUpDevice() as device:
        signal = PairSignal(Pairs.of(sets.to(device)), torch.zeros(16, device=device))
        assert len(signal.candidates()) == len(list(signal.rows())) == 2
        handed_up(signal.pairs, signal)
