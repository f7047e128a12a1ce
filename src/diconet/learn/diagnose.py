"""`diagnose`: compares a network's division with random, median and no division."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.coin import RandomSplit
from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator, seeds_from
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.core.tree import Cut, Growth, cut_in_order
from diconet.core.weights import parameters_of
from diconet.learn.signs import complaints, one_sided, read_signs

_TIE = 2.0
"""Standard errors beyond which a difference counts."""


@dataclass(frozen=True)
class Row:
    """The mean score of one way to divide, and its difference from the learned one's."""

    division: str
    score: float
    behind: float
    error: float


@dataclass(frozen=True)
class Report:
    """The result of `diagnose`: one row per way to divide, and lines of advice.

    `behind` is how much lower a row scores than the learned division on the same inputs, with its
    standard error.
    """

    rows: tuple[Row, ...]
    advice: tuple[str, ...]
    one_sided: float
    num_sets: int
    set_size: int

    def records(self) -> list[dict[str, Any]]:
        """One flat record per row, for tables and JSON."""
        return [vars(row).copy() for row in self.rows]

    def __repr__(self) -> str:
        lines = [f"{self.num_sets} fresh inputs of {self.set_size} items", ""]
        lines.append(f"{'division':<16}{'score':>12}{'behind':>12}{'+-':>10}")
        lines += [
            f"{row.division:<16}{row.score:>12.5g}{row.behind:>12.3g}{row.error:>10.2g}"
            for row in self.rows
        ]
        lines += ["", f"items in one-sided cuts: {self.one_sided:.0%}"]
        return "\n".join(lines + [f"- {line}" for line in self.advice])


@torch.no_grad()
def diagnose(
    model: DiCoNet, task: Task, *, set_size: int = 50, num_sets: int = 256, seed: int = 0
) -> Report:
    """Compares the learned division with random, median and no division on fresh inputs.

    All use the network's own merge and are scored by the task's reward. `untrained` draws answers
    from the same network with new weights, which is what chance earns. The inputs are test inputs,
    which no training has seen.

    Args:
        model: The network, trained or not.
        task: The task that it solves.
        set_size: Items per input.
        num_sets: The number of inputs.
        seed: Determines the inputs.

    Example:
        >>> print(diagnose(model, task))  # doctest: +SKIP
    """
    device = model.device
    rng = phase_generator("test", seed, set_size)
    sets = task.sample(num_sets, set_size, rng=rng).to(device)
    seeds = seeds_from(rng, num_sets).to(device)
    model.eval()
    learned = model(sets)
    scores = {"learned": task.reward(sets, learned.solution).double()}
    divides = model.growth.depth != 0
    if divides:
        scores |= other_divisions(model, task, sets, seeds)
    else:
        scores["learned, drawn"] = task.reward(sets, model(sets, seeds).solution).double()
    fresh = untrained(model)
    if fresh is not None:
        scores["untrained"] = task.reward(sets, fresh(sets, seeds).solution).double()
    rows = tuple(_row(name, score, scores["learned"]) for name, score in scores.items())
    signs = read_signs(model, task, sets, seeds)
    learns_to_divide = divides and bool(parameters_of(model.split))
    advice = (*complaints(signs), *_no_better(rows if learns_to_divide else ()))
    return Report(rows, advice, one_sided(learned.tree), num_sets, set_size)


@torch.no_grad()
def other_divisions(
    model: DiCoNet, task: Task, sets: SetBatch, seeds: Int[Tensor, "sets"]
) -> dict[str, Float[Tensor, "sets"]]:
    """The rewards of a network's merge with divisions other than the likeliest, by name.

    "none" is omitted if the task cannot reward a tree without cuts.
    """
    scores = {}
    for name, other, how in (
        ("learned, drawn", model, seeds),
        ("random", with_division(model, "random"), seeds),
        ("median", DiCoNet(_MedianSplit(), model.merge, model.growth), None),
        ("none", with_division(model, "none"), None),
    ):
        solution = other(sets, how).solution
        try:
            scores[name] = task.reward(sets, solution).double()
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            if name != "none":
                raise
    return scores


def with_division(model: DiCoNet, division: Literal["random", "none"]) -> DiCoNet:
    """The same merge on trees divided by a coin flip per item, or on undivided sets."""
    if division == "none":
        return DiCoNet(model.split, model.merge, Growth(depth=0))
    return DiCoNet(RandomSplit(), model.merge, model.growth)


def untrained(model: DiCoNet) -> DiCoNet | None:
    """The same network with new weights; None if some weights cannot be reinitialised."""
    fresh = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in fresh.modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
            elif next(module.parameters(recurse=False), None) is not None:
                return None
    return fresh


class _MedianSplit(nn.Module):
    """Equal halves along the feature with the largest spread in a set."""

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        centred = sets.items - sets.mean(sets.items)[sets.owner]
        widest = sets.mean(centred.square()).argmax(1)
        key = sets.items.gather(1, widest[sets.owner][:, None]).squeeze(1)
        return cut_in_order(sets, key, sets.sizes // 2)


def _row(name: str, score: Float[Tensor, "sets"], learned: Float[Tensor, "sets"]) -> Row:
    behind = learned - score
    error = number(behind.std()) / len(behind) ** 0.5 if len(behind) > 1 else 0.0
    return Row(name, number(score.mean()), number(behind.mean()), error)


def _no_better(rows: tuple[Row, ...]) -> Iterator[str]:
    """Advice if divisions without learning do as well as the learned one."""
    plain = [row for row in rows if row.division in ("random", "median", "none")]
    rivals = [row for row in plain if not row.behind > _TIE * row.error]
    if rivals:
        names = " and ".join(row.division for row in rivals)
        yield (
            f"{names} division does as well as the learned one: the division does not pay yet."
            " Try more steps, more tree_samples, or a wider split; if nothing changes, the task may"
            " not need a division."
        )
