"""The general networks train where tensors do not lie on the CPU; see `tests/made_up_device.py`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diconet.core.answers import Sequences, Values
from diconet.core.relations import Relations
from diconet.core.segments import segment_sort
from diconet.core.sets import SetBatch
from diconet.learn import TrainConfig, train
from diconet.nets.default import network_for
from tests.made_up_device import Elsewhere, MadeUpDevice

SHORT = TrainConfig(steps=2, batch_size=2, tree_samples=2, min_size=6, max_size=8)


class Anything:
    """Random graphs; any kind of answer, rewarded by something that torch alone can work out."""

    num_features = 2

    def __init__(self, answer: str, graph: bool = True, **attributes: Any) -> None:
        self.answer, self._graph = answer, graph
        vars(self).update(attributes)

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.randn(num_sets, set_size, 2, generator=rng)
        near = torch.cdist(items, items) < 1
        edges = Relations.where(near) if self._graph else None
        sizes = torch.full((num_sets,), set_size)
        return SetBatch.pack(items.flatten(0, 1), sizes, relations=edges)

    def reward(self, sets: SetBatch, solution: Any) -> torch.Tensor:
        first = sets.items[:, 0]
        if isinstance(solution, Values):
            return -(solution.values.to(first.dtype) - sets.mean(first)).abs()
        if self.answer == "partition":
            return sets.mean(solution.leaves.to(first.dtype) * first)
        if self.answer == "subset":
            return sets.mean(solution.mask(sets).to(first.dtype) * first)
        return sets.mean(first[solution.rows(sets)] * sets.position.to(first.dtype))


class WithOracle(Anything):
    """The same with targets."""

    def oracle(self, sets: SetBatch) -> Any:
        first = sets.items[:, 0]
        if self.answer == "subset":
            return Sequences.where(sets, first > 0)
        if self.answer == "number":
            return Values(sets.mean(first))
        if self.answer == "label":
            return Values((sets.mean(first) > 0).long())
        return Sequences(sets.position[segment_sort(first, sets.owner)], sets.sizes)


TASKS = {
    "coins": Anything("partition", num_parts=4),
    "one cut": Anything("partition", one_cut=True),
    "points": Anything("partition", graph=False, one_cut=True),
    "sequence": Anything("partition", graph=False, ordered=True),
    **{kind: Anything(kind) for kind in ("subset", "order", "path", "number", "label")},
    **{f"{kind} by oracle": WithOracle(kind) for kind in ("subset", "order", "number", "label")},
}


@pytest.mark.parametrize("name", TASKS)
def test_learns_elsewhere_what_it_learns_here(name: str) -> None:
    task, depth = TASKS[name], 1 if "path" in name or "order" in name else None

    def made() -> Any:
        torch.manual_seed(0)
        return network_for(task, width=8, num_layers=2, depth=depth)

    here, there = train(made(), task, SHORT, quiet=True), made()
    with MadeUpDevice() as device:
        train(there, task, SHORT, device=device, quiet=True)
    for ours, theirs in zip(here.parameters(), there.parameters(), strict=True):
        assert isinstance(theirs, Elsewhere)
        assert torch.allclose(ours, theirs.inner, atol=1e-5)
