"""Merges of learned forms and rules: their likelihoods against enumeration of every answer."""

from __future__ import annotations

from itertools import chain, combinations, permutations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diconet.core.answers import Sequences
from diconet.core.noise import mix, seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, fold, grow
from diconet.nets.closest import ClosestMerge, DominanceMerge
from diconet.nets.forms import ComparedMerge, DescentMerge, DescentSplit, Forms
from diconet.nets.line_split import LineSplit
from diconet.nets.rules import RuleMerge


class InTurn(nn.Module):
    """The first items of every set on the first side, one more than half of them."""

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        side = sets.position >= (sets.sizes[sets.owner] + 1) // 2
        return Cut(side, sets.items.new_zeros(len(sets)))


def subsets(size: int, least: int = 0) -> list[tuple[int, ...]]:
    sizes = range(least, size + 1)
    return list(chain.from_iterable(combinations(range(size), some) for some in sizes))


def select() -> tuple[nn.Module, nn.Module]:
    return DescentSplit(InTurn()), DescentMerge()


CASES: dict[str, tuple[Any, int, int, list[tuple[int, ...]], Growth]] = {
    "order": (lambda: (InTurn(), ComparedMerge(1)), 1, 4, list(permutations(range(4))), Growth()),
    "order, a leaf": (
        lambda: (InTurn(), ComparedMerge(1)),
        1,
        2,
        list(permutations(range(2))),
        Growth(depth=0),
    ),
    "front": (lambda: (InTurn(), DominanceMerge(2)), 2, 2, subsets(2), Growth()),
    "front, a leaf": (lambda: (InTurn(), DominanceMerge(2)), 2, 3, subsets(3), Growth(depth=0)),
    "closest": (
        lambda: (InTurn(), ClosestMerge(cost=0.0)),
        2,
        3,
        list(combinations(range(3), 2)),
        Growth(),
    ),
    "rules": (lambda: (InTurn(), RuleMerge()), 1, 4, subsets(4, 1), Growth()),
    "descent": (select, 1, 5, [(n,) for n in range(5)], Growth()),
}


def likelihoods(name: str, seed: int) -> tuple[nn.Module, nn.Module, Tensor]:
    """The log-likelihood of every answer to one set of items, in one fixed tree."""
    make, features, size, answers, growth = CASES[name]
    torch.manual_seed(seed)
    split, merge = make()
    split.train(), merge.train()
    items = torch.randn(size, features, dtype=torch.float64)
    context = torch.full((len(answers), 1), 2.0, dtype=torch.float64)
    sizes = torch.full((len(answers),), size)
    sets = SetBatch.pack(items.repeat(len(answers), 1), sizes, context)
    target = Sequences.of([torch.tensor(one, dtype=torch.long) for one in answers])
    tree = grow(split, sets, growth)
    return split, merge, fold(merge, tree, target).log_prob


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihoods_of_all_answers_add_up_to_one(name: str, seed: int) -> None:
    split, merge, log_prob = likelihoods(name, seed)
    total = log_prob.double().exp().sum()
    assert total.item() == pytest.approx(1, abs=1e-5)
    # and so their gradients cancel: the expected score is 0 for every weight
    weights = [p for part in (split, merge) for p in part.parameters()]
    grads = torch.autograd.grad(total, weights, allow_unused=True)
    assert all(grad is None or grad.abs().max() < 1e-5 for grad in grads)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_small_steps(name: str) -> None:
    split, merge, log_prob = likelihoods(name, 1)
    weights = [p for part in (split, merge) for p in part.parameters()]
    grads = torch.autograd.grad(log_prob[0], weights, allow_unused=True)
    step = 1e-5 if weights[0].dtype == torch.float64 else 1e-3
    checked = 0
    for place, (weight, grad) in enumerate(zip(weights, grads, strict=True)):
        if grad is None:
            continue
        flat = grad.flatten()
        which = int(flat.abs().argmax())
        moved = []
        for sign in (1, -1):
            log = _after_step(name, place, which, sign * step)
            moved.append(float(log))
        slope = (moved[0] - moved[1]) / (2 * step)
        assert slope == pytest.approx(float(flat[which]), rel=2e-2, abs=1e-4), weight.shape
        checked += 1
    assert checked


def _after_step(name: str, place: int, which: int, step: float) -> Tensor:
    """The log-likelihood of the first answer with one weight moved."""
    make, features, size, answers, growth = CASES[name]
    torch.manual_seed(1)
    split, merge = make()
    split.train(), merge.train()
    items = torch.randn(size, features, dtype=torch.float64)
    weights = [p for part in (split, merge) for p in part.parameters()]
    with torch.no_grad():
        weights[place].view(-1)[which] += step
        context = torch.full((1, 1), 2.0, dtype=torch.float64)
        sets = SetBatch.pack(items, torch.tensor([size]), context)
        target = Sequences.of([torch.tensor(answers[0], dtype=torch.long)])
        return fold(merge, grow(split, sets, growth), target).log_prob[0]


# The split.


@pytest.mark.parametrize("ordered", [False, True])
def test_trees_are_as_likely_as_they_say(ordered: bool) -> None:
    """Every tree of four items turns up, as often as its log-probability says; all add up to 1."""
    torch.manual_seed(3)
    split = LineSplit(2, ordered=ordered).train()
    split.log_width.data.fill_(0.5)
    draws = 4_000
    sets = SetBatch.of([torch.randn(4, 2, dtype=torch.float64)]).repeat(draws)
    tree = grow(split, sets, Growth(), seeds_from(torch.Generator().manual_seed(0), draws))
    sides = tree.sides.reshape(tree.depth, draws, 4).permute(1, 0, 2).flatten(1)
    kinds, which, counts = torch.unique(sides, dim=0, return_inverse=True, return_counts=True)
    chance = tree.log_prob.exp().detach()
    mean = torch.zeros(len(kinds), dtype=chance.dtype).index_add(0, which, chance) / counts
    assert mean.sum().item() == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(counts / draws, mean.float(), atol=0.03, rtol=0)
    # the policy gradient's expectation: no weight gains by what does not depend on the cuts
    (grad,) = torch.autograd.grad(tree.log_prob.mean(), split.place)
    assert grad.abs() < 0.1


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_cuts_leave_no_side_empty_and_keep_their_share(share: float) -> None:
    torch.manual_seed(0)
    split = LineSplit(1, share=share).eval()
    split.place.data.fill_(9.0)
    alike = torch.ones(8, 1, dtype=torch.float64)
    spread = torch.tensor([[10.0**power] for power in range(12)], dtype=torch.float64)
    sets = SetBatch.of([alike, spread, torch.zeros(1, 1, dtype=torch.float64)])
    side = split(sets, None).side
    second = sets.sum(side.double()).tolist()
    assert second[0] == 4
    assert second[2] in (0, 1)
    assert min(second[1], 12 - second[1]) == (6 if share else 1)


# Forms.


def test_forms_solve_in_whole_halves() -> None:
    forms = Forms(2)
    with torch.no_grad():
        forms.weight.copy_(torch.tensor([[0.01, 1.9, -2.1, 0.1, -0.2, 0.6]]))
    points = torch.tensor([[3.0, 1.0], [1e200, 1.0]], dtype=torch.float64)
    forms.train()
    assert forms(points[:1]).item() == pytest.approx((0.01 + 5.7 - 2.1 + 0.9 - 0.6 + 0.6) / 2.1)
    forms.eval()
    assert forms(points).squeeze(1).tolist() == [3 - 1 + 0.5, 1e200]
    weight, pairs = forms.terms()
    assert (weight.tolist(), pairs.tolist()) == ([[1.0, -1.0, 0.5]], [[0, 1], [0, 2], [2, 2]])


@pytest.mark.parametrize("degrees", [(), (3,), (0, 5)])
def test_forms_have_known_degrees(degrees: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="degrees must be some of 0, 1, 2; got"):
        Forms(2, degrees=degrees)


def test_close_calls_are_decided_in_the_last_digit() -> None:
    """Numbers one unit in the last place apart, far from 0, come out in order."""
    from tests.problems.algorithms.textbook import textbook

    start = torch.tensor(1e9, dtype=torch.float64)
    steps = [start]
    for _ in range(63):
        steps.append(torch.nextafter(steps[-1], torch.tensor(torch.inf, dtype=torch.float64)))
    order = torch.argsort(mix(torch.arange(64), 1))
    sets = SetBatch.of([torch.stack(steps)[order][:, None]])
    with torch.no_grad():
        found = textbook("sort")(sets).solution
    assert torch.equal(order[found.places], torch.arange(64))
