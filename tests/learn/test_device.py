"""Training and solving where tensors do not lie on the CPU; see `tests/made_up_device.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diconet.core.coin import RandomSplit
from diconet.core.host import from_host, to_host
from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth
from diconet.learn import Loss, TrainConfig, branch_loss, paper_loss, train, tree_loss
from diconet.nets.pointer import PointerMerge
from diconet.nets.set_split import SetSplit
from diconet.problems.hull.task import HullTask
from tests.made_up_device import THERE, DeviceError, Elsewhere, MadeUpDevice

SHORT = TrainConfig(
    steps=3, batch_size=2, tree_samples=2, min_size=6, max_size=8, regulariser=0.5,
    schedule="epoch", log_every=1, checkpoint_every=2,
)  # fmt: skip


class Spread(HullTask):
    """Rewards leaves that lie close together, with nothing but torch."""

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        leaf = solution.leaves + 8 * sets.owner  # a tree of depth 2 has no more than 4 leaves
        total = sets.items.new_zeros(8 * len(sets), 2).index_add(0, leaf, sets.items)
        many = sets.items.new_zeros(8 * len(sets), 1).index_add(0, leaf, sets.items[:, :1] * 0 + 1)
        return -sets.mean((sets.items - (total / many.clamp(min=1))[leaf]).square().sum(1))


def splits(**options: Any) -> DiCoNet:
    torch.manual_seed(0)
    return DiCoNet(SetSplit(2, 8, 2), **options)


@pytest.mark.parametrize("loss", [paper_loss, tree_loss, branch_loss])
def test_a_split_learns_elsewhere_what_it_learns_here(loss: Loss) -> None:
    task = Spread()
    here = train(splits(depth=2), task, SHORT, loss=loss, quiet=True)
    with MadeUpDevice(read_numbers=False) as device:
        there = train(splits(depth=2), task, SHORT, loss=loss, device=device, quiet=True)
    for ours, theirs in zip(here.parameters(), there.parameters(), strict=True):
        assert isinstance(theirs, Elsewhere)
        assert torch.equal(ours, theirs.inner)


def test_a_pointer_merge_learns_elsewhere_and_goes_on_here(tmp_path: Path) -> None:
    """With targets, a run folder, and a checkpoint that does not depend on the device."""

    def hulls() -> DiCoNet:
        torch.manual_seed(1)
        return splits(merge=PointerMerge(2, 8), growth=Growth(halve_to=4.0))

    task, more = HullTask(), TrainConfig(**{**vars(SHORT), "steps": 4})
    whole = train(hulls(), task, more, oracle=task.oracle, run=tmp_path / "a", quiet=True)
    run: dict[str, Any] = {"oracle": task.oracle, "run": tmp_path / "b", "quiet": True}
    with MadeUpDevice() as device:
        train(hulls(), task, SHORT, **run, device=device)
        train(hulls(), task, more, **run, device=device)
    again = train(hulls(), task, more, **run)
    for ours, theirs in zip(whole.parameters(), again.parameters(), strict=True):
        assert theirs.device.type == "cpu"
        torch.testing.assert_close(ours, theirs)


def test_a_network_answers_elsewhere_as_it_does_here(rng: torch.Generator) -> None:
    model = splits(merge=PointerMerge(2, 8), growth=Growth(leaf_size=4)).eval()
    sets = HullTask().sample(3, 20, rng=rng)
    with torch.no_grad():
        here = model(sets)
        with MadeUpDevice() as device:
            there = model.to(device)(sets.to(device))
            assert there.tree.leaves.device == there.solution.places.device == THERE
            leaves, places = to_host(there.tree.leaves), to_host(there.solution.places)
            back = from_host(leaves, there.tree.leaves)
            assert back.device == THERE
    assert leaves.tolist() == here.tree.leaves.tolist()
    assert places.tolist() == here.solution.places.tolist()


def test_random_cuts_are_the_same_elsewhere(rng: torch.Generator) -> None:
    sets = HullTask().sample(3, 20, rng=rng)
    model = DiCoNet(RandomSplit(), depth=3)
    with MadeUpDevice(read_numbers=False) as device:
        there = to_host(model(sets.to(device)).tree.leaves)
    assert there.tolist() == model(sets).tree.leaves.tolist()


class Planted(nn.Module):
    """A split with something in it that does not belong there."""

    def __init__(self, fault: Callable[[SetBatch], Tensor]) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.inner = SetSplit(2, 4, 1)
        self.fault = fault

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        return self.inner(sets.with_items(sets.items + self.fault(sets)), seeds)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda sets: sets.items.cpu().mean(0), "a copy to the CPU must go through"),
        (lambda sets: sets.items.to("cpu").mean(0), "a copy to the CPU must go through"),
        (lambda sets: torch.zeros(2), "torch.zeros must say a device"),
        (lambda sets: torch.tensor([0.0, 0.0]), "torch.tensor must say a device"),
        (lambda sets: torch.zeros(2, device="cpu"), "must not mix devices"),
        (lambda sets: sets.items[torch.zeros(1, dtype=torch.long, device="cpu")], "not mix"),
        (lambda sets: sets.items.clone().copy_(sets.items.new_zeros(2, device="cpu")), "not mix"),
        (lambda sets: sets.items.sum() * sets.items.sum().item(), "numbers must be read through"),
        (lambda sets: sets.items.sum() * sum(sets.sizes.tolist()), "numbers must be read through"),
    ],
)
def test_what_mixes_devices_or_copies_unseen_is_found(
    fault: Callable[[SetBatch], Tensor], message: str
) -> None:
    model = DiCoNet(Planted(fault), depth=1)
    train(model, Spread(), SHORT, quiet=True)  # which is fine on the CPU
    with MadeUpDevice(read_numbers=False) as device, pytest.raises(DeviceError, match=message):
        train(model, Spread(), SHORT, device=device, quiet=True)


def test_numbers_may_be_read_where_the_mode_says_so() -> None:
    with MadeUpDevice() as device:
        there = torch.arange(3, device=device)
        assert (there.sum().item(), there.tolist(), int(there[2])) == (3, [0, 1, 2], 2)
        with pytest.raises(DeviceError, match="a copy to the CPU"):
            there.sum().cpu()


def test_one_number_from_the_cpu_may_take_part() -> None:
    with MadeUpDevice() as device:
        there = torch.ones(3, device=device) * torch.tensor(2.0, device="cpu")
        assert to_host(there).tolist() == [2, 2, 2]
