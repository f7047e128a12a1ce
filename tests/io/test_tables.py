from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from diconet.core.files import write_whole
from diconet.io.read import edges_beside, read_tables
from diconet.io.source import Source
from diconet.io.tables import Table


def table(name: str, content: str) -> Table:
    (found,) = read_tables(Source(name, content.encode()))
    return found


def points(table: Table) -> list[list[float]]:
    found: list[list[float]] = table.points(table.columns).tolist()
    return found


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2\n3,4\n",
        "1,2\n3,4\n",
        "\ufeffx;y\r\n1;2\r\n3;4\r\n",
        "# a comment\n1 2\n\n3   4\n",
        "# x, y; made by hand\n\n  # twice\n1 2\n3 4\n",
        "# made by hand\nx;y\n1;2\n3;4\n",
        '"x" , "y"\n"1", "2"\n 3,4',
        "1\t2\n3\t4",
    ],
)
def test_csv_as_people_write_it(text: str) -> None:
    assert points(table("a.csv", text)) == [[1, 2], [3, 4]]


def test_a_first_row_with_a_number_is_no_header() -> None:
    assert table("a.csv", "x,y\n1,2").columns == ["x", "y"]
    assert not table("a.csv", "1,2\n3,4").named
    assert not table("a.csv", "nan,2\n3,4").named


def test_whole_numbers_stay_exact() -> None:
    large = 2**70 + 1
    assert table("a.csv", f"{large},1.5\n").numbers("column1") == [large]
    assert table("a.json", f"[[{large}, 1.5], [1.5, 2]]").numbers("column1") == [large, 1.5]
    assert table("a.json", f'{{"v": [{large}, 1.5]}}').numbers("v") == [large, 1.5]


@pytest.mark.parametrize(
    "text",
    [
        "[[1, 2], [3, 4]]",
        '[{"a": 1, "b": 2}, {"b": 4, "a": 3}]',
        '{"a": [1, 3], "b": [2, 4], "k": 7}',
        '{"points": [[1, 2], [3, 4]], "k": 7}',
    ],
)
def test_json_of_every_shape(text: str) -> None:
    found = table("a.json", text)
    assert points(found) == [[1, 2], [3, 4]]
    assert found.extras == ({"k": 7} if "k" in text else {})


def test_several_instances() -> None:
    for text in ("[[[1, 2]], [[3, 4], [5, 6]]]", '[{"v": [1, 2]}, {"v": [3, 4, 5], "k": 2}]'):
        first, second = read_tables(Source("a.json", text.encode()))
        assert (first.name, second.name) == ("a.json[0]", "a.json[1]")
        assert points(first) in ([[1, 2]], [[1], [2]])
        assert second.frame.size in (4, 3)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((2, 3, 4)))
    assert len(read_tables(Source("a.npy", buffer.getvalue()))) == 2


def test_an_array_of_objects_is_not_unpickled() -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"FILE must be a NumPy array of numbers; a\.npy"):
        read_tables(Source("a.npy", buffer.getvalue()))


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, b"one")
    assert path.read_bytes() == b"one"
    monkeypatch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_edges_and_context_are_no_columns() -> None:
    content = b'{"edges": [[0, 1]], "context": [3, 4], "x": [1, 2], "y": [5, 6]}'
    (table,) = read_tables(Source("a.json", content))
    assert points(table) == [[1, 5], [2, 6]]
    assert table.extras == {"edges": [[0, 1]], "context": [3, 4]}
    (edges,) = edges_beside([table], None)
    assert edges is not None
    assert edges.tolist() == [[0, 1]]
