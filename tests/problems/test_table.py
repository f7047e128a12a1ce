import pytest
import torch

from diconet.problems.table import OURS_BLOCK, PAPER_BLOCK, cells, in_blocks, ratio_of_means


def test_a_cell_per_metric_beside_the_papers_figure() -> None:
    """The paper has no figure for cost, and splits do not apply to this row."""
    figures = {"ratio": 1.01, "cost": 9.0, "splits": None}
    found = cells("DiCoNet", "n=50", figures, {"ratio": 1.02}, PAPER_BLOCK)
    head = {"block": PAPER_BLOCK, "row": "DiCoNet", "column": "n=50", "error": None}
    assert found == [
        {**head, "metric": "ratio", "ours": 1.01, "paper": 1.02},
        {**head, "metric": "cost", "ours": 9, "paper": None},
    ]


def test_a_row_of_our_own_has_no_figures_of_the_papers() -> None:
    assert [cell["paper"] for cell in cells("Ours", "n=50", {"ratio": 1.0})] == [None]


def test_values_per_instance_give_their_mean_and_its_standard_error() -> None:
    (cell,) = cells("Ours", "n=50", {"ratio": torch.tensor([1.0, 2.0, 3.0, 6.0])})
    assert cell["ours"] == 3
    assert cell["error"] == pytest.approx((14 / 3) ** 0.5 / 2)
    (alone,) = cells("Ours", "n=50", {"ratio": torch.tensor([1.0])})
    assert alone["error"] is None


def test_a_ratio_of_means_has_the_error_of_a_ratio() -> None:
    """Costs that are always twice the bar have no error, however much instances differ."""
    bars = torch.tensor([1.0, 5.0, 9.0])
    assert ratio_of_means(2 * bars, bars).tolist() == [2, 2, 2]
    rng = torch.Generator().manual_seed(0)
    bars = 1 + torch.rand(200, 50, generator=rng)
    costs = 2 * bars + torch.rand(200, 50, generator=rng)
    seen = (costs.mean(1) / bars.mean(1)).std()  # over 200 tests of 50 instances each
    told = torch.stack([ratio_of_means(*pair).std() for pair in zip(costs, bars, strict=True)])
    assert told.mean() / 50**0.5 == pytest.approx(seen.item(), rel=0.1)
    assert ratio_of_means(costs[0], bars[0]).mean() == pytest.approx(
        (costs[0].mean() / bars[0].mean()).item()
    )


def test_blocks_come_in_order_and_keep_their_rows() -> None:
    rows = [cells(row, "n", {"x": 1.0}, block=block)[0] for row, block in (
        ("a", OURS_BLOCK), ("b", PAPER_BLOCK), ("c", OURS_BLOCK), ("d", PAPER_BLOCK),
    )]  # fmt: skip
    assert [record["row"] for record in in_blocks(rows)] == ["b", "d", "a", "c"]
