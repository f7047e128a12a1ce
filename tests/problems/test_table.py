from diconet.problems.problem import cells


def test_a_cell_per_metric_beside_the_papers_figure() -> None:
    """The paper has no figure for cost, and splits do not apply to this row."""
    found = cells("DiCoNet", "n=50", {"ratio": 1.01, "cost": 9, "splits": None}, {"ratio": 1.02})
    head = {"row": "DiCoNet", "column": "n=50"}
    assert found == [
        {**head, "metric": "ratio", "ours": 1.01, "paper": 1.02},
        {**head, "metric": "cost", "ours": 9, "paper": None},
    ]


def test_a_row_of_our_own_has_no_figures_of_the_papers() -> None:
    assert [cell["paper"] for cell in cells("Ours", "n=50", {"ratio": 1.0})] == [None]
