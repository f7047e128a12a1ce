"""Signs that a network does not learn, each with what to try.

Five things commonly go wrong: cuts that leave one side empty, a likeliest answer that is
worse than random draws, one that is the same for every input, a score that does not rise,
and a merge that ignores its halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.answers import Sequences, Values
from diconet.core.host import number
from diconet.core.model import DiCoNet, Outcome
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.core.tree import PartitionTree
from diconet.core.weights import parameters_of
from diconet.learn.batches import Batch

_MOST_ONE_SIDED = 0.5
"""Share of items in one-sided cuts above which a tree hardly divides."""

_NEARLY_EVERY = 0.95
"""Share of inputs with the same answer above which the answer does not depend on the input."""

_LEAST_EFFECT = 1e-4
"""How much the tree must affect the score, relative to the score's size."""

_SURE = 2.0
"""A difference must be this many standard errors to count."""


@dataclass(frozen=True, eq=False)
class Signs:
    """Scores of the likeliest and of random trees on the same inputs, and how these trees cut.

    `one_sided` is the share of items in nodes whose likeliest cut leaves one side empty; `differ`
    the share of inputs whose random tree differs from the likeliest. `stuck` describes the
    likeliest answer to nearly every input, if it hardly depends on the input.
    """

    likeliest: Float[Tensor, "sets"]
    sampled: Float[Tensor, "sets"]
    one_sided: float
    differ: float
    learns_to_split: bool
    stuck: str = ""

    def numbers(self) -> dict[str, float]:
        """The numbers for the log."""
        likeliest = number(self.likeliest.mean())
        return {"likeliest": likeliest, "one_sided": self.one_sided}


@torch.no_grad()
def read_signs(
    model: DiCoNet,
    task: Task,
    sets: SetBatch,
    seeds: Int[Tensor, "sets"],
    target: Any | None = None,
) -> Signs:
    """Solves the same inputs with their likeliest trees and with random ones."""
    was_training = model.training
    model.eval()
    outcome, likeliest = _scored(model, task, sets, None, target)
    other, sampled = _scored(model, task, sets, seeds, target)
    model.train(was_training)
    tree, drawn = outcome.tree, other.tree
    moved = sets.sum((tree.leaves != drawn.leaves).to(sets.items.dtype)) > 0
    return Signs(
        likeliest,
        sampled,
        one_sided(tree),
        number(moved.double().mean()),
        bool(parameters_of(model.split)),
        stuck_at(task, sets, outcome.solution),
    )


def _scored(
    model: DiCoNet, task: Task, sets: SetBatch, seeds: Tensor | None, target: Any | None
) -> tuple[Outcome, Float[Tensor, "sets"]]:
    """Answers and their scores: the likelihood of the target if there is one, else the reward."""
    outcome = model(sets, seeds, target)
    log_prob = outcome.log_prob
    score = task.reward(sets, outcome.solution) if log_prob is None else log_prob
    return outcome, score.double()


def stuck_at(task: Task, sets: SetBatch, solution: Any) -> str:
    """A description of the answer to nearly every input, if it hardly depends on the input."""
    if isinstance(solution, Sequences) and getattr(task, "answer", "") == "subset":
        for chosen, words in ((solution.sizes, "nothing"), (sets.sizes - solution.sizes, "all")):
            if number((chosen == 0).double().mean()) > _NEARLY_EVERY:
                return f"to choose {words}"
    if isinstance(solution, Values) and not solution.values.is_floating_point():
        most = torch.bincount(solution.values).double().max() / max(len(solution.values), 1)
        if number(most) > _NEARLY_EVERY:
            return f"label {number(solution.values.double().mode()[0]):.0f}"
    return ""


def one_sided(tree: PartitionTree) -> float:
    """The share of items, over all cuts, in nodes whose cut left one side empty."""
    alone, total = 0.0, 0
    for level in tree.levels:
        if level.cut is None:
            continue
        nodes = level.sets.take(level.inner)
        second = nodes.sum(level.cut.side.to(torch.float32)).long()
        idle = (second == 0) | (second == nodes.sizes)
        alone += number((idle * nodes.sizes).sum())
        total += nodes.num_items
    return alone / max(total, 1)


def complaints(now: Signs, before: Signs | None = None) -> Iterator[str]:
    """Warnings, one line each, worst first; `before` are the signs at the start of training."""
    if before is not None and not (
        _above(now.likeliest, before.likeliest) or _above(now.sampled, before.sampled)
    ):
        yield (
            f"the score did not rise beyond chance: {_mean(before.sampled)} when training began"
            f" and {_mean(now.sampled)} now, on the same inputs. Try a larger split_lr, more"
            " tree_samples or more steps, smaller inputs first, and check_task(task)."
        )
    if now.learns_to_split and now.one_sided > _MOST_ONE_SIDED:
        yield (
            f"{now.one_sided:.0%} of the items are in nodes whose likeliest cut leaves one side"
            " empty. Try regulariser=0.1 (up to 1), which balances cuts, or a lower split_lr."
        )
    if now.learns_to_split and _above(now.sampled, now.likeliest):
        yield (
            f"the likeliest answers score {_mean(now.likeliest)}, below the {_mean(now.sampled)} of"
            " random ones. Try more steps; if the two sides of a cut are interchangeable,"
            " noise=2 can tell them apart; and best_of takes the best of several draws."
        )
    if now.stuck:
        yield (
            f"the likeliest answer to nearly every input is {now.stuck}. Is that better than a"
            " random answer? Then lower the penalties in the reward, or begin with smaller inputs."
        )
    if now.differ > _MOST_ONE_SIDED and _effect(now) < _LEAST_EFFECT:
        yield (
            "different trees of the same input score alike: the merge ignores its halves, or the"
            " reward does not depend on the division. Try a merge that reads both halves' answers."
        )


def _above(high: Float[Tensor, "sets"], low: Float[Tensor, "sets"]) -> bool:
    """Whether the first scores are significantly higher on the same inputs."""
    gain = high - low
    error = gain.std() / len(gain) ** 0.5 if len(gain) > 1 else torch.zeros_like(gain.sum())
    return bool(number(gain.mean()) > _SURE * number(error))


def _effect(signs: Signs) -> float:
    """The difference between the scores of two trees of an input, relative to the scores."""
    apart = number((signs.likeliest - signs.sampled).abs().mean())
    return apart / max(number(signs.sampled.abs().mean()), 1e-30)


def _mean(score: Float[Tensor, "sets"]) -> str:
    return f"{number(score.mean()):.4g}"


_UNREADABLE = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors to ignore: a custom loss may train a network without trees, or a task with another kind
of reward, and these checks must not stop it."""

_CHECKS = 20
"""The number of checks in a run, few enough to cost next to nothing."""


class Watch:
    """Checks a network at the start of training, about 20 times during it, and at the end.

    At the end it compares with the start on the inputs of the first batch; a resumed run, whose
    start it did not see, is checked without comparison.
    """

    def __init__(self, model: DiCoNet, task: Task) -> None:
        self._model, self._task = model, task
        self._first: tuple[Batch, Signs | None] | None = None
        self._next = 0.0
        self.complaints: list[str] = []
        self.numbers: dict[str, float] = {}

    def before(self, batch: Batch) -> None:
        """To be called before a step."""
        if batch.step == 0:
            self._first = batch, self._read(batch)

    def after(self, batch: Batch, is_last: bool) -> None:
        """To be called after a step."""
        self.numbers, begun = {}, None
        if is_last and self._first is not None:
            batch, begun = self._first
        elif not is_last and batch.share < self._next:
            return
        self._next = batch.share + 1 / _CHECKS
        signs = self._read(batch)
        if signs is not None:
            self.numbers, self.complaints = signs.numbers(), list(complaints(signs, begun))

    def _read(self, batch: Batch) -> Signs | None:
        seeds = batch.seeds.reshape(len(batch.sets), -1)[:, 0]
        try:
            return read_signs(self._model, self._task, batch.sets, seeds, batch.target)
        except _UNREADABLE:
            return None
