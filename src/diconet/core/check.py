"""`check_task`: tests a task against its contract and reports the first mistake in one line."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diconet.core.answers import Sequences, Values
from diconet.core.coin import RandomSplit
from diconet.core.leaf_solver import LeafSolver
from diconet.core.noise import mix, seeds_from, uniform
from diconet.core.segments import inverse, segment_sort, segment_sum
from diconet.core.sets import SetBatch
from diconet.core.task import Oracle
from diconet.core.tree import Cut, Growth, PartitionTree, fold, grow

NUM_SETS = 6
_CLOSE = 1e-4


class TaskError(ValueError):
    """A task that breaks the contract."""


Guess = Callable[[SetBatch, Tensor], Any]
"""Draws random solutions of the kind that a task rewards, with one seed per set."""


def check_task(
    task: Any,
    *,
    oracle: Oracle | None = None,
    guess: Guess | None = None,
    depth: int | None = None,
    sizes: Sequence[int] = (5, 12),
    seed: int = 0,
) -> None:
    """Raises a `TaskError` that names the first mistake in a task; returns None if there is none.

    The solutions tried are random partition trees of `depth` cuts or, with an oracle that returns
    `Sequences`, random sequences; `guess` draws those of another kind. By default the oracle is the
    task's own, if it has one. `sizes` are the set sizes tried.
    """
    _check_members(task)
    if depth is None:
        depth = max(1, math.ceil(math.log2(getattr(task, "num_parts", 2))))
    if oracle is None:
        oracle = getattr(task, "oracle", None)
    for size in sizes:
        sets = _check_sample(task, size, seed)
        target = None if oracle is None else _asked(oracle, sets)
        rewards = _check_reward(task, sets, guess or _guess_for(task, target, sets, depth), seed)
        if oracle is not None:
            _check_oracle(task, sets, target, rewards)


def _check_members(task: Any) -> None:
    features = getattr(task, "num_features", None)
    if not isinstance(features, int) or isinstance(features, bool) or features < 1:
        raise TaskError(f"num_features must be a whole number of at least 1; got {features!r}.")
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
        "sample": ((1, 1), {"rng": None}, "sample(num_sets, set_size, *, rng)"),
        "reward": ((None, None), {}, "reward(sets, solution)"),
    }
    for name, (positional, named, call) in calls.items():
        method = getattr(task, name, None)
        if not callable(method):
            raise TaskError(f"a task must have a method {call}; {type(task).__name__} has none.")
        try:
            inspect.signature(method).bind(*positional, **named)
        except TypeError as error:
            raise TaskError(f"{name} must be callable as {call}; {error}.") from error


def _check_sample(task: Any, size: int, seed: int) -> SetBatch:
    before = torch.random.get_rng_state()
    sets = _drawn(task, size, seed)
    _check_batch(task, sets, size)
    assert isinstance(sets, SetBatch)
    if not torch.equal(before, torch.random.get_rng_state()):
        raise TaskError("sample must draw from rng alone; it used torch's global generator.")
    if not _same(sets, _drawn(task, size, seed)):
        raise TaskError("sample must draw from rng alone; the same rng gave two different batches.")
    if _same(sets, _drawn(task, size, seed + 1)):
        raise TaskError("sample must draw from rng; two different ones gave the same batch.")
    return sets


def _drawn(task: Any, size: int, seed: int) -> Any:
    return task.sample(NUM_SETS, size, rng=torch.Generator().manual_seed(seed))


def _check_batch(task: Any, sets: Any, size: int) -> None:
    if not isinstance(sets, SetBatch):
        raise TaskError(f"sample must return a SetBatch; got {type(sets).__name__}.")
    if len(sets) != NUM_SETS:
        raise TaskError(f"sample must return num_sets sets, {NUM_SETS}; got {len(sets)}.")
    if bool((sets.sizes != size).any()):
        raise TaskError(f"sample must return sets of set_size items, {size}; got {sets.sizes}.")
    if sets.num_features != task.num_features:
        raise TaskError(
            f"sample must return items of num_features features, {task.num_features};"
            f" got {sets.num_features}."
        )
    for name in ("items", "context"):
        if not bool(torch.isfinite(getattr(sets, name)).all()):
            raise TaskError(f"sample must return finite {name}; got a NaN or infinity.")
    if sets.relations is not None and not bool(torch.isfinite(sets.relations.features).all()):
        raise TaskError("sample must return finite edge features; got a NaN or infinity.")
    if not torch.equal(sets.index, torch.arange(sets.num_items)):
        raise TaskError("sample must return a root batch; make it with pack, of or repeat.")


def _same(a: SetBatch, b: SetBatch) -> bool:
    same = torch.equal(a.items, b.items) and torch.equal(a.context, b.context)
    if a.relations is None or b.relations is None:
        return same and a.relations is b.relations
    fields = ("source", "target", "features", "sizes")
    pairs = ((getattr(a.relations, name), getattr(b.relations, name)) for name in fields)
    return same and all(torch.equal(one, other) for one, other in pairs)


def _asked(oracle: Oracle, sets: SetBatch) -> Any:
    target = oracle(sets)
    if not callable(getattr(target, "repeat", None)):
        raise TaskError(
            f"an oracle's target must have a method repeat(times); got {type(target).__name__}."
        )
    return target


def _check_reward(task: Any, sets: SetBatch, guess: Guess, seed: int) -> list[Tensor]:
    """Checks the contract of a reward; returns the rewards of the solutions tried."""
    rewards = []
    for number in range(4):
        seeds = seeds_from(torch.Generator().manual_seed(seed + number), len(sets))
        solution = guess(sets, seeds)
        reward = rewarded(task, sets, solution)
        _expect(task, reward, sets, solution, "when asked again for the same solution")
        for place in range(0, len(sets), 2):
            which = torch.tensor([place])
            one = sets.take(which).as_roots()
            alone = guess(one, seeds[which])
            _expect(task, reward[which], one, alone, "for a set alone and in a batch")
        for other, same, change in _renamed(task, sets, solution):
            _expect(task, reward, other, same, change)
        rewards.append(reward)
    if all(torch.equal(rewards[0], reward) for reward in rewards[1:]):
        raise TaskError("reward must tell solutions apart; all those tried got the same.")
    return rewards


def _expect(
    task: Any, reward: Float[Tensor, "sets"], sets: SetBatch, solution: Any, when: str
) -> None:
    again = rewarded(task, sets, solution)
    if not _close(reward, again):
        place = int((reward - again).abs().argmax())
        raise TaskError(
            f"reward must stay the same {when};"
            f" got {reward[place].item():.6g} and then {again[place].item():.6g}."
        )


def rewarded(task: Any, sets: SetBatch, solution: Any) -> Float[Tensor, "sets"]:
    """A task's reward of a solution, checked to be one finite number per set."""
    reward: Any = task.reward(sets, solution)
    if not isinstance(reward, Tensor):
        raise TaskError(
            f"reward must return a tensor, one number per set; got a {type(reward).__name__}."
        )
    if reward.shape != (len(sets),):
        raise TaskError(
            f"reward must have shape ({len(sets)},) for {len(sets)} sets;"
            f" got {tuple(reward.shape)}."
        )
    if not reward.is_floating_point():
        raise TaskError(f"reward must be floating point; got {reward.dtype}.")
    if not bool(torch.isfinite(reward).all()):
        place = int((~torch.isfinite(reward)).nonzero()[0])
        raise TaskError(f"reward must be finite; got {reward[place].item()} for set {place}.")
    return reward.detach()


def _close(a: Tensor, b: Tensor) -> bool:
    scale = max(float(a.abs().max()), 1e-30)
    return bool(((a - b).abs() <= _CLOSE * scale).all())


def _check_oracle(
    task: Any, sets: SetBatch, target: Any, tried: list[Float[Tensor, "sets"]]
) -> None:
    best = rewarded(task, sets, target)
    twice = rewarded(task, sets.repeat(2), target.repeat(2))
    if not _close(twice, best.repeat_interleave(2)):
        raise TaskError("a target's repeat(times) must give each set's target times in a row.")
    scale = _CLOSE * float(best.abs().max())
    for reward in tried:
        worse = best < reward - scale
        if bool(worse.any()):
            place = int(worse.nonzero()[0])
            raise TaskError(
                "the oracle must not be worse than a random solution; its reward is"
                f" {best[place].item():.6g} and that solution's {reward[place].item():.6g}"
                " (is the reward a cost? higher must be better)."
            )


def _guess_for(task: Any, target: Any, sets: SetBatch, depth: int) -> Guess:
    """Random solutions of the kind named by the task's `answer`, or returned by its oracle."""
    kind = getattr(task, "answer", None)
    if getattr(task, "leaf_solver", None) is not None:
        return lambda sets, seeds: _solved(task, sets, seeds, depth)
    if kind == "subset":
        return random_choice
    if kind in ("order", "path"):
        return random_order
    if kind in ("number", "label"):
        return lambda sets, seeds: _random_values(task, sets, seeds)
    if not isinstance(target, Sequences):
        return lambda sets, seeds: grow(RandomSplit(), sets, Growth(depth=depth), seeds)
    return random_order if torch.equal(target.sizes, sets.sizes) else random_choice


def _random_values(task: Any, sets: SetBatch, seeds: Int[Tensor, "sets"]) -> Values:
    """A number or label for every set or item, as the task asks."""
    per_item = bool(getattr(task, "per_item", False))
    draws = mix(seeds, 2)
    if per_item:
        draws = mix(draws[sets.owner], sets.position)
    values: Tensor = uniform(draws)
    if task.answer == "label":
        values = (values * getattr(task, "num_labels", 2)).long()
    return Values(values, sets.sizes if per_item else None)


def _solved(task: Any, sets: SetBatch, seeds: Int[Tensor, "sets"], depth: int) -> Any:
    """The answers of the task's leaf solver on the leaves of random trees."""
    tree = grow(RandomSplit(), sets, Growth(depth=depth), seeds)
    return fold(LeafSolver(task.leaf_solver), tree)


def random_order(sets: SetBatch, seeds: Int[Tensor, "sets"]) -> Sequences:
    """All items of every set in random order."""
    draws = uniform(mix(seeds[sets.owner], sets.position))
    return Sequences(sets.position[segment_sort(draws, sets.owner)], sets.sizes)


def random_choice(sets: SetBatch, seeds: Int[Tensor, "sets"]) -> Sequences:
    """About half of the items of every set, at least one, in random order."""
    order = random_order(sets, seeds)
    lucky = uniform(mix(mix(seeds, 1)[sets.owner], sets.position)) < 0.5
    keep = lucky | (sets.position == 0)
    sizes = segment_sum(keep.double(), sets.owner, len(sets)).long()
    return Sequences(order.places[keep], sizes)


def _renamed(task: Any, sets: SetBatch, solution: Any) -> Iterator[tuple[SetBatch, Any, str]]:
    """Equivalent forms of the same solutions, each with what was changed.

    Items keep their order if the task is `ordered`; parts keep their numbers if it is not
    `exchangeable`.
    """
    is_tree = isinstance(solution, PartitionTree)
    if not getattr(task, "ordered", False):
        order = segment_sort(uniform(mix(torch.arange(sets.num_items), 7)), sets.owner)
        shuffled = sets.select(order, sets.sizes).as_roots()
        when = "when the items are reordered"
        if is_tree:
            yield shuffled, _tree_along(shuffled, solution, solution.sides[:, order]), when
        elif isinstance(solution, Sequences):
            places = sets.position[inverse(order)][solution.rows(sets)]
            yield shuffled, Sequences(places, solution.sizes), when
    if is_tree and getattr(task, "exchangeable", True):
        mirrored = _tree_along(sets, solution, ~solution.sides)
        yield sets, mirrored, "when the parts are renumbered"


def _tree_along(
    sets: SetBatch, like: PartitionTree, sides: Bool[Tensor, "depth items"]
) -> PartitionTree:
    """The tree in which every item takes the given sides."""
    ways = iter(sides)

    def follow(sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return Cut(next(ways)[sets.index], sets.items.new_zeros(len(sets)))

    return grow(follow, sets, Growth(depth=like.depth))
