from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold, grow, halves
from diconet.nets.decoder import Forced
from diconet.nets.frame import Spread
from diconet.nets.gru import encode
from diconet.nets.pointer import PointerMerge
from diconet.nets.routes import hard_matrices
from diconet.problems.hull.task import HullTask
from tests.nets.naive import naive_log_prob


def small_merge(spread: float = 3.0, **options: Any) -> PointerMerge:
    """A merge with weights so large that its choices differ from place to place."""
    torch.manual_seed(0)
    merge = PointerMerge(2, 6, **options)
    with torch.no_grad():
        for parameter in merge.parameters():
            parameter.mul_(spread)
        merge.decoder.end_key.normal_()
    return merge


def trees(num_sets: int, size: int, depth: int, rng: torch.Generator):
    sets = HullTask().sample(num_sets, size, rng=rng)
    seeds = seeds_from(rng, num_sets)
    return sets, grow(RandomSplit(), sets, Growth(depth=depth), seeds), seeds


@pytest.mark.parametrize("begin", ["first", "lowest"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_likelihood_is_the_product_of_all_matrices(
    depth: int, begin: str, rng: torch.Generator
) -> None:
    """The batched product equals dense matrices multiplied node by node."""
    merge = small_merge(patience=0.5, begin=begin)
    sets, tree, seeds = trees(6, 8, depth, rng)
    target = HullTask().oracle(sets)
    got = fold(merge, tree, target).log_prob
    for i, (items, goal) in enumerate(zip(sets.unpack(), target.unpack(), strict=True)):
        one = SetBatch.of([items])
        alone = grow(RandomSplit(), one, Growth(depth=depth), seeds[i : i + 1])
        expected = naive_log_prob(merge, alone, goal.tolist())
        assert got[i].item() == pytest.approx(expected.item(), abs=1e-4)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_gradients_are_those_of_autograd(depth: int, rng: torch.Generator) -> None:
    """Written out by hand here for a batch, by autograd in the naive version: the same to 1e-5."""
    merge = small_merge(patience=0.5).double()
    sets, _, seeds = trees(3, 9, depth, rng)
    sets = sets.with_items(sets.items.double())
    target = HullTask().oracle(sets)
    growth = Growth(depth=depth)
    got = fold(merge, grow(RandomSplit(), sets, growth, seeds), target).log_prob
    got.sum().backward()
    gradients = {name: p.grad.clone() for name, p in merge.named_parameters()}
    merge.zero_grad()
    for i, (items, goal) in enumerate(zip(sets.unpack(), target.unpack(), strict=True)):
        alone = grow(RandomSplit(), SetBatch.of([items]), growth, seeds[i : i + 1])
        expected = naive_log_prob(merge, alone, goal.tolist())
        expected.backward()
        assert got[i].item() == pytest.approx(expected.item(), abs=1e-5)
    for name, parameter in merge.named_parameters():
        scale = float(parameter.grad.abs().max())
        assert torch.allclose(gradients[name], parameter.grad, atol=1e-5 * max(scale, 1)), name


def test_gradients_of_every_input_by_finite_differences(rng: torch.Generator) -> None:
    """Encoder and decoder on sequences of unequal lengths, one of them empty."""
    merge = small_merge().double()
    sizes = torch.tensor([3, 2, 0, 0, 1, 4])
    sets = SetBatch.pack(torch.rand(10, 2, generator=rng).double(), sizes)
    forced = torch.tensor([[4, 0, 2, -1], [-1, -1, -1, -1], [1, -1, -1, -1]])
    weights = list(merge.parameters())

    def answer(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        memory = merge._encode(sets)
        points = memory.items.points[:, :4]
        own = merge.decoder(memory.states, memory.start, memory.items, patience=0.5)
        lengths = torch.tensor([3, 0, 2])
        told = merge.decoder(
            memory.states, memory.start, memory.items, forced=Forced(points, forced, lengths)
        )
        return own.prob, own.log_end, told.prob, told.log_end

    assert torch.autograd.gradcheck(answer, weights, atol=1e-4, rtol=1e-3, fast_mode=True)


def test_the_likelihood_sums_to_one_over_all_answers(rng: torch.Generator) -> None:
    """One leaf of three points: all sequences that may be answered have probability 1 together."""
    merge = small_merge(epsilon=1e-12)
    sets = HullTask().sample(1, 3, rng=rng)
    tree = grow(RandomSplit(), sets, Growth(depth=0))
    total = 0.0
    for length in (1, 2, 3):
        for places in itertools.permutations(range(3), length):
            total += _prob_of_order(merge, tree, list(places))
    assert total == pytest.approx(1.0, abs=1e-5)


def _prob_of_order(merge: PointerMerge, tree, places: list[int]) -> float:
    """p of exactly this order: `fold` turns a cycle to its first item, so hand it over turned."""
    pairs, _ = halves(tree.levels[0], None)
    memory = merge._encode(pairs)
    rows = torch.tensor([[*places, -1]])
    told = Forced(memory.items.points[:, rows[0]], rows, torch.tensor([len(places)]))
    pointing = merge.decoder(memory.states, memory.start, memory.items, forced=told)
    hit = pointing.prob[0, torch.arange(len(places)), rows[0, :-1]]
    return (hit.log().sum() + pointing.log_end[0]).exp().item()


def test_gradient_of_the_product_reaches_the_leaves(rng: torch.Generator) -> None:
    """Against finite differences in double precision, through two levels of own choices."""
    merge = small_merge(patience=0.5).double()
    sets, _, seeds = trees(2, 7, 2, rng)
    sets = sets.with_items(sets.items.double())
    tree = grow(RandomSplit(), sets, Growth(depth=2), seeds)
    target = HullTask().oracle(sets)
    parameter = merge.encoder.weight_hh_l0
    fold(merge, tree, target).log_prob.sum().backward()
    for place in [(0, 0), (3, 2), (11, 5), (17, 1)]:
        gradient = parameter.grad[place].item()
        values = []
        for shift in (1e-6, -1e-6):
            with torch.no_grad():
                parameter[place] += shift
                values.append(fold(merge, tree, target).log_prob.sum().item())
                parameter[place] -= shift
        assert gradient == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_binarised_levels_send_no_gradient_and_keep_the_floor(rng: torch.Generator) -> None:
    nodes = SetBatch.pack(torch.zeros(3, 2), torch.tensor([2, 1]))
    hard = hard_matrices(torch.tensor([[1, 0], [0, -2]]), nodes, 2, floor=0.01)
    assert hard.flatten().tolist() == pytest.approx([0.01, 0.98, 0.98, 0.01, 0.99, 0, 0, 0])
    crowd = SetBatch.pack(torch.zeros(100, 2), torch.tensor([100]))
    hard = hard_matrices(torch.tensor([[7]]), crowd, 100, floor=0.03)
    assert hard.argmax() == 7
    assert hard.min() > 0
    assert hard.sum() <= 1

    sets, tree, _ = trees(4, 9, 1, rng)
    target = HullTask().oracle(sets)
    soft = fold(small_merge(patience=0.5), tree, target).log_prob
    hard_log_prob = fold(small_merge(patience=0.5, binarise=True), tree, target).log_prob
    assert torch.isfinite(hard_log_prob).all()
    assert not torch.allclose(soft, hard_log_prob)


@pytest.mark.parametrize("patience", [0.1, 0.85])
def test_answers_never_repeat_an_item(patience: float, rng: torch.Generator) -> None:
    merge = small_merge(patience=patience)
    sizes = torch.randint(0, 15, (200,), generator=rng)
    sets = SetBatch.pack(torch.rand(int(sizes.sum()), 2, generator=rng), sizes)
    tree = grow(RandomSplit(), sets, Growth(depth=3), seeds_from(rng, 200))
    answer = fold(merge, tree).solution
    for places, size in zip(answer.unpack(), sizes.tolist(), strict=True):
        assert len(set(places.tolist())) == len(places)
        assert all(0 <= p < size for p in places.tolist())
        assert (len(places) > 0) == (size > 0)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_set_gets_the_same_answer_alone_and_in_a_batch(depth: int, rng: torch.Generator) -> None:
    merge = small_merge()
    sizes = torch.randint(2, 15, (20,), generator=rng)
    sets = SetBatch.pack(torch.rand(int(sizes.sum()), 2, generator=rng), sizes)
    seeds = seeds_from(rng, 20)
    target = HullTask().oracle(sets)
    tree = grow(RandomSplit(), sets, Growth(depth=depth), seeds)
    together, log_prob = fold(merge, tree).solution.unpack(), fold(merge, tree, target).log_prob
    for i, items in enumerate(sets.unpack()):
        one = SetBatch.of([items])
        alone = grow(RandomSplit(), one, Growth(depth=depth), seeds[i : i + 1])
        assert torch.equal(fold(merge, alone).solution.places, together[i])
        goal = Sequences.of([target.unpack()[i]])
        assert torch.allclose(fold(merge, alone, goal).log_prob, log_prob[i], atol=1e-4)


def test_points_in_double_precision_are_welcome(rng: torch.Generator) -> None:
    merge = small_merge()
    sets, tree, seeds = trees(6, 12, 1, rng)
    fine = sets.with_items(sets.items.double())
    same = grow(RandomSplit(), fine, Growth(depth=1), seeds)
    target = HullTask().oracle(sets)
    assert torch.equal(fold(merge, tree).solution.places, fold(merge, same).solution.places)
    expected = fold(merge, tree, target).log_prob
    assert torch.allclose(fold(merge, same, target).log_prob.float(), expected, atol=1e-3)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_batch_of_no_sets_has_no_answers(depth: int) -> None:
    nothing = SetBatch.pack(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    tree = grow(RandomSplit(), nothing, Growth(depth=depth))
    assert len(fold(small_merge(), tree).sets) == 0


def test_encoding_is_that_of_a_gru(rng: torch.Generator) -> None:
    """Sequences of any lengths, some of them empty, against torch's own unit one by one."""
    torch.manual_seed(0)
    gru = torch.nn.GRU(2, 5)
    sizes = torch.tensor([3, 0, 7, 1, 7])
    items = torch.randn(18, 2, generator=rng)
    states, last, rows = encode(gru, items, sizes)
    assert torch.equal(last[1], torch.zeros(5))
    for i, sequence in enumerate(items.split(sizes.tolist())):
        if len(sequence):
            expected = gru(sequence[:, None])[0][:, 0]
            here = rows.split(sizes.tolist())[i]
            assert torch.allclose(states[here], expected, atol=1e-6)
            assert torch.allclose(last[i], expected[-1], atol=1e-6)


@pytest.mark.parametrize("per_feature", [False, True])
def test_with_a_spread_per_feature_a_stretched_set_looks_the_same(
    per_feature: bool, rng: torch.Generator
) -> None:
    merge = small_merge(frame=Spread(per_feature))
    sets, tree, seeds = trees(4, 12, 2, rng)
    wide = sets.with_items(sets.items * torch.tensor([1.0, 8.0]))
    stretched = grow(RandomSplit(), wide, Growth(depth=2), seeds)
    target = HullTask().oracle(sets)
    before = fold(merge, tree, target).log_prob
    assert torch.allclose(fold(merge, stretched, target).log_prob, before, atol=1e-3) == per_feature


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"patience must be above 0 and at most 1; got 0\.0\."):
        PointerMerge(2, 4, patience=0.0)
    PointerMerge(2, 4, patience=1.0)
