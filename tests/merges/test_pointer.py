from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from diconet.answers import Sequences
from diconet.merges import PointerMerge
from diconet.merges.attention import additive_scores
from diconet.merges.course import Way
from diconet.merges.frame import Frame, Normalise
from diconet.merges.pointer import _check_choices
from diconet.merges.routes import Gamma
from diconet.noise import seeds_from
from diconet.sets import SetBatch
from diconet.splits import RandomSplit
from diconet.tasks.hull import HullTask, hull_of
from diconet.tree import Growth, fold, grow
from tests.merges.naive import naive_log_prob


def small_merge(order: str = "given", spread: float = 3.0, **options: Any) -> PointerMerge:
    """A merge with weights so large that its choices differ from place to place."""
    torch.manual_seed(0)
    merge = PointerMerge(2, 6, order=order, **options)
    with torch.no_grad():
        for parameter in merge.parameters():
            parameter.mul_(spread)
        merge.end_key.normal_()
    return merge


def trees(num_sets: int, size: int, depth: int, rng: torch.Generator):
    sets = HullTask().sample(num_sets, size, rng=rng)
    seeds = seeds_from(rng, num_sets)
    return sets, grow(RandomSplit(), sets, Growth(depth=depth), seeds), seeds


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalise": "covariance"},
        {"normalise": "abreast"},
        {"attention": "course"},
        {"attention": "bearings"},
        {"attention": "bearings", "normalise": "facing"},
        {"attention": "course", "normalise": "facing"},
    ],
)
@pytest.mark.parametrize("order", ["given", "angle", "outline"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_likelihood_is_the_product_of_all_matrices(
    depth: int, order: str, options: dict[str, Any], rng: torch.Generator
) -> None:
    """The packed, sparse product equals dense matrices multiplied node by node."""
    merge = small_merge(order, patience=0.5, **options)
    sets, tree, seeds = trees(6, 8, depth, rng)
    target = HullTask().oracle(sets)
    got = fold(merge, tree, target).log_prob
    for i, (items, goal) in enumerate(zip(sets.unpack(), target.unpack(), strict=True)):
        one = SetBatch.of([items])
        alone = grow(RandomSplit(), one, Growth(depth=depth), seeds[i : i + 1])
        expected = naive_log_prob(merge, alone, goal.tolist())
        assert got[i].item() == pytest.approx(expected.item(), abs=1e-4)


@pytest.mark.parametrize("attention", ["plain", "bearings", "course"])
def test_the_likelihood_sums_to_one_over_all_answers(attention: str, rng: torch.Generator) -> None:
    """One leaf of three points: all sequences that may be answered have probability 1 together."""
    merge = small_merge(epsilon=1e-12, attention=attention)
    sets = HullTask().sample(1, 3, rng=rng)
    tree = grow(RandomSplit(), sets, Growth(depth=0))
    total = 0.0
    for length in (1, 2, 3):
        for places in itertools.permutations(range(3), length):
            total += _prob_of_order(merge, tree, list(places))
    assert total == pytest.approx(1.0, abs=1e-5)


def _prob_of_order(merge: PointerMerge, tree, places: list[int]) -> float:
    """p of exactly this order: `fold` turns a cycle to its first item, so hand it over turned."""
    level = tree.levels[0]
    from diconet.tree import halves

    pairs, _ = halves(level, None)
    memory = merge._encode(pairs, Frame.of(pairs, "spread"))
    rows = torch.tensor(places)
    taken = torch.full((3,), 3)
    taken[rows] = torch.arange(len(places))
    gamma, log_end = merge._attend(memory, memory.points[rows], taken, torch.tensor([len(places)]))
    hit = gamma.entry(torch.arange(len(places)), rows)
    return (hit.log().sum() + log_end[0]).exp().item()


def test_gradient_of_the_product_reaches_the_leaves(rng: torch.Generator) -> None:
    """Against finite differences in double precision, through two levels of own choices."""
    merge = small_merge(patience=0.5).double()
    sets, _, seeds = trees(2, 7, 2, rng)
    sets = sets.with_items(sets.items.double())
    tree = grow(RandomSplit(), sets, Growth(depth=2), seeds)
    target = HullTask().oracle(sets)
    parameter = merge.encoder.weight_hh_l0
    fold(merge, tree, target).log_prob.sum().backward()
    for place in [(0, 0), (3, 2), (11, 5), (17, 1)]:
        gradient = parameter.grad[place].item()
        values = []
        for shift in (1e-6, -1e-6):
            with torch.no_grad():
                parameter[place] += shift
                values.append(fold(merge, tree, target).log_prob.sum().item())
                parameter[place] -= shift
        assert gradient == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_binarised_levels_send_no_gradient_and_keep_the_floor(rng: torch.Generator) -> None:
    nodes = SetBatch.pack(torch.zeros(3, 2), torch.tensor([2, 1]))
    hard = Gamma.chosen(torch.tensor([1, 0, 2]), torch.tensor([2, 1]), nodes, floor=0.01)
    assert hard.prob.tolist() == pytest.approx([0.01, 0.98, 0.98, 0.01, 0.99])
    crowd = SetBatch.pack(torch.zeros(100, 2), torch.tensor([100]))
    hard = Gamma.chosen(torch.tensor([7]), torch.tensor([1]), crowd, floor=0.03)
    assert hard.prob.argmax() == 7
    assert hard.prob.min() > 0
    assert hard.prob.sum() <= 1

    merge = small_merge(patience=0.5)
    sets, tree, _ = trees(4, 9, 1, rng)
    target = HullTask().oracle(sets)
    soft = fold(merge, tree, target).log_prob
    merge.binarise = True
    hard_log_prob = fold(merge, tree, target).log_prob
    assert torch.isfinite(hard_log_prob).all()
    assert not torch.allclose(soft, hard_log_prob)


@pytest.mark.parametrize("patience", [0.1, 0.85])
def test_answers_never_repeat_an_item(patience: float, rng: torch.Generator) -> None:
    merge = small_merge(patience=patience)
    sizes = torch.randint(0, 15, (200,), generator=rng)
    sets = SetBatch.pack(torch.rand(int(sizes.sum()), 2, generator=rng), sizes)
    tree = grow(RandomSplit(), sets, Growth(depth=3), seeds_from(rng, 200))
    answer = fold(merge, tree).solution
    for places, size in zip(answer.unpack(), sizes.tolist(), strict=True):
        assert len(set(places.tolist())) == len(places)
        assert all(0 <= p < size for p in places.tolist())
        assert (len(places) > 0) == (size > 0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalise": "abreast"},
        {"attention": "course"},
        {"attention": "bearings", "normalise": "facing"},
    ],
)
@pytest.mark.parametrize("depth", [0, 2])
def test_a_set_gets_the_same_answer_alone_and_in_a_batch(
    depth: int, options: dict[str, Any], rng: torch.Generator
) -> None:
    merge = small_merge("angle", **options)
    sizes = torch.randint(2, 15, (20,), generator=rng)
    sets = SetBatch.pack(torch.rand(int(sizes.sum()), 2, generator=rng), sizes)
    seeds = seeds_from(rng, 20)
    target = HullTask().oracle(sets)
    tree = grow(RandomSplit(), sets, Growth(depth=depth), seeds)
    together, log_prob = fold(merge, tree).solution.unpack(), fold(merge, tree, target).log_prob
    for i, items in enumerate(sets.unpack()):
        one = SetBatch.of([items])
        alone = grow(RandomSplit(), one, Growth(depth=depth), seeds[i : i + 1])
        assert torch.equal(fold(merge, alone).solution.places, together[i])
        goal = Sequences.of([target.unpack()[i]])
        assert torch.allclose(fold(merge, alone, goal).log_prob, log_prob[i], atol=1e-4)


@pytest.mark.parametrize("attention", ["plain", "bearings", "course"])
def test_points_in_double_precision_are_welcome(attention: str, rng: torch.Generator) -> None:
    merge = small_merge("angle", attention=attention, normalise="covariance")
    sets, tree, seeds = trees(6, 12, 1, rng)
    fine = sets.with_items(sets.items.double())
    same = grow(RandomSplit(), fine, Growth(depth=1), seeds)
    target = HullTask().oracle(sets)
    assert torch.equal(fold(merge, tree).solution.places, fold(merge, same).solution.places)
    expected = fold(merge, tree, target).log_prob
    assert torch.allclose(fold(merge, same, target).log_prob.float(), expected, atol=1e-3)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_batch_of_no_sets_has_no_answers(depth: int) -> None:
    nothing = SetBatch.pack(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    tree = grow(RandomSplit(), nothing, Growth(depth=depth))
    assert len(fold(small_merge("angle"), tree).sets) == 0


def test_a_course_straight_on_goes_around_the_hull(rng: torch.Generator) -> None:
    """The farthest item along any course is a corner; from two corners on, straight on finds the
    third."""
    points = torch.rand(12, 2, generator=rng)
    nobody = torch.zeros(1, 2)
    goal = HullTask().oracle(SetBatch.of([points])).unpack()[0]
    start = Way.before(nobody)
    for course in torch.randn(20, 2, generator=rng):
        assert (start.bearing(points, torch.zeros(12, dtype=int)) @ course).argmax() in goal
    for here, there, beyond in zip(goal, goal.roll(-1), goal.roll(-2), strict=True):
        way = start.on_to(points[there][None])
        bearing = way.bearing(points, torch.zeros(12, dtype=int))
        scores = bearing @ (points[there] - points[here])
        scores[there] = -torch.inf
        assert scores.argmax() == beyond


def test_reading_by_angle_forgets_the_order_of_the_points(rng: torch.Generator) -> None:
    merge = small_merge("angle")
    points = torch.rand(9, 2, generator=rng)
    turn = torch.randperm(9, generator=rng)

    def answer(items: torch.Tensor) -> torch.Tensor:
        tree = grow(RandomSplit(), SetBatch.of([items]), Growth(depth=0))
        return items[fold(merge, tree).solution.places]

    assert torch.equal(answer(points), answer(points[turn]))


def test_an_outline_is_read_once_around(rng: torch.Generator) -> None:
    """Two hulls side by side: each in its own order, from the item that the node faces on."""
    points = torch.rand(2, 40, 2, generator=rng) + torch.tensor([[[0.0, 0]], [[1.5, 0]]])
    corners = [points[i][torch.from_numpy(hull_of(points[i].double().numpy()))] for i in (0, 1)]
    halves = SetBatch.of([c[torch.randperm(len(c), generator=rng)] for c in corners])
    frame = Frame.of(halves, "facing")
    read = halves.items[frame.by_outline(halves)].split(halves.sizes.tolist())
    seen = frame(halves.items, halves.owner // 2).square().sum(1)
    assert any(torch.equal(half[0], halves.items[seen.argmax()]) for half in read)
    for half, expected in zip(read, corners, strict=True):
        start = int((expected == half[0]).all(1).nonzero())
        assert torch.equal(half, expected.roll(-start, 0))


def test_a_stretched_node_is_seen_as_the_same(rng: torch.Generator) -> None:
    """With the covariance taken out, an upright stretch and a shift change nothing."""
    merge = small_merge("angle", normalise="covariance")
    points = torch.rand(9, 2, generator=rng)
    moved = points * torch.tensor([1.0, 0.05]) + 3

    def answer(items: torch.Tensor) -> list[int]:
        tree = grow(RandomSplit(), SetBatch.of([items]), Growth(depth=0))
        return fold(merge, tree).solution.places.tolist()

    assert answer(points) == answer(moved)


def test_a_node_that_faces_its_farthest_sees_no_turn_and_no_stretch(rng: torch.Generator) -> None:
    merge = small_merge("angle", normalise="facing", attention="bearings")
    points = torch.rand(9, 2, generator=rng)
    moved = points @ torch.tensor([[-0.6, 0.8], [-2.0, -1.0]]) + 3  # turned, stretched, slanted

    def answer(items: torch.Tensor) -> list[int]:
        tree = grow(RandomSplit(), SetBatch.of([items]), Growth(depth=0))
        return fold(merge, tree).solution.places.tolist()

    assert answer(points) == answer(moved)


def _with_nothing_beside(nodes: SetBatch) -> SetBatch:
    """Nodes as pairs of halves, the second one empty."""
    sizes = torch.stack([nodes.sizes, torch.zeros_like(nodes.sizes)], 1).flatten()
    return SetBatch.pack(nodes.items, sizes)


def test_halves_lie_abreast_however_they_were_cut(rng: torch.Generator) -> None:
    """The second to the right of the first, in a frame without covariance; one alone stays."""
    sizes = torch.tensor([7, 9, 20, 3, 1, 1, 0, 4, 0, 0])
    halves = SetBatch.pack(torch.rand(45, 2, generator=rng), sizes)
    frame, level = Frame.of(halves, "abreast"), Frame.of(halves, "covariance")
    seen = frame(halves.items, halves.owner // 2)
    across = halves.mean(seen).reshape(-1, 2, 2).diff(dim=1).squeeze(1)
    assert (across[:3, 0] > 0.1).all()
    assert torch.allclose(across[:3, 1], torch.zeros(3), atol=1e-3)
    for node in (seen[:16], seen[16:39]):
        assert torch.allclose(node.T @ node / len(node), torch.eye(2), atol=1e-3)
    assert (torch.linalg.det(frame.stretch) > 0).all()
    assert torch.equal(frame.stretch[3:], level.stretch[3:])
    assert frame.ahead is None


def test_the_farthest_lies_ahead_and_comes_first(rng: torch.Generator) -> None:
    sizes = torch.tensor([7, 0, 1, 30, 2])
    nodes = SetBatch.pack(torch.rand(40, 2, generator=rng), sizes)
    frame = Frame.of(_with_nothing_beside(nodes), "facing")
    seen = frame(nodes.items, nodes.owner)
    order = frame.by_angle(seen, nodes.owner)
    corners = HullTask().oracle(nodes).unpack()
    for i in (0, 3, 4):
        x, y = seen[nodes.offsets[i] : nodes.offsets[i + 1]].unbind(1)
        first = int((x.square() + y.square()).mul(1000).round().argmax())
        assert x[first] > 0
        assert y[first].abs() < 1e-3  # two points are thin, and rounding is stretched with them
        assert order[nodes.offsets[i]] == nodes.offsets[i] + first
        assert first in corners[i]
    assert torch.isfinite(frame.stretch).all()


def test_attention_gradients_match_autograd() -> None:
    keys, queries, weight = (torch.randn(*s, dtype=torch.double) for s in ((5, 3), (4, 3), (3,)))
    for tensor in (keys, queries, weight):
        tensor.requires_grad_()
    column, row = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([0, 0, 1, 2, 3, 3])
    plain = torch.tanh(keys[column] + queries[row]) @ weight
    assert torch.allclose(additive_scores(keys, queries, weight, column, row), plain)
    assert torch.autograd.gradcheck(
        lambda k, q, w: additive_scores(k, q, w, column, row), (keys, queries, weight)
    )
    seen, turn = (torch.randn(*s, dtype=torch.double) for s in ((6, 2), (2, 3)))
    for tensor in (seen, turn):
        tensor.requires_grad_()
    summed = torch.tanh(keys[column] + queries[row] + seen @ turn) @ weight
    assert torch.allclose(additive_scores(keys, queries, weight, column, row, seen, turn), summed)
    assert torch.autograd.gradcheck(
        lambda k, q, w, s, t: additive_scores(k, q, w, column, row, s, t),
        (keys, queries, weight, seen, turn),
    )
    with pytest.raises(ValueError, match="seen and seen_weight must be given together"):
        additive_scores(keys, queries, weight, column, row, seen)


def test_nonsense_is_refused() -> None:
    for order in ("angle", "outline"):
        with pytest.raises(ValueError, match=rf'order="{order}" needs 2 features; got 3\.'):
            PointerMerge(3, 4, order=order)
    turned: tuple[Normalise, ...] = ("facing", "abreast")
    for normalise in turned:
        with pytest.raises(ValueError, match=f'normalise="{normalise}" needs 2 features; got 3'):
            PointerMerge(3, 4, normalise=normalise)
    with pytest.raises(ValueError, match=r"patience must be above 0 and at most 1; got 0\.0\."):
        PointerMerge(2, 4, patience=0.0)
    PointerMerge(2, 4, order="angle", patience=1.0)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("order", "given, angle, outline"),
        ("normalise", "spread, covariance, facing, abreast"),
        ("attention", "plain, bearings, course"),
    ],
)
def test_an_unknown_setting_is_refused(name: str, known: str) -> None:
    """Past the types, which are checked in tests before a network sees them."""
    with pytest.raises(ValueError, match=rf"{name} must be one of {known}; got 'sharp'\."):
        _check_choices({name: "sharp"})
