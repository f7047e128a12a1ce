from pathlib import Path

import pytest

from diconet.demo import demo
from diconet.weights import shipped_names


def test_every_task_is_shown_between_reference_and_oracle(tmp_path: Path) -> None:
    records = demo(tmp_path / "new", scale=0.3)
    assert [r["task"] for r in records] == [
        task for task in ("hull", "kmeans", "knapsack", "tsp") if task in shipped_names()
    ]
    assert records
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
