"""Each test plants one mistake in a task that is otherwise sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.check import TaskError, check_task, random_choice
from diconet.core.noise import seeds_from
from diconet.core.segments import segment_sum
from diconet.core.sets import SetBatch
from diconet.core.tree import PartitionTree
from diconet.problems.hull.clouds import CloudTask
from diconet.problems.hull.task import HullTask
from diconet.problems.kmeans.task import KMeansTask
from diconet.problems.knapsack.task import KnapsackTask
from diconet.problems.tsp.task import TourBook, TspTask

SIZES = 5, 12


@dataclass(frozen=True)
class Near:
    """Minus the squared distance to the mean of one's part."""

    num_features: Any = 2

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.rand(num_sets * set_size, 2, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Any:
        part = 4 * sets.owner + solution.leaves
        count = segment_sum(torch.ones(sets.num_items), part, 4 * len(sets)).clamp(min=1)
        mean = segment_sum(sets.items, part, 4 * len(sets)) / count[:, None]
        return -sets.sum((sets.items - mean[part]).square().sum(1))


class NearestNext:
    """Items in order; reward for going up. The oracle sorts."""

    num_features = 1

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.rand(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def oracle(self, sets: SetBatch) -> Any:
        return Sequences.of([values.squeeze(1).argsort() for values in sets.unpack()])

    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        values = sets.with_items(sets.items[solution.rows(sets)])
        return sets.sum(values.items[:, 0] * sets.position)


def test_sound_tasks_pass() -> None:
    check_task(Near())
    check_task(Near(), depth=2)
    check_task(NearestNext())


@pytest.mark.parametrize(
    "task",
    [
        HullTask(),
        CloudTask(),
        KMeansTask(),
        KnapsackTask(),
        TspTask(seconds=0.005),
        TourBook.make([*SIZES] * 8, seed=0, seconds=0.005),
    ],
    ids=lambda task: type(task).__name__,
)
def test_built_in_tasks_pass(task: Any) -> None:
    check_task(task)


def in_sample(change: Callable[[SetBatch], Any]) -> Any:
    class Wrong(Near):
        def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> Any:
            return change(super().sample(num_sets, set_size, rng=rng))

    return Wrong()


def in_reward(change: Callable[[Tensor, SetBatch, PartitionTree], Any]) -> Any:
    class Wrong(Near):
        def reward(self, sets: SetBatch, solution: PartitionTree) -> Any:
            return change(super().reward(sets, solution), sets, solution)

    return Wrong()


class GlobalRandom(Near):
    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return SetBatch.pack(torch.rand(num_sets * set_size, 2), torch.full((num_sets,), set_size))


class NumpyRandom(Near):
    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        drawn = np.random.default_rng().random((num_sets * set_size, 2), dtype=np.float32)
        return SetBatch.pack(torch.from_numpy(drawn), torch.full((num_sets,), set_size))


class Unchanging(Near):
    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return super().sample(num_sets, set_size, rng=torch.Generator().manual_seed(3))


class NoRng(Near):
    def sample(self, num_sets: int, set_size: int) -> SetBatch:  # type: ignore[override]
        return super().sample(num_sets, set_size, rng=torch.Generator())


class NoReward:
    num_features = 2
    sample = Near.sample


class NoSample:
    num_features = 2
    reward = Near.reward


class NoFeatures:
    sample, reward = Near.sample, Near.reward


def spoiled(items: Tensor) -> Tensor:
    items = items.clone()
    items[0, 0] = torch.nan
    return items


MISTAKES = {
    "no num_features": (NoFeatures(), r"num_features must be .* at least 1; got None\."),
    "no sample": (NoSample(), r"must have a method sample\(num_sets, set_size, \*, rng\)"),
    "no reward": (NoReward(), r"must have a method reward\(sets, solution\); NoReward has none"),
    "no rng": (NoRng(), r"sample must be callable as .*rng\); got an unexpected keyword"),
    "global rng": (GlobalRandom(), r"rng alone; it used torch's global generator"),
    "numpy's rng": (NumpyRandom(), r"rng alone; the same rng gave two different batches"),
    "rng not used": (Unchanging(), r"draw from rng; two different ones gave the same"),
    "a tensor": (in_sample(lambda s: s.items), r"must return a SetBatch; got Tensor\."),
    "too few sets": (
        in_sample(lambda s: SetBatch.pack(s.items, s.sizes.reshape(-1, 2).sum(1))),
        r"num_sets sets, 6; got 3\.",
    ),
    "other sizes": (
        in_sample(lambda s: SetBatch.pack(s.items[: -len(s)], s.sizes - 1)),
        r"set_size items, 5; got tensor\(\[4",
    ),
    "other features": (in_sample(lambda s: s.with_items(s.items[:, :1])), r"num_features .*2; got"),
    "NaN items": (in_sample(lambda s: s.with_items(spoiled(s.items))), r"return finite items"),
    "NaN context": (
        in_sample(lambda s: SetBatch.pack(s.items, s.sizes, torch.full((len(s), 1), torch.inf))),
        r"return finite context",
    ),
    "foreign index": (
        in_sample(lambda s: s.take(torch.arange(len(s)).flip(0))),
        r"root batch; make it with pack",
    ),
    "a float": (in_reward(lambda r, *_: r.sum().item()), r"return a tensor, .* got a float\."),
    "an array": (in_reward(lambda r, *_: r.numpy()), r"return a tensor, .* got a ndarray\."),
    "one number": (in_reward(lambda r, *_: r.mean()), r"shape \(6,\) for 6 sets; got \(\)\."),
    "a column": (in_reward(lambda r, *_: r[:, None]), r"shape \(6,\) for 6 sets; got \(6, 1\)\."),
    "whole numbers": (in_reward(lambda r, *_: r.long()), r"floating point; got torch.int64"),
    "NaN reward": (in_reward(lambda r, *_: r / (r - r)), r"reward must be finite; got -inf"),
    "random reward": (
        in_reward(lambda r, *_: r + torch.rand(len(r))),
        r"the same when asked again for the same solution",
    ),
    "mean of the batch": (
        in_reward(lambda r, *_: r - r.mean()),
        r"the same for a set alone and in a batch",
    ),
    "names of parts": (
        in_reward(lambda r, s, tree: r + s.mean(tree.leaves.float())),
        r"the same when the parts are renumbered",
    ),
    "order of items": (
        in_reward(lambda r, s, tree: r + s.items[s.offsets[:-1], 0]),
        r"the same when the items are reordered",
    ),
    "constant": (
        in_reward(lambda r, s, tree: s.mean(s.items[:, 0])),
        r"must tell solutions apart",
    ),
}


@pytest.mark.parametrize(("task", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_each_mistake_has_its_message(task: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        check_task(task)
    assert "\n" not in str(caught.value)


class Costly(NearestNext):
    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        return -super().reward(sets, solution)


def test_a_cost_in_place_of_a_reward_shows_against_the_oracle() -> None:
    with pytest.raises(TaskError, match=r"oracle must not be worse .* \(is the reward a cost\?"):
        check_task(Costly())


def test_targets_must_repeat() -> None:
    with pytest.raises(TaskError, match=r"must have a method repeat\(times\); got list\."):
        check_task(NearestNext(), oracle=lambda sets: sets.unpack())


class Tiled(Sequences):
    def repeat(self, times: int) -> Sequences:
        return self.take(torch.arange(len(self)).repeat(times))


def test_targets_must_repeat_set_by_set() -> None:
    def oracle(sets: SetBatch) -> Tiled:
        right = NearestNext().oracle(sets)
        return Tiled(right.places, right.sizes)

    with pytest.raises(TaskError, match=r"repeat\(times\) must give each set's target times"):
        check_task(NearestNext(), oracle=oracle)


def test_a_guess_of_ones_own_stands_in_for_trees() -> None:
    class Heavy(NearestNext):
        oracle: Any = None

        def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
            chosen = torch.zeros(sets.num_items)
            chosen[solution.rows(sets)] = 1
            return sets.sum(sets.items[:, 0] * chosen)

    check_task(Heavy(), guess=random_choice)


def test_choices_are_of_different_items_of_their_own_set(rng: torch.Generator) -> None:
    sets = Near().sample(50, 9, rng=rng)
    choice = random_choice(sets, seeds_from(rng, 50))
    for places in choice.unpack():
        assert 1 <= len(places.unique()) == len(places)
        assert 0 <= int(places.min()) <= int(places.max()) < 9
