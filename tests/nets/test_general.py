"""The general networks: their draws have the probabilities they say, whatever the kind of answer.

A policy gradient is right if and only if `log_prob` is that of what was drawn. So every kind draws
thousands of answers for one tiny set; equal answers must have equal probabilities, those of all
answers must add up to 1, and each must come about as often as it says.
"""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from diconet.core.answers import Sequences, Values
from diconet.core.model import DiCoNet, Outcome
from diconet.core.noise import seeds_from
from diconet.core.relations import Relations
from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, fold, grow
from diconet.nets import pick
from diconet.nets.default import network_for
from diconet.nets.general_split import GeneralSplit
from diconet.nets.order import OrderMerge
from diconet.nets.path import PathMerge
from diconet.nets.pick import PickMerge, PickSplit
from diconet.nets.subset import SubsetMerge
from diconet.nets.value import ValueMerge

NET = {"num_features": 2, "width": 8, "num_layers": 2}


def _draws(model: DiCoNet, sets: SetBatch, times: int) -> Outcome:
    seeds = seeds_from(torch.Generator().manual_seed(0), times)
    return model(sets.repeat(times), seeds)


def _log_prob(outcome: Outcome) -> Tensor:
    draws = getattr(outcome.answer, "draw_log_prob", None)
    return outcome.tree.log_prob if draws is None else outcome.tree.log_prob + draws


def _names(outcome: Outcome, num: int) -> list[tuple]:
    """What was drawn for each copy: the tree, and every level's answers."""
    tree = outcome.tree
    shape = (tree.depth, num, tree.roots.num_items // num)
    sides = tree.sides.reshape(shape).permute(1, 0, 2)
    names = [tuple(side.flatten().tolist()) for side in sides]
    solution = outcome.solution
    if isinstance(solution, Sequences):
        names = [(*a, *b.tolist()) for a, b in zip(names, solution.unpack(), strict=True)]
    if isinstance(solution, Values):
        values = solution.values.reshape(num, -1)
        names = [(*a, *b.tolist()) for a, b in zip(names, values, strict=True)]
    return names


def _one(size: int) -> SetBatch:
    return SetBatch.of([torch.randn(size, 2, generator=torch.Generator().manual_seed(size))])


@pytest.mark.parametrize(
    ("merge", "size", "depth"),
    [
        (None, 3, 1),
        (None, 2, 2),
        ("picks", 3, 1),
        (lambda: SubsetMerge(**NET), 3, 0),
        (lambda: PickMerge(**NET), 3, 0),
        (lambda: OrderMerge(**NET), 3, 0),
        (lambda: OrderMerge(**NET), 3, 1),
        (lambda: PathMerge(**NET), 3, 0),
        (lambda: PathMerge(**NET), 3, 1),
        (lambda: ValueMerge(num_labels=3, **NET), 2, 1),
        (lambda: ValueMerge(num_labels=2, per_item=True, **NET), 3, 0),
    ],
)
def test_draws_have_the_probabilities_they_say(merge, size, depth):
    torch.manual_seed(1)
    picks = merge == "picks"
    made = None if merge is None or picks else merge()
    model = DiCoNet(PickSplit(**NET) if picks else GeneralSplit(**NET), made, depth=depth)
    for name, parameter in model.named_parameters():
        if name.endswith(("head.weight", "read.2.weight")):
            nn.init.normal_(parameter, std=0.7)  # far from a fair coin
    times = 6_000
    with torch.no_grad():
        outcome = _draws(model, _one(size), times)
        chance = _log_prob(outcome).double().exp()
    seen: dict[tuple, list[float]] = {}
    for name, value in zip(_names(outcome, times), chance.tolist(), strict=True):
        seen.setdefault(name, []).append(value)
    ordered = isinstance(made, OrderMerge | PathMerge) and depth > 0
    if (
        not ordered and not picks and not isinstance(made, PickMerge)
    ):  # whose picks come in any order
        for values in seen.values():
            assert max(values) == pytest.approx(min(values), rel=1e-4)
        assert sum(values[0] for values in seen.values()) == pytest.approx(1, abs=0.02)
    # below the root, several draws may lead to one answer; then the inverse of a draw's
    # probability, averaged over draws, counts the ways there are: a whole number
    for values in seen.values():
        ways = sum(1 / value for value in values) / times
        if len(values) > 100:
            error = 4 * (1 / (values[0] * times)) ** 0.5
            assert ways == pytest.approx(max(round(ways), 1), abs=max(error, 0.15))


def test_subset_gradient_is_that_of_the_exact_expectation():
    torch.manual_seed(0)
    model = DiCoNet(GeneralSplit(**NET), SubsetMerge(**NET), depth=0)
    sets = _one(3)
    worth = torch.tensor([1.0, -2.0, 0.5])
    outcome = _draws(model, sets, 8_000)
    mask = outcome.solution.mask(outcome.tree.roots).reshape(-1, 3).float()
    reward = (mask @ worth) + 3 * mask[:, 0] * mask[:, 1]
    log_prob = _log_prob(outcome)
    weight = model.merge.head.weight
    estimate = torch.autograd.grad(((reward - reward.mean()) * log_prob).mean(), weight)[0]
    level = model(sets).tree.levels[0]
    signals = torch.tensor([[0.0, 1.0]]).expand(3, 2)
    logit = model.merge.head(model.merge.encoder(level.sets, None, signals)).squeeze(1)
    total = torch.zeros(())
    for many in range(4):
        for chosen in combinations(range(3), many):
            yes = torch.zeros(3)
            yes[list(chosen)] = 1
            chance = (yes * logit.sigmoid() + (1 - yes) * (1 - logit.sigmoid())).prod()
            total = total + chance * (yes @ worth + 3 * yes[0] * yes[1])
    exact = torch.autograd.grad(total, weight)[0]
    assert torch.allclose(estimate, exact, atol=0.08 * float(exact.abs().max()) + 0.01)


@pytest.mark.parametrize("kind", [OrderMerge, PathMerge])
@pytest.mark.parametrize("depth", [0, 1])
def test_likelihoods_of_all_orders_add_up_to_one(kind, depth):
    torch.manual_seed(2)
    model = DiCoNet(GeneralSplit(**NET), kind(**NET), depth=depth)
    sets, total = _one(3), 0.0
    with torch.no_grad():
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
            target = Sequences.of([torch.tensor(order)])
            total += model(sets, torch.tensor([5]), target).log_prob.exp().item()
    if kind is OrderMerge or depth == 0:
        assert total == pytest.approx(1, abs=1e-4)


def test_likelihoods_of_all_subsets_add_up_to_one_where_nothing_is_cut():
    torch.manual_seed(3)
    model = DiCoNet(GeneralSplit(**NET), SubsetMerge(**NET), depth=0)
    sets, total = _one(3), 0.0
    with torch.no_grad():
        for number in range(8):
            chosen = torch.tensor([bool(number >> bit & 1) for bit in range(3)])
            total += model(sets, None, Sequences.where(sets, chosen)).log_prob.exp().item()
    assert total == pytest.approx(1, abs=1e-4)


def test_a_set_is_cut_alike_alone_and_in_a_batch():
    torch.manual_seed(0)
    net = {**NET, "edge_features": 0, "noise": 2}
    split = GeneralSplit(**net)
    edges = [torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0, 3]])]
    items = [torch.randn(4, 2), torch.randn(5, 2)]
    both = SetBatch.of(items, relations=Relations.of(edges))
    seeds = torch.tensor([3, 4])
    together = split(both, seeds)
    alone = split(both.take(torch.tensor([1])).as_roots(), seeds[1:])
    assert torch.equal(together.side[4:], alone.side)
    assert torch.allclose(together.log_prob[1:], alone.log_prob, atol=1e-5)


def test_many_cuts_are_those_of_single_looks_where_there_is_no_noise():
    torch.manual_seed(0)
    split, sets = GeneralSplit(**NET), SetBatch.of([torch.randn(4, 2), torch.randn(6, 2)])
    seeds = torch.arange(6)
    many, single = split(sets, seeds), split(sets.repeat(3), seeds)
    assert torch.equal(many.side, single.side)
    assert torch.allclose(many.log_prob, single.log_prob, atol=1e-5)


def test_the_greedy_merge_of_an_order_takes_the_smaller_head():
    """Halves with keys 3 1 and 2 4 (in their order): 2, then 3 and 1, then 4."""

    class Keys(nn.Module):
        width = 1

        def forward(self, sets, seeds=None, extra=None):
            return sets.items[:, :1]

    model = DiCoNet(GeneralSplit(**NET), OrderMerge(**NET), Growth(depth=1))
    model.merge.encoder = Keys()
    model.merge.head = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.merge.head.weight)
    from diconet.core.tree import Level
    from diconet.nets.handed import Chosen

    roots = SetBatch.of([torch.tensor([[3.0, 0], [1, 0], [2, 0], [4, 0]])])
    level = Level(0, roots, roots, torch.tensor([0]), torch.tensor([0]))
    below = SetBatch(roots.items, torch.tensor([2, 2]), torch.zeros(2, 0), roots.index)
    answer = model.merge(level, Chosen(roots, below), None)
    assert answer.solution.places.tolist() == [2, 0, 1, 3]


def test_a_graph_without_edges_is_cut_too():
    split = GeneralSplit(**NET, edge_features=1, noise=2)
    sets = SetBatch.of([torch.randn(4, 2)])
    assert split(sets, None).side.shape == (4,)


@pytest.mark.parametrize("kind", [SubsetMerge, PickMerge, PathMerge])
def test_draws_from_one_look_are_those_from_a_look_each(kind):
    torch.manual_seed(0)
    model = DiCoNet(GeneralSplit(**NET), kind(**NET), depth=0)
    sets = SetBatch.of([torch.randn(5, 2), torch.randn(3, 2), torch.randn(7, 2)])
    seeds = seeds_from(torch.Generator().manual_seed(1), 12)
    tree = grow(model.split, sets, model.growth, seeds, copies=4)
    assert tree.levels[0].copies == 4
    shared, alone = fold(model.merge, tree), model(sets.repeat(4), seeds).answer
    assert torch.equal(shared.solution.places, alone.solution.places)
    assert torch.equal(shared.solution.sizes, alone.solution.sizes)
    torch.testing.assert_close(shared.draw_log_prob, alone.draw_log_prob)


def test_pairs_are_judged_alike_in_a_table_and_one_by_one(monkeypatch):
    torch.manual_seed(0)
    net = {**NET, "edge_features": 1}
    pairs = [torch.tensor([[0, 1], [1, 2]]), torch.tensor([[2, 0]])]
    edges = Relations.of(pairs, [torch.randn(2, 1), torch.randn(1, 1)])
    sets = SetBatch.of([torch.randn(4, 2), torch.randn(3, 2)], relations=edges)
    seeds = seeds_from(torch.Generator().manual_seed(1), 2)
    for kind in (PickMerge, PathMerge):
        model = DiCoNet(GeneralSplit(**net), kind(**net), depth=0)
        with monkeypatch.context() as patch:
            table = model(sets, seeds).answer
            patch.setattr(pick, "_MOST_PAIRS", 0)
            single = model(sets, seeds).answer
        assert torch.equal(table.solution.places, single.solution.places)
        torch.testing.assert_close(table.draw_log_prob, single.draw_log_prob)
        assert model.merge.get_parameter(
            "picker.judge.joint.weight" if kind is PickMerge else "judge.joint.weight"
        ).shape == (8, 2)


@pytest.mark.parametrize("split", ["coins", "picks"])
def test_the_unit_of_context_and_edges_does_not_matter(split):
    """A capacity in grams or in tons, edges in metres or in miles: the same cuts."""

    class Task:
        num_features = 2

        def __init__(self, unit):
            self.unit = unit

        def sample(self, num_sets, set_size, *, rng):
            items = torch.rand(num_sets * set_size, 2, generator=rng)
            context = self.unit * torch.rand(num_sets, 1, generator=rng)
            edges = [torch.tensor([[0, 1], [1, 2], [0, 3]])] * num_sets
            weights = [self.unit * torch.rand(3, 1, generator=rng) for _ in edges]
            sizes = torch.full((num_sets,), set_size)
            return SetBatch.pack(items, sizes, context, Relations.of(edges, weights))

        def reward(self, sets, solution):
            return sets.mean(solution.leaves.float())

    found = []
    for unit in (1.0, 4096.0):
        torch.manual_seed(0)
        task = Task(unit)
        model = network_for(task, split=split, width=8, num_layers=2)
        sets = task.sample(20, 9, rng=torch.Generator().manual_seed(1))
        with torch.no_grad():
            found.append(model(sets, torch.arange(20)).tree)
    assert torch.equal(found[0].leaves, found[1].leaves)
    assert torch.allclose(found[0].log_prob, found[1].log_prob, atol=1e-4)


def test_context_that_grows_with_a_set_stays_within_what_networks_see():
    """A capacity of a quarter of the size spreads by 0.6 at 20 items, but by 12 from 6 to 50."""

    class Capacity:
        num_features = 1

        def sample(self, num_sets, set_size, *, rng):
            items = torch.rand(num_sets * set_size, 1, generator=rng)
            context = set_size * (0.2 + 0.1 * torch.rand(num_sets, 1, generator=rng))
            return SetBatch.pack(items, torch.full((num_sets,), set_size), context)

        def reward(self, sets, solution):
            return sets.items.new_zeros(len(sets))

    task = Capacity()
    encoder = next(m for m in network_for(task).modules() if hasattr(m, "enter_set"))
    for size in (6, 50):
        sets = task.sample(100, size, rng=torch.Generator().manual_seed(1))
        seen = (sets.context - encoder.context_origin) / encoder.context_unit
        assert seen.abs().max() < 4
