"""It says when it does not learn, and why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diconet.core.answers import Sequences, Values
from diconet.core.coin import RandomSplit, coin_cut
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, PartitionTree
from diconet.learn import TrainConfig, diagnose, train
from diconet.learn.signs import Signs, complaints, one_sided, read_signs, stuck_at
from diconet.nets.default import network_for
from diconet.nets.set_split import SetSplit

SHORT = TrainConfig(
    steps=30, batch_size=32, tree_samples=4, min_size=10, max_size=10, split_lr=0.05
)


class Sides:
    """Points on a line; a cut between left and right of zero earns most."""

    num_features = 1

    def __init__(self, worth: float = 1.0) -> None:
        self.worth = worth

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        items = torch.randn(num_sets * set_size, 1, generator=rng)
        return SetBatch.pack(items, torch.full((num_sets,), set_size))

    def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
        sign = torch.where(solution.leaves > 0, 1.0, -1.0)
        return self.worth * sets.mean(sign * sets.items[:, 0].sign())


class Shift(nn.Module):
    """Cuts by a line that it knows: the side is the sign of the first feature plus a shift."""

    def __init__(self, shift: float, firmness: float = 10.0) -> None:
        super().__init__()
        self.config: dict[str, Any] = {"shift": shift, "firmness": firmness}
        self.shift = nn.Parameter(torch.tensor(shift))
        self.firmness = firmness

    def forward(self, sets: SetBatch, seeds: Tensor | None) -> Cut:
        return coin_cut(sets, self.firmness * (sets.items[:, 0] + self.shift), seeds)


def signs_of(split: nn.Module, task: Sides, rng: torch.Generator) -> Signs:
    sets = task.sample(64, 10, rng=rng)
    return read_signs(DiCoNet(split, depth=1), task, sets, seeds_from(rng, 64))


def test_a_network_that_cuts_well_draws_no_complaint(rng: torch.Generator) -> None:
    assert list(complaints(signs_of(Shift(0.0), Sides(), rng))) == []


def test_cuts_that_leave_one_side_empty_are_named(rng: torch.Generator) -> None:
    signs = signs_of(Shift(100.0), Sides(), rng)
    assert signs.one_sided == 1
    (line,) = complaints(signs)
    assert line.startswith("100% of the items are in nodes whose likeliest cut leaves one side")
    assert "regulariser" in line


def test_one_sided_cuts_are_counted_by_items() -> None:
    """A set of 6 cut in 3 and 3, one of 2 left as it is: 2 of 8 items."""
    items = torch.tensor([[-1.0], [-1], [-1], [1], [1], [1], [5], [5]])
    sets = SetBatch.pack(items, torch.tensor([6, 2]))
    tree = DiCoNet(Shift(0.0), depth=1)(sets).tree
    assert one_sided(tree) == pytest.approx(2 / 8)


def test_a_likeliest_tree_below_the_drawn_ones_is_named(rng: torch.Generator) -> None:
    """Coins just below fair: drawn, they cut evenly; the likeliest cut leaves a side empty."""

    class Even(Sides):
        def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
            return -(sets.mean(solution.leaves.float()) - 0.5).abs()

    lines = list(complaints(signs_of(Shift(-100.0, firmness=0.001), Even(), rng)))
    assert any(line.startswith("the likeliest answers score") for line in lines)


def test_a_score_that_no_tree_changes_is_named(rng: torch.Generator) -> None:
    class Blind(Sides):
        def reward(self, sets: SetBatch, solution: PartitionTree) -> Tensor:
            return sets.mean(sets.items[:, 0])

    (line,) = complaints(signs_of(Shift(0.0, firmness=0.1), Blind(), rng))
    assert line.startswith("different trees of the same input score alike")


class Dear:
    """Items that cost more than they are worth: the best subset is none of them, or all."""

    num_features = 1
    answer = "subset"
    sample = Sides.sample

    def __init__(self, worth: float) -> None:
        self.worth = worth

    def reward(self, sets: SetBatch, solution: Sequences) -> Tensor:
        return sets.mean(self.worth * solution.mask(sets).float())


@pytest.mark.parametrize(("worth", "words"), [(-1.0, "choose nothing"), (1.0, "choose all")])
def test_a_subset_that_is_all_or_nothing_is_named(
    worth: float, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    task = Dear(worth)
    model = network_for(task, width=8, num_layers=1)
    train(model, task, replace(SHORT, steps=60, merge_lr=0.05))
    assert f"the likeliest answer to nearly every input is to {words}" in capsys.readouterr().err
    assert diagnose(model, task, set_size=10).advice[0].startswith("the likeliest answer to nearly")


def test_one_label_for_every_input_is_named() -> None:
    sets = SetBatch.pack(torch.zeros(40, 1), torch.full((20,), 2))
    assert stuck_at(Sides(), sets, Values(torch.full((20,), 3))) == "label 3"
    assert stuck_at(Sides(), sets, Values(torch.arange(20) % 2)) == ""


def test_a_split_without_anything_to_learn_is_not_blamed(rng: torch.Generator) -> None:
    signs = signs_of(RandomSplit(), Sides(), rng)
    assert not signs.learns_to_split
    assert list(complaints(signs)) == []


@pytest.mark.parametrize(("worth", "flat"), [(1.0, False), (0.0, True)])
def test_a_run_says_in_the_end_whether_the_score_rose(
    worth: float, flat: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = DiCoNet(SetSplit(1, 8, 2, "tanh"), depth=1)
    train(model, Sides(worth), SHORT, run=tmp_path)
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    said = [one["warning"] for one in records if "warning" in one]
    assert any(line.startswith("the score did not rise") for line in said) == flat
    assert ("warning: the score did not rise" in capsys.readouterr().err) == flat
    assert all({"likeliest", "one_sided"} <= one.keys() for one in records if one["step"] == 30
               and "score" in one)  # fmt: skip


def test_a_quiet_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    train(DiCoNet(SetSplit(1, 8, 2), depth=1), Sides(0.0), SHORT, quiet=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [AttributeError, IndexError])
def test_a_loss_of_one_s_own_may_train_what_the_watch_cannot_read(error: type[Exception]) -> None:
    class Odd(Sides):
        def reward(self, sets: SetBatch, solution: object) -> Tensor:
            raise error("only a merge makes what this rewards")

    def shrink(model: DiCoNet, *_: Any) -> Any:
        value = sum(p.square().sum() for p in model.parameters())
        return value, {"loss": value.item(), "score": -value.item()}

    train(DiCoNet(SetSplit(1, 4, 1), depth=1), Odd(), SHORT, loss=shrink, quiet=True)


def test_divisions_side_by_side() -> None:
    report = diagnose(DiCoNet(Shift(0.0), depth=1), Sides(), set_size=20, num_sets=64)
    rows = {row.division: row for row in report.rows}
    assert list(rows) == ["learned", "learned, drawn", "random", "median", "none"]
    assert rows["learned"].score == pytest.approx(1)
    assert rows["learned"].behind == 0
    assert rows["random"].score == pytest.approx(0, abs=0.1)
    assert 0.5 < rows["median"].score < 1  # the median is not quite zero
    assert rows["none"].behind == pytest.approx(1 - rows["none"].score)
    assert report.advice == ()
    assert report.records()[0] == {"division": "learned", "score": 1.0, "behind": 0.0, "error": 0.0}
    assert "64 fresh inputs of 20 items" in repr(report)
    assert "median" in repr(report)


def test_a_division_that_does_not_pay_is_named() -> None:
    report = diagnose(DiCoNet(Shift(-9.0), depth=1), Sides(), set_size=20, num_sets=64)
    assert any("none division does as well" in line.replace("random and ", "").replace(
        "median and ", "") for line in report.advice)  # fmt: skip
    assert "- " in repr(report)


def test_reports_are_of_test_inputs_and_repeat() -> None:
    model = DiCoNet(SetSplit(1, 4, 1), depth=1)
    first, again, other = (diagnose(model, Sides(), num_sets=8, seed=s) for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_chance_is_what_the_network_earns_with_new_weights() -> None:
    torch.manual_seed(1)
    task, model = Sides(), DiCoNet(SetSplit(1, 4, 1), depth=1)
    train(model, task, replace(SHORT, steps=60), quiet=True)
    before = [weight.clone() for weight in model.parameters()]
    rows = {row.division: row.score for row in diagnose(model, task, set_size=10).rows}
    assert abs(rows["untrained"]) < 0.5 < abs(rows["learned"])
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def test_a_network_that_does_not_divide_is_compared_with_chance_alone() -> None:
    report = diagnose(network_for(Dear(1.0), width=8, num_layers=1), Dear(1.0), num_sets=8)
    assert [row.division for row in report.rows] == ["learned", "learned, drawn", "untrained"]
