"""Work shared by threads gives what one thread gives."""

import threading

import pytest
import torch

from diconet.core.coin import RandomSplit
from diconet.core.noise import seeds_from
from diconet.core.threads import in_parts, over_rows
from diconet.core.tree import Growth, fold, grow
from diconet.nets.pointer import PointerMerge
from diconet.problems.hull.task import HullTask

MUCH, LITTLE = 1e9, 1e3


pytestmark = pytest.mark.usefixtures("two_threads")


def test_results_are_in_order_whoever_made_them() -> None:
    assert in_parts(lambda part: part**2, range(50), work=MUCH) == [n**2 for n in range(50)]


@pytest.mark.parametrize(("work", "others"), [(MUCH, True), (LITTLE, False)])
def test_little_work_stays_where_it_is(work: float, others: bool) -> None:
    here = threading.get_ident()
    made_by = in_parts(lambda _: threading.get_ident(), range(4), work=work)
    assert (set(made_by) != {here}) == others


def test_parts_of_a_part_do_not_wait_for_threads_that_are_busy() -> None:
    """With two threads and two parts that share out their own work, nobody would be left."""
    inner = lambda part: sum(in_parts(lambda n: n * part, range(10), work=MUCH))  # noqa: E731
    assert in_parts(inner, [1, 2, 3, 4], work=MUCH) == [45, 90, 135, 180]


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
@pytest.mark.parametrize("work", [MUCH, LITTLE])
def test_every_row_is_in_one_part(rows: int, work: float) -> None:
    parts = over_rows(lambda low, high: list(range(low, high)), rows, work=work)
    assert [row for part in parts for row in part] == list(range(rows))


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        in_parts(lambda part: 1 // part, [1, 0], work=MUCH)


def test_the_pointer_network_learns_the_same_with_two_threads(rng: torch.Generator) -> None:
    """Wide enough that its loops are shared out; only sums over all nodes may round otherwise."""
    sets = HullTask().sample(64, 12, rng=rng)
    target, seeds = HullTask().oracle(sets), seeds_from(rng, len(sets))
    torch.manual_seed(0)
    merge = PointerMerge(2, 256)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        tree = grow(RandomSplit(), sets, Growth(depth=1), seeds)
        merge.zero_grad()
        score = fold(merge, tree, target).log_prob
        score.mean().backward()
        found.append([score, *(p.grad for p in merge.parameters())])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-6)
