"""`network_for`: builds a network for a user's task from the task's attributes."""

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
"""The number and size of the sets drawn to inspect a task's inputs."""


_GROWING = (10, 20, 40)
"""Set sizes at which the growth of the numbers to be learned is measured."""

_LEAF = 16
"""Sets to be ordered are halved down to this size."""


def network_for(
    task: Task,
    *,
    depth: int | None = None,
    split: Way | None = None,
    noise: int | None = None,
    width: int = 32,
    num_layers: int = 5,
) -> DiCoNet:
    """An untrained network for the kind of answer that a task has.

    A task may have these attributes besides `num_features`, `sample` and `reward`:

    - `answer`: "partition" (the default), "subset", "order", "path", "number" or "label";
    - `num_parts`: the maximum number of parts of a partition (default 2);
    - `num_labels`: the number of labels; `per_item`: a number or label for every item;
    - `one_cut`: a cut is one threshold along one direction, so that parts lie side by side (the
      default for sets and sequences); `cut_along`: the features that may be directions;
    - `exchangeable`: False if the two sides of a cut mean different things;
    - `ordered`: items are a sequence, whose order matters;
    - `leaf_solver`: a callable that solves a small set, so that the split learns to divide for it;
    - `depth`: the depth of the trees, in cuts.

    `depth`, `split` ("coins", one "cut", or "picks" item by item), `noise` (random channels),
    `width` and `num_layers` override the defaults. With `split="coins"`, a subset learned from a
    reward is also chosen by coins.
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
    """The contexts of sets of several sizes, since a capacity or a rank mostly grows with them."""
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
    """How to split: one draw per cut if the task says so, or if the sides of a set are alike.

    Sequences are cut into runs, whatever the answer, so that concatenating them keeps the order.
    Graphs are not cut along a line. If their edges have features, such as signs, these matter pair
    by pair, so items are picked one by one; otherwise each item has a coin that depends on its
    neighbours.
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
    # a choice learned from a reward has enough to learn without a division
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
    """The scale and centre of a task's numbers, and the power of the set size with which they grow.

    Sums, counts of pairs and lengths of tours grow with the size; divided by the size to that
    power, what remains to be learned does not.
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
