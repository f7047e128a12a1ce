"""Credit call by call for the knapsack recursion, as the authors' published code gives it."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.core.answers import Sequences
from diconet.core.host import number
from diconet.core.model import DiCoNet
from diconet.core.noise import mix, uniform
from diconet.core.segments import index_of
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.core.tree import Cut, children
from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.learn.estimators import policy_gradient
from diconet.problems.knapsack.greedy import worth

_OFTENER = 4.0
"""How much oftener a call is looked at than the one before it."""

_WHICH = 1
"""The salt of what draws a step's call."""


def call_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """REINFORCE at one call along the likeliest way, each sample finished by the likeliest calls.

    The samples of a call are compared with one another alone: what the calls before it chose is the
    same for all of them, and the calls after it add no noise of their own. Which call a step looks
    at is drawn: mostly the last, whose samples need no finishing and which decides how much room
    stays empty; each call before it a quarter as often as the next.
    """
    samples = config.tree_samples
    with torch.no_grad():
        likeliest = model(batch.sets)
        value = _packed(batch.sets, likeliest.solution)
    calls = [level for level in likeliest.tree.levels if level.cut is not None]
    level = calls[drawn_call(batch.seeds[0], len(calls))]
    example = level.example[level.inner]
    nodes = level.sets.take(level.inner).as_roots().repeat(samples)
    cut = model.split(nodes, batch.seeds.reshape(-1, samples)[example].flatten())
    with torch.no_grad():
        score = worth(nodes, ~cut.side) + _rest(model, nodes, cut)
    relative = score / value[example].clamp(min=1e-9).repeat_interleave(samples)
    loss = policy_gradient(cut.log_prob, relative, samples)
    score = task.reward(batch.sets, likeliest.solution)
    return loss, {"loss": number(loss), "score": number(score.mean())}


def drawn_call(seed: Int[Tensor, ""], num_calls: int) -> int:
    """The number of the call that a step looks at."""
    often = np.cumsum(_OFTENER ** np.arange(num_calls))
    draw = number(uniform(mix(seed, _WHICH))) * often[-1]
    return min(int(np.searchsorted(often, draw)), num_calls - 1)


def _rest(model: DiCoNet, nodes: SetBatch, cut: Cut) -> Float[Tensor, "sets"]:
    """What the likeliest calls after a cut add; nothing where the call was the last."""
    assert cut.closed is not None
    rest = worth(nodes, torch.zeros_like(cut.side))
    going = index_of(~cut.closed[:, 1])
    if len(going):
        second = children(nodes, cut).take(2 * going + 1).as_roots()
        rest[going] = _packed(second, model(second).solution)
    return rest


def _packed(sets: SetBatch, solution: Sequences) -> Float[Tensor, "sets"]:
    return worth(sets, solution.mask(sets))
