from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diconet.greedy import WEIGHT, used, worth
from diconet.merges.pack import PackMerge
from diconet.model import DiCoNet
from diconet.noise import seeds_from
from diconet.references.knapsack import greedy_that_skips
from diconet.sets import SetBatch
from diconet.splits.takeleave import TakeLeave
from diconet.splits.walk_search import DECIDED, HEAD, LEFT, beam_of_walks, best_of_walks
from diconet.tasks.knapsack import KnapsackTask
from diconet.tree import Growth
from tests.tasks.test_knapsack import FOUR, brute_force, knapsacks


def network(**settings: int) -> DiCoNet:
    """A network with random weights that matter."""
    torch.manual_seed(1)
    split = TakeLeave(**{"width": 16, **settings})
    torch.nn.init.normal_(split.head.weight, std=0.5)
    return DiCoNet(split, PackMerge(fill=True), depth=1).eval()


def test_one_decision_a_cut_is_the_same_as_all_in_one(rng):
    sets = KnapsackTask().sample(30, 60, rng=rng)
    once, step_by_step = network(), network(decisions=1)
    answer = once(sets).solution
    outcome = step_by_step(sets, growth=Growth(depth=100))
    assert outcome.tree.depth > 10
    assert torch.equal(answer.places, outcome.solution.places)
    torch.testing.assert_close(once(sets).tree.log_prob, outcome.tree.log_prob)


def test_the_log_probability_is_the_same_with_and_without_a_gradient(rng):
    sets = KnapsackTask().sample(5, 40, rng=rng)
    model, seeds = network(), seeds_from(rng, 5)
    with_grad = model(sets, seeds).tree.log_prob
    with torch.no_grad():
        without = model(sets, seeds).tree.log_prob
    torch.testing.assert_close(with_grad, without)
    with_grad.sum().backward()
    assert model.split.head.weight.grad.norm() > 0


def test_draws_follow_the_probabilities():
    """Two items that fit only one at a time: taking the first leaves nothing to decide."""
    sets = knapsacks(([(3.0, 2.0), (2.0, 2.0)], 3)).repeat(4_000)
    model = network()
    outcome = model(sets, seeds_from(torch.Generator().manual_seed(1), len(sets)))
    first = outcome.solution.places.reshape(-1)[: len(sets)] == 0
    chance = outcome.tree.log_prob[index_of_first(first)].exp().item()
    assert first.float().mean().item() == pytest.approx(chance, abs=0.03)


def index_of_first(mask: torch.Tensor) -> int:
    return int(mask.nonzero()[0])


def test_another_seed_draws_another_choice(rng):
    sets = KnapsackTask().sample(20, 50, rng=rng)
    model = network()
    a, b = (model(sets, seeds_from(torch.Generator().manual_seed(s), 20)) for s in (1, 2))
    again = model(sets, seeds_from(torch.Generator().manual_seed(1), 20))
    assert torch.equal(a.solution.places, again.solution.places)
    assert not torch.equal(a.tree.log_prob, b.tree.log_prob)


def test_units_do_not_matter(rng):
    sets = KnapsackTask().sample(10, 50, rng=rng)
    scaled = SetBatch.pack(
        sets.items * torch.tensor([8.0, 32.0], dtype=torch.float64), sets.sizes, sets.context * 32
    )
    model = network()
    assert torch.equal(model(sets).solution.places, model(scaled).solution.places)


def test_untrained_it_looks_ahead_where_greedy_does_not():
    """Greedy takes 7/4 and 8/5 for 15; leaving the first makes room for both of the others: 16."""
    sets = knapsacks(([(7.0, 4.0), (8.0, 5.0), (8.0, 5.0)], 10))
    assert worth(sets, greedy_that_skips(sets)).item() == 15
    assert worth(sets, beam_of_walks(TakeLeave(), sets, 1) < LEFT).item() == 16


def test_a_beam_of_one_goes_the_likelier_way_each_time(rng):
    sets = KnapsackTask().sample(20, 40, rng=rng)
    model = network()
    greedy = model(sets).solution
    chosen = beam_of_walks(model.split, sets, 1) < LEFT
    assert torch.equal(sets.position[chosen], greedy.places)


def test_a_wide_beam_is_exact_where_the_core_is_everything(rng):
    task = KnapsackTask()
    sets = task.sample(20, 8, rng=rng)
    chosen = beam_of_walks(network().split, sets, 256) < LEFT
    best = [
        brute_force(items.numpy(), capacity)
        for items, capacity in zip(sets.unpack(), sets.context[:, 0].tolist(), strict=True)
    ]
    torch.testing.assert_close(worth(sets, chosen), torch.tensor(best, dtype=torch.float64))


def test_samples_are_never_worse_than_the_likeliest_way(rng):
    sets = KnapsackTask().sample(50, 50, rng=rng)
    model = network()
    likeliest = KnapsackTask(unit=1e-9).reward(sets, model(sets).solution) * 1e9
    seeds = seeds_from(rng, 50 * 8).reshape(50, 8)
    best = worth(sets, best_of_walks(model.split, sets, seeds) < LEFT)
    assert bool((best >= likeliest - 1e-6).all())
    assert best.mean() > likeliest.mean()


def test_the_head_is_taken_and_only_the_core_decided(rng):
    sets = KnapsackTask().sample(5, 300, rng=rng)
    stage = beam_of_walks(network(before=5, core=20).split, sets, 2)
    for part in sets.unpack(stage):
        assert (part == HEAD).sum() > 100
        assert (part == DECIDED).sum() <= 20


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(-5, 50), st.integers(0, 50)), min_size=1, max_size=25),
    capacity=st.integers(0, 300),
    seed=st.integers(0, 100),
    decisions=st.sampled_from([1, 3, 64]),
)
def test_the_capacity_is_never_exceeded(items, capacity, seed, decisions):
    sets = knapsacks((items, capacity))
    model = network(decisions=decisions)
    for seeds in (None, torch.tensor([seed])):
        rows = model(sets, seeds, growth=Growth(depth=30)).solution.rows(sets)
        assert sets.items[rows, WEIGHT].sum() <= capacity
    for stage in (
        beam_of_walks(model.split, sets, 3),
        best_of_walks(model.split, sets, torch.tensor([[seed, 1]])),
    ):
        assert used(sets, stage < LEFT).item() <= capacity
        assert not np.any((stage < LEFT).numpy() & (sets.items[:, 0].numpy() < 0))


@pytest.mark.parametrize("name", ["before", "core", "decisions"])
def test_settings_are_checked(name):
    with pytest.raises(ValueError, match=rf"{name} must be at least 1; got 0"):
        TakeLeave(**{name: 0})
    with pytest.raises(ValueError, match=r"width must be at least 1; got 0"):
        beam_of_walks(TakeLeave(), knapsacks((FOUR, 7)), 0)
