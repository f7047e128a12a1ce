from pathlib import Path

import pytest

from diconet.cli.see import demo
from diconet.problems.catalog import built_in


def test_every_task_is_shown_between_reference_and_oracle(tmp_path: Path) -> None:
    shown = list(built_in().values())
    records = demo(tmp_path / "new", shown, scale=0.3)
    assert [r["task"] for r in records] == [problem.name for problem in shown]
    for record in records:
        higher = record["measure"] in ("area", "value")
        ours, oracle = record["ours"], record["oracle"]
        assert ours == pytest.approx(oracle, rel=0.1)
        if record["task"] in ("hull", "knapsack"):
            assert (ours <= oracle * (1 + 1e-9)) == higher
        assert record["seconds"] > 0
        picture = (tmp_path / "new" / record["picture"]).read_bytes()
        assert picture.startswith(b"\x89PNG")
    assert len(list((tmp_path / "new").iterdir())) == len(records)
