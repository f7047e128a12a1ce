from __future__ import annotations

from diconet.problems.kmeans.ablate import ablate


def test_every_division_has_a_row() -> None:
    records = ablate(0.01, sizes=(100,), num_sets=2)
    rows = {(r["division"], r["exchanges"]): r for r in records}
    assert len(rows) == len(records) == 6
    assert {division for division, _ in rows} == {"none", "random", "hand-made", "learned"}
    for record in records:
        assert 0.8 < record["cost / Lloyd"] < 2
        assert record["runs"] >= 1
    assert rows["learned", True]["cost / Lloyd"] < rows["learned", False]["cost / Lloyd"]
