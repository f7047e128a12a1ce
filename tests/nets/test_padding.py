"""Padded blocks hold every item once, and groups stay within their limits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diconet.core.sets import SetBatch
from diconet.nets.padding import padded_rows, similar_sizes


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.integers(1, 5_000))
def test_groups_hold_every_set_that_has_items_once(sizes: list[int], most_pairs: int) -> None:
    known = torch.tensor(sizes)
    groups = list(similar_sizes(known, slack=1.5, most_pairs=most_pairs))
    together = torch.cat(groups) if groups else known[:0]
    assert sorted(together.tolist()) == [i for i, size in enumerate(sizes) if size > 0]
    for group in groups:
        largest, least = int(known[group].max()), int(known[group].min())
        assert least * 1.5 >= largest
        assert len(group) == 1 or len(group) * largest**2 <= most_pairs


def test_slack_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"slack must be at least 1; got 0.5\."):
        next(similar_sizes(torch.tensor([3]), slack=0.5))


def test_a_block_holds_the_items_of_its_sets_in_their_order() -> None:
    sets = SetBatch.of([torch.arange(n).float()[:, None] + 10 * n for n in (2, 0, 3, 1)])
    rows, there = padded_rows(sets, torch.tensor([2, 0, 3]))
    assert there.tolist() == [[True] * 3, [True, True, False], [True, False, False]]
    block = sets.items[rows].squeeze(2) * there
    assert block.tolist() == [[30, 31, 32], [20, 21, 0], [10, 0, 0]]
    back = torch.zeros(sets.num_items)
    back[rows[there]] = block[there]
    assert back.tolist() == sets.items.squeeze(1).tolist()
