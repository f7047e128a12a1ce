from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diconet.core.answers import Sequences
from diconet.core.coin import RandomSplit
from diconet.core.model import DiCoNet
from diconet.core.noise import seeds_from
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut, Growth, fold, grow
from diconet.nets.classic import MedianSplit
from diconet.problems.hull import triples
from diconet.problems.hull.calipers import all_edges
from diconet.problems.hull.clouds import CLOUDS, CloudTask
from diconet.problems.hull.task import HullTask, exact, hull_of
from diconet.problems.hull.triples import TripleJudge, TripleMerge, whiten
from tests.problems.hull.exact import cross, exact_judge, exact_merge


def network(split: torch.nn.Module, leaf_size: int = 8) -> DiCoNet:
    return DiCoNet(split, exact_merge(), Growth(leaf_size=leaf_size))


@pytest.mark.parametrize("leaf_size", [1, 3, 8])
@pytest.mark.parametrize("split", [RandomSplit(), MedianSplit()], ids=["random", "median"])
@pytest.mark.parametrize("size", [3, 7, 20, 150])
def test_with_an_exact_judge_any_tree_gives_the_hull(
    size: int, split: torch.nn.Module, leaf_size: int, rng: torch.Generator
) -> None:
    task = CloudTask(("uniform", "gaussian", "clustered", "stretched"))
    sets = task.sample(40, size, rng=rng)
    found = network(split, leaf_size)(sets, seeds_from(rng, 40)).solution
    assert exact(found, task.oracle(sets)).all()


def test_all_points_of_a_circle_stay(rng: torch.Generator) -> None:
    sets = CloudTask(("circle",)).sample(5, 60, rng=rng)
    found = network(RandomSplit())(sets, seeds_from(rng, 5)).solution
    assert exact(found, HullTask().oracle(sets)).all()


def test_one_and_two_points_are_their_own_hull() -> None:
    sets = SetBatch.of([torch.zeros(1, 2), torch.eye(2), torch.zeros(2, 2)])
    assert network(MedianSplit(), leaf_size=1)(sets).solution.sizes.tolist() == [1, 2, 2]


def test_a_cut_that_leaves_a_side_empty_does_no_harm(rng: torch.Generator) -> None:
    class Lopsided(torch.nn.Module):
        def forward(self, sets: SetBatch, seeds: torch.Tensor | None) -> Cut:
            side = torch.zeros(sets.num_items, dtype=torch.bool)
            return Cut(side, sets.items.new_zeros(len(sets)))

    sets = HullTask().sample(10, 12, rng=rng)
    model = DiCoNet(Lopsided(), exact_merge(), depth=2)
    assert exact(model(sets).solution, HullTask().oracle(sets)).all()


def test_answers_are_the_same_alone_in_a_batch_and_in_pieces(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = DiCoNet(RandomSplit(), TripleMerge(TripleJudge(3)), Growth(leaf_size=4))
    clouds = [torch.rand(n, 2, generator=rng) for n in (3, 9, 31)]
    seeds = seeds_from(rng, 3)
    with torch.no_grad():
        together = model(SetBatch.of(clouds), seeds).solution.unpack()
        monkeypatch.setattr(triples, "_CHUNK", 5)
        pieces = model(SetBatch.of(clouds), seeds).solution.unpack()
        alone = [
            model(SetBatch.of([cloud]), seed[None]).solution.places
            for cloud, seed in zip(clouds, seeds, strict=True)
        ]
    assert all(a.equal(b) for a, b in zip(together, alone, strict=True))
    assert all(a.equal(b) for a, b in zip(together, pieces, strict=True))


def test_an_answer_is_a_cycle_without_repeats_whatever_the_weights(rng: torch.Generator) -> None:
    sets = HullTask().sample(30, 25, rng=rng)
    for seed in range(3):
        torch.manual_seed(seed)
        model = DiCoNet(RandomSplit(), TripleMerge(TripleJudge(2)), Growth(leaf_size=6))
        for places in model(sets).solution.unpack():
            assert len(places) >= 1
            assert len(places) == len(places.unique())


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_shift_and_scale_do_not_matter(scale: float, rng: torch.Generator) -> None:
    cloud = CLOUDS["uniform"](20, 60, rng).reshape(-1, 2)
    sets = SetBatch.pack(cloud, torch.full((20,), 60))
    moved = sets.with_items(scale * cloud + torch.tensor([1e3 * scale, -1e3 * scale]))
    found = network(MedianSplit())(moved).solution
    assert exact(found, HullTask().oracle(sets)).all()


def test_whitened_points_have_unit_covariance_and_keep_their_turns(rng: torch.Generator) -> None:
    cloud = CLOUDS["stretched"](1, 50, rng)[0]
    sets = SetBatch.of([cloud, cloud + 1e5, torch.zeros(4, 2, dtype=torch.float64)])
    first, second, equal = whiten(sets).split([50, 50, 4])
    torch.testing.assert_close(first.T @ first / 50, torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(second, first, atol=1e-5, rtol=1e-5)
    assert (equal == 0).all()
    for i in range(0, 48, 3):
        before, after = (cross(*points[i : i + 3]) for points in (cloud, first))
        assert (before > 0) == (after > 0)


def naive_log_prob(
    merge: TripleMerge, points: torch.Tensor, target: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """One set of which all pairs are candidates: log-probability to draw the target, or to keep it.

    Straight from the definition: a softmax for every point over its edges and over having none.
    """
    sets = SetBatch.of([points])
    edges = all_edges(sets)
    score = merge.judge(whiten(sets), edges)
    table = torch.full((len(points), len(points)), -torch.inf)
    table[edges.tail, edges.head] = score
    draw, keep = torch.zeros(()), torch.zeros(())
    for i in range(len(points)):
        odds = torch.softmax(torch.cat([torch.zeros(1), table[i]]), 0)
        chosen = 1 + target[(target.index(i) + 1) % len(target)] if i in target else 0
        draw = draw + torch.log(odds[chosen] + (merge.epsilon if i in target else 0))
        if i in target:
            keep = keep + torch.log(1 - odds[0])
    return draw, keep


def test_likelihood_at_a_leaf_is_a_softmax_for_every_point(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    merge = TripleMerge(TripleJudge(2, resolution=0.5))
    clouds = [torch.rand(n, 2, generator=rng) for n in (3, 5, 8)]
    sets = SetBatch.of(clouds)
    target = HullTask().oracle(sets)
    tree = grow(RandomSplit(), sets, Growth(depth=0))
    found = fold(merge, tree, target).log_prob
    expected = [
        naive_log_prob(merge, cloud, places.tolist())[0]
        for cloud, places in zip(clouds, target.unpack(), strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-5, rtol=1e-5)


def test_likelihood_counts_that_every_corner_survives_below_the_root(rng: torch.Generator) -> None:
    """Two leaves of four points: keep the corners at both, then draw the target from what is left.

    With patience next to 1 nothing is dropped, so the root sees all eight points.
    """
    torch.manual_seed(1)
    merge = TripleMerge(TripleJudge(1, resolution=0.5), patience=1 - 1e-12)
    points = torch.rand(8, 2, generator=rng)
    sets = SetBatch.of([points])
    target = HullTask().oracle(sets)
    tree = grow(MedianSplit(), sets, Growth(depth=1))
    halves = points[points[:, 0].argsort()].split(4)
    corners = {tuple(points[i].tolist()) for i in target.places.tolist()}
    below = sum(
        naive_log_prob(
            merge, half, [i for i in range(4) if tuple(half[i].tolist()) in corners] or [0]
        )[1]
        for half in halves
        if any(tuple(p.tolist()) in corners for p in half)
    )
    leaf = merge(tree.levels[1], None, target)
    torch.testing.assert_close(leaf.log_prob[0], below, atol=1e-5, rtol=1e-5)
    root = merge(tree.levels[0], leaf, target)
    assert (root.log_prob < leaf.log_prob).all()


def test_corners_of_the_target_are_kept_however_bad_the_judge(rng: torch.Generator) -> None:
    judge = exact_judge()
    with torch.no_grad():
        judge.forms.neg_()
    sets = HullTask().sample(6, 30, rng=rng)
    target = HullTask().oracle(sets)
    tree = grow(MedianSplit(), sets, Growth(leaf_size=8))
    answer = None
    for level in reversed(tree.levels[1:]):
        answer = TripleMerge(judge)(level, answer, target)
    assert answer is not None
    assert set(target.rows(sets).tolist()) <= set(answer.sets.index.tolist())


def test_a_sure_judge_gives_the_target_probability_one(rng: torch.Generator) -> None:
    sets = HullTask().sample(5, 20, rng=rng)
    tree = grow(MedianSplit(), sets, Growth(leaf_size=8))
    merge = TripleMerge(exact_judge(resolution=1e-12))
    log_prob = fold(merge, tree, HullTask().oracle(sets)).log_prob
    torch.testing.assert_close(log_prob, torch.zeros(5), atol=1e-3, rtol=0)
    wrong = Sequences.of([torch.arange(3)] * 5)
    assert (fold(merge, tree, wrong).log_prob < -5).all()


def test_gradients_reach_the_forms_from_root_and_leaves(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    merge = TripleMerge(TripleJudge(2))
    sets = HullTask().sample(4, 20, rng=rng)
    tree = grow(RandomSplit(), sets, Growth(leaf_size=8), seeds_from(rng, 4))
    fold(merge, tree, HullTask().oracle(sets)).log_prob.sum().backward()
    assert merge.judge.forms.grad is not None
    assert torch.isfinite(merge.judge.forms.grad).all()
    assert (merge.judge.forms.grad != 0).all()


def test_patience_keeps_points_in_doubt() -> None:
    """A judge for which every witness is a tie: each edge scores 0, each point has even odds."""
    judge = TripleJudge(1)
    torch.nn.init.zeros_(judge.forms)
    tree = grow(MedianSplit(), SetBatch.of([torch.rand(4, 2)]), Growth(depth=0))
    kept = {p: TripleMerge(judge, p)(tree.levels[0], None, None).sets.sizes for p in (0.5, 0.6)}
    assert kept[0.5].tolist() == [1]  # never none at all
    assert kept[0.6].tolist() == [4]


@pytest.mark.parametrize("width", [3, 6, 12])
def test_points_in_line_do_not_hide_the_corners_behind_them(width: int) -> None:
    """Lattice points: ties in nearly every turn."""
    rng = np.random.default_rng(width)
    clouds = [np.unique(rng.integers(0, width, (40, 2)), axis=0).astype(float) for _ in range(30)]
    model = DiCoNet(RandomSplit(), exact_merge(patience=0.9), Growth(leaf_size=6))
    answers = model(SetBatch.of([torch.from_numpy(points) for points in clouds])).solution.unpack()
    for points, found in zip(clouds, answers, strict=True):
        assert set(hull_of(points).tolist()) <= set(found.tolist())


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"patience must be at least 0.5 and below 1; got 1\."):
        TripleMerge(patience=1)
    with pytest.raises(ValueError, match="num_forms must be at least 1; got 0"):
        TripleJudge(0)
    with pytest.raises(ValueError, match="resolution must be above 0; got 0"):
        TripleJudge(1, 0)
    TripleMerge(TripleJudge(1, 1e-9), patience=0.5)


def test_a_witness_counts_by_the_inverse_hyperbolic_sine() -> None:
    """Right triangle: the third corner lies to the left of each edge by sines 1/2^0.5 and 1.

    For the edge (0, 0) -> (1, 0) and the witness (0, 1): sin 90 at the tail, sin 45 at the head.
    """
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    edges = all_edges(SetBatch.of([points]))
    with torch.no_grad():
        score = exact_judge(resolution=0.1)(points, edges)
    expected = math.asinh((1 + math.sqrt(0.5)) / 0.1)
    assert float(score[0]) == pytest.approx(expected, rel=1e-5)
    assert float(score[1]) == pytest.approx(
        -expected, rel=1e-5
    )  # (0, 0) -> (0, 1) has the other corner to its right
