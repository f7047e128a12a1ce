"""The network for anyone's task: which parts it gets follows from what the task says of itself."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import nn

from diconet.core.leaf_solver import LeafSolver
from diconet.core.model import DiCoNet
from diconet.core.noise import phase_generator
from diconet.core.sets import SetBatch
from diconet.core.task import Task
from diconet.core.tree import Growth
from diconet.nets.encoder import Inputs
from diconet.nets.general_split import GeneralSplit
from diconet.nets.one_cut import OneCutSplit
from diconet.nets.order import OrderMerge
from diconet.nets.path import PathMerge
from diconet.nets.pick import PickMerge, PickSplit
from diconet.nets.subset import SubsetMerge
from diconet.nets.value import ValueMerge

Answer = Literal["partition", "subset", "order", "path", "number", "label"]

Way = Literal["coins", "cut", "picks"]

_LOOK = (32, 20)
"""How many sets of how many items are drawn to see what a task's inputs look like."""


_GROWING = (10, 20, 40)
"""Sizes at which it is seen how the numbers to be learned grow."""

_LEAF = 16
"""Sets to be ordered are halved until they are no larger than this."""


def network_for(
    task: Task,
    *,
    depth: int | None = None,
    split: Way | None = None,
    noise: int | None = None,
    width: int = 32,
    num_layers: int = 5,
) -> DiCoNet:
    """A network, still untrained, for what a task says its answer is.

    A task may have these attributes beside `num_features`, `sample` and `reward`:

    - `answer`: "partition" (the default), "subset", "order", "path", "number" or "label";
    - `num_parts`: how many parts a partition has at most (2 where it says nothing);
    - `num_labels`: how many labels there are; `per_item`: a number or label for every item;
    - `one_cut`: a cut is one place along one direction, as parts lie side by side (what it is for
      sets and sequences unless told otherwise); `cut_along`: the features that may be directions;
    - `exchangeable`: False where the two sides of a cut mean different things;
    - `ordered`: items are a sequence, whose order matters;
    - `leaf_solver`: a callable that answers a small set, so that the split learns to divide for it;
    - `depth`: how many cuts deep trees are.

    `depth`, `split` ("coins", one "cut", or "picks" item by item), `noise` (random channels),
    `width` and `num_layers` override what would follow from these. With `split="coins"`, a subset
    that is learned from a reward is chosen by coins, too.
    """
    kind = _kind_of(task)
    look = task.sample(*_LOOK, rng=phase_generator("look", 0))
    context = _usual_context(task, look)
    inputs = Inputs.of(look, ordered=bool(getattr(task, "ordered", False)), context=context)
    if noise is None:
        noise = 2 if inputs.edge_features is not None else 0
    net = {**vars(inputs), "noise": noise, "width": width, "num_layers": num_layers}
    return DiCoNet(
        _split(task, kind, split or _way(task, kind, inputs), net),
        _merge(task, kind, look, net, split == "coins"),
        _growth(task, kind, depth),
    )


def _usual_context(task: Task, look: SetBatch) -> torch.Tensor:
    """The context of sets of several sizes, for a capacity or a rank mostly grows with them."""
    if not look.context.shape[1]:
        return look.context
    return torch.cat([sets.context for sets in _of_growing_size(task)])


def _of_growing_size(task: Task) -> list[SetBatch]:
    return [task.sample(_LOOK[0], n, rng=phase_generator("look", 0, n)) for n in _GROWING]


def _kind_of(task: Task) -> Answer:
    kind: Answer = getattr(task, "answer", "partition")
    if kind not in get_args(Answer):
        raise ValueError(f"answer must be one of {', '.join(get_args(Answer))}; got {kind!r}.")
    return kind


def _way(task: Task, kind: Answer, inputs: Inputs) -> Way:
    """One draw per cut where a task says so, and where sides of a set are alike.

    Sequences are cut into runs, whatever the answer: put together again, these are in order. Graphs
    are not cut along a line. If their edges have numbers of their own, such as signs, these
    count pair by pair, so items are picked one by one; else a coin for each follows its neighbours.
    """
    parts = kind == "partition"
    alike = parts and inputs.edge_features is None and _exchangeable(task)
    if getattr(task, "one_cut", inputs.ordered or alike):
        return "cut"
    return "picks" if parts and inputs.edge_features else "coins"


def _exchangeable(task: Task) -> bool:
    return bool(getattr(task, "exchangeable", True))


def _split(task: Task, kind: Answer, split: Way, net: dict[str, Any]) -> nn.Module:
    if split == "cut":
        return OneCutSplit(along=getattr(task, "cut_along", None), **net)
    if split == "picks":
        return PickSplit(**net)
    even = kind == "partition" and _exchangeable(task)
    return GeneralSplit(centred=even and net["edge_features"] is not None, **net)


def _growth(task: Task, kind: Answer, depth: int | None) -> Growth:
    if depth is None:
        depth = getattr(task, "depth", None)
    if depth is not None:
        return Growth(depth=depth)
    if kind == "partition":
        return Growth(depth=max(1, math.ceil(math.log2(getattr(task, "num_parts", 2)))))
    # a choice that is learned from a reward has enough to learn without a division beside it
    by_reward = getattr(task, "oracle", None) is None
    if kind == "path" or (kind in ("subset", "order") and by_reward):
        return Growth(depth=0)
    return Growth(halve_to=_LEAF) if kind == "order" else Growth(depth=1)


def _merge(
    task: Any, kind: Answer, look: Any, net: dict[str, Any], coins: bool
) -> nn.Module | None:
    solver = getattr(task, "leaf_solver", None)
    if solver is not None:
        return LeafSolver(solver)
    if kind == "partition":
        return None
    if kind == "subset":
        by_coins = coins or getattr(task, "oracle", None) is not None
        return SubsetMerge(**net) if by_coins else PickMerge(**net)
    if kind == "order":
        return OrderMerge(**net)
    if kind == "path":
        return PathMerge(**net)
    per_item = bool(getattr(task, "per_item", False))
    if kind == "label":
        return ValueMerge(num_labels=getattr(task, "num_labels", 2), per_item=per_item, **net)
    return ValueMerge(per_item=per_item, **_usual_values(task, look), **net)


def _usual_values(task: Any, look: SetBatch) -> dict[str, Any]:
    """The scale and centre of a task's numbers, and the power of the size with which they grow.

    Sums, counts of pairs and lengths of tours grow with the size; what is left to learn of them, by
    the size to that power, does not.
    """
    power = 0.0
    if getattr(task, "oracle", None) is None:
        known = look.items.double()
    else:
        drawn = [task.oracle(sets).values.double() for sets in _of_growing_size(task)]
        first, last = (float(values.square().mean().sqrt()) for values in (drawn[0], drawn[-1]))
        if first > 0 and last > 0:
            slope = math.log(last / first) / math.log(_GROWING[-1] / _GROWING[0])
            power = min(max(round(2 * slope) / 2, -2.0), 3.0)
        unit = [size**power for size in _GROWING]
        known = torch.cat([values / one for values, one in zip(drawn, unit, strict=True)])
    scale, centre = float(known.std(correction=0)) or 1.0, float(known.mean())
    return {"target_scale": scale, "target_centre": centre, "target_power": power}
