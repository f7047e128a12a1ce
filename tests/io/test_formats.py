"""Every format, in both directions; and the files that newcomers have."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import diconet
from diconet.cli import main
from diconet.io.read import read_tables
from diconet.io.source import ENDINGS, Source
from diconet.io.tables import Table
from diconet.io.write import table_bytes
from tests.tiny import save_networks

TOWNS = pd.DataFrame(
    {
        "town": ["Ås", "Bern", "Cork", "Delft", "Évora", "Fano"],
        "lon": [10.79, 7.45, -8.47, 4.36, -7.91, 13.02],
        "lat": [59.66, 46.95, 51.9, 52.01, 38.57, 43.84],
        "people": [20_457, 134_794, 222_526, 106_086, 53_591, 60_978],
    }
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return save_networks(tmp_path_factory.mktemp("weights"))


def written(path: Path, frame: pd.DataFrame) -> str:
    """A file as pandas or the standard library writes it, not we."""
    name = path.name.removesuffix(".gz")
    kind = name.rpartition(".")[2]
    content = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(content)
    elif kind == "xlsx":
        frame.to_excel(content, index=False)
    elif kind == "npz":
        columns = {c: frame[c].to_numpy(None if c != "town" else np.str_) for c in frame}
        np.savez(content, **columns)
    elif kind == "geojson":
        content.write(json.dumps(_features(frame)).encode())
    elif kind in ("jsonl", "ndjson", "json"):
        frame.to_json(content, orient="records", lines=kind != "json")
    else:
        content.write(frame.to_csv(index=False, sep="\t" if kind == "tsv" else ",").encode())
    data = content.getvalue()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def _features(frame: pd.DataFrame) -> dict[str, Any]:
    features = [
        {
            "type": "Feature",
            "properties": {"town": row.town, "people": row.people},
            "geometry": {"type": "Point", "coordinates": [row.lon, row.lat, 12.0]},
        }
        for row in frame.itertuples()
    ]
    return {"type": "FeatureCollection", "features": features}


FORMATS = [*ENDINGS, ".csv.gz", ".parquet.gz"]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_comes_in_with_its_names(ending: str, tmp_path: Path) -> None:
    (table,) = read_tables(Source.of(written(tmp_path / f"towns{ending}", TOWNS)))
    assert set(table.columns) == set(TOWNS.columns)
    assert table.named
    assert table.points(["lon", "lat"]).tolist() == TOWNS[["lon", "lat"]].to_numpy().tolist()
    assert list(table.frame["town"]) == list(TOWNS["town"])
    assert table.numbers("people") == TOWNS["people"].tolist()


@pytest.mark.parametrize("ending", FORMATS)
def test_answers_go_out_beside_the_rows_in_every_format(
    ending: str, weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = written(tmp_path / "towns.csv", TOWNS), tmp_path / f"out{ending}"
    main(["solve", "tsp", file, "--model", weights["tsp"], "--out", str(out)])
    assert "hint: these look like places on Earth: --metric haversine" in capsys.readouterr().err
    (table,) = read_tables(Source.of(out))
    expected = diconet.tsp(TOWNS[["lon", "lat"]], model=weights["tsp"])
    assert set(table.columns) == {*TOWNS.columns, "order"}
    assert table.numbers("order") == np.argsort(expected.tour).tolist()
    assert table.numbers("people") == TOWNS["people"].tolist()
    assert table.points(["lon", "lat"]).tolist() == TOWNS[["lon", "lat"]].to_numpy().tolist()
    assert list(table.frame["town"]) == list(TOWNS["town"])
    # and on to the next command, as any other file
    main(["solve", "hull", str(out), "--model", weights["hull"], "--json"])
    assert json.loads(capsys.readouterr().out)[0]["points"] == len(TOWNS)


def test_what_is_missing_stays_missing(tmp_path: Path) -> None:
    """Of four points three are corners; the fourth has no place on the hull, in any format."""
    hull = diconet.convex_hull([[0, 0], [4, 0], [0, 4], [1, 1]])
    for ending in ENDINGS:
        (table,) = read_tables(Source(f"a{ending}", table_bytes(hull.frame(), ending)))
        cells = pd.to_numeric(table.frame["corner"].replace("", None), errors="coerce")
        assert [None if pd.isna(x) else int(x) for x in cells] == [0, 1, 2, None]


NEWCOMERS: list[tuple[str, str, str | bytes, list[str], str]] = [
    # name, task, content, what to type in the end, and what the first line says (or "" if it works)
    (
        "index.csv",
        "kmeans",
        ",a,b\n0,1,2\n1,3,4\n2,9,9\n",
        ["--columns", "a,b"],
        "use --columns a,b",
    ),
    ("id.csv", "hull", "id,a,b\n7,1,2\n8,3,4\n9,9,0\n", [], ""),
    ("text.csv", "kmeans", "who,a,b\nx,1,2\ny,3,4\n", ["--columns", "a,b"], "use --columns a,b"),
    ("text.csv", "tsp", "who,a,b\nx,1,2\ny,3,4\n", [], ""),
    ("three.csv", "tsp", "a,b,c\n1,2,5\n3,4,6\n", ["--columns", "a,b"], "such as --columns a,b"),
    ("euro.csv", "hull", "X;Y\n1,5;2\n3,5;4\n1.000,5;7\n", ["--decimal", ","], "use --decimal ,"),
    ("us.csv", "hull", 'X,Y\n"1,500",2\n3,"4,000.5"\n', ["--decimal", "."], "use --decimal ."),
    ("bom.csv", "hull", b"\xef\xbb\xbfx,y\r\n1,2\r\n3,4\r\n", [], ""),
    ("excel.txt", "hull", "x\ty\n1\t2\n3\t4\n".encode("utf-16"), [], ""),
    ("latin.csv", "tsp", "name,x,y\nZürich,1,2\nGenève,3,4\n".encode("cp1252"), [], ""),
    ("spaces.txt", "hull", "1   2\n 3 4\n\n5 0\n", [], ""),
    ("blank.csv", "hull", "x,y\n1,2\n,\n3,4\n,\n", [], ""),
    (
        *("price.csv", "knapsack", "item,price,mass\na,5,2\nb,6,3\n"),
        *(["--columns", "price,mass"], "such as --columns price,mass"),
    ),
    ("items.csv", "knapsack", "item;Weight;Value\na;5;2\nb;6;3\n", [], ""),
    ("map.geojson", "tsp", json.dumps(_features(TOWNS)), [], ""),
    ("rows.jsonl", "hull", '{"x": 1, "y": 2}\n{"x": 3, "y": 4}\n', [], ""),
    ("lists.jsonl", "hull", "[1, 2]\n[3, 4]\n[0, 9]\n", [], ""),
    ("pipe.csv", "hull", "x|y\n1|2\n3|4\n", [], ""),
    ("numbered.csv", "kmeans", "0,5,6\n1,7,8\n2,9,1\n", ["--columns", "2,3"], "use --columns 2,3"),
]


@pytest.mark.parametrize(
    ("name", "task", "content", "options", "message"),
    NEWCOMERS,
    ids=[f"{n[0]} {n[1]}" for n in NEWCOMERS],
)
def test_a_newcomers_file_gets_an_answer_or_a_line_that_says_what_to_type(
    name: str,
    task: str,
    content: str | bytes,
    options: list[str],
    message: str,
    weights: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    more = {"kmeans": ["--k", "2"], "knapsack": ["--capacity", "6"]}.get(task, [])
    command = ["solve", task, str(file), *more, "--model", weights[task], "--json"]
    if message:
        with pytest.raises(SystemExit) as caught:
            main(command)
        said = capsys.readouterr().err
        assert caught.value.code == 2
        assert said.count("\n") == 1
        assert message in said
        assert " ".join(options) in said
    main([*command, *options])
    assert json.loads(capsys.readouterr().out)[0]["value"] >= 0


def test_several_files_are_one_batch_and_one_table(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n0,0\n1,0\n9,9\n")
    (tmp_path / "b.csv").write_text("x,y,note\n5,5,far\n0,0,near\n")
    command = ["solve", "kmeans", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    command += ["--k", "2", "--columns", "x,y", "--model", weights["kmeans"], "--out"]
    centres = tmp_path / "centers.json"
    main([*command, "-", "--centers", str(centres)])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "instance,x,y,label,note"
    assert [row.split(",")[0] for row in rows[1:]] == ["a", "a", "a", "b", "b"]
    found = json.loads(centres.read_text())
    assert [one["instance"] for one in found] == ["a", "a", "b", "b"]
    assert sorted((round(one["x"], 9), one["y"]) for one in found[:2]) == [(0.5, 0.0), (9.0, 9.0)]


def test_npz_of_every_shape() -> None:
    def tables(**arrays: Any) -> list[Any]:
        content = io.BytesIO()
        np.savez(content, **arrays)
        return read_tables(Source("a.npz", content.getvalue()))

    (one,) = tables(values=np.arange(3), weights=np.ones(3), capacity=7)
    assert one.columns == ["values", "weights"]
    assert one.extra("capacity", None) == 7
    (one,) = tables(points=np.ones((4, 2)))
    assert one.frame.shape == (4, 2)
    first, second = tables(a=np.ones((4, 2)), b=np.ones((3, 2)))
    assert (first.name, second.name) == ("a.npz[a]", "a.npz[b]")


def test_decimals_and_thousands() -> None:
    content = "x;y\n1.234,5;-7\n1 000;0,25\n12'345,5;3\n"
    (table,) = read_tables(Source("a.csv", content.encode()), decimal=",")
    assert table.points(["x", "y"]).tolist() == [[1234.5, -7], [1000, 0.25], [12345.5, 3]]
    (table,) = read_tables(Source("a.csv", b'x\ty\n1,234.5\t"2"\n'), decimal=".")
    assert table.points(["x", "y"]).tolist() == [[1234.5, 2]]


def test_what_was_typed_is_written_back_as_it_was(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leading zeros of a code, decimal commas and the mark between cells are the user's."""
    (tmp_path / "a.csv").write_text("code;x;y\n007;1,50;2\n010;3,25;4\n")
    command = ["solve", "tsp", str(tmp_path / "a.csv"), "--decimal", ",", "--out", "-"]
    main([*command, "--model", weights["tsp"]])
    assert capsys.readouterr().out == "code;x;y;order\n007;1,50;2;0\n010;3,25;4;1\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, ending in (("pyarrow", ".parquet"), ("openpyxl", ".xlsx")):
        content = table_bytes(TOWNS, ending)
        with monkeypatch.context() as patch:
            for name in [name for name in sys.modules if name.split(".")[0] == package]:
                patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, package, None)
            pattern = rf"need {package}; install it with pip install 'diconet\[files\]'"
            for work in (
                lambda content=content, ending=ending: read_tables(Source(f"a{ending}", content)),
                lambda ending=ending: table_bytes(TOWNS, ending),
            ):
                with pytest.raises(ValueError, match=pattern):
                    work()


JUNK = [
    ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'(("),
    (
        "a.npy",
        b"\x93NUMPY\x01\x00\x40\x00"
        + b"{'descr':'<f8','fortran_order':False,'shape':(9"
        + b"9" * 17,
    ),
    (
        "a.npy",
        b"\x93NUMPY\x01\x00\x76\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 2)}".ljust(117)
        + b"\n",
    ),
    ("a.npz", b"PK\x03\x04junk"),
    ("a.xlsx", b"PK\x03\x04junk"),
    ("a.parquet", b"PAR1junkPAR1"),
    ("a.csv.gz", b"\x1f\x8bjunk"),
    (
        "a.geojson",
        b'{"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon"}}]}',
    ),
    ("a.geojson", b'{"type": "FeatureCollection", "features": [7]}'),
    ("a.geojson", b'{"type": "FeatureCollection", "features": 7}'),
    ("a.jsonl", b"[1, 2]\n[3,"),
    ("a.json", b'[{"x": [1]}, 3]'),
    ("a.json", b'{"x": {"y": [1]}}'),
    ("a.xls", b"\xd0\xcf\x11\xe0"),
    ("a.csv", b'"1,2\n3,4\n'),
]


@pytest.mark.parametrize(("name", "content"), JUNK)
def test_junk_is_one_line_of_ours(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)

    def read() -> None:
        for table in read_tables(Source.of(tmp_path / name)):
            table.points(table.columns)

    with pytest.raises(ValueError, match=r"must be|must hold|every") as caught:
        read()
    assert re.fullmatch(r".+\.", str(caught.value)), caught.value


def test_the_pandas_index_is_kept() -> None:
    frame = TOWNS.set_index("town")[["lon", "lat"]]
    labels = diconet.kmeans(frame, 2).frame()
    assert list(labels.index) == list(frame.index)
    assert list(labels.columns) == ["lon", "lat", "label"]
    first, second = diconet.convex_hull([frame, frame.to_numpy()])
    assert list(first.frame().index) == list(frame.index)
    assert list(second.frame().columns) == ["x", "y", "corner"]
    packing = diconet.knapsack(TOWNS["people"].set_axis(list("abcdef")), [1] * 6, 2)
    assert packing.frame().query("chosen == 1").index.tolist() == ["b", "c"]
    taken = frame.assign(label=7)
    assert list(diconet.kmeans(taken, 2).frame().columns) == [
        "lon",
        "lat",
        "label",
        "diconet_label",
    ]


def test_decimals_of_a_database_are_not_cut_off() -> None:
    """Fixed-point columns come as objects, as do numbers of 32 bits beside text."""
    content = io.BytesIO()
    pd.DataFrame({"value": [Decimal("1.50"), Decimal("2.25")], "weight": [1, 2]}).to_parquet(
        content
    )
    (table,) = read_tables(Source("a.parquet", content.getvalue()))
    assert table.numbers("value") == [Decimal("1.50"), Decimal("2.25")]
    assert table.points(["value", "weight"]).tolist() == [[1.5, 1], [2.25, 2]]
    mixed = Table("a", pd.DataFrame({"x": [np.float32(1.5), "2"]}, dtype=object))
    assert mixed.numbers("x") == [1.5, 2]


def test_an_empty_spreadsheet_is_one_line() -> None:
    for frame in (pd.DataFrame(), pd.DataFrame({"x": [], "y": []})):
        content = io.BytesIO()
        frame.to_excel(content, index=False)
        with pytest.raises(ValueError, match="must hold at least one row of numbers"):
            read_tables(Source("a.xlsx", content.getvalue()))


@pytest.mark.parametrize("option", [["--out", "a.tour.gz"], ["--plot", "a.png.gz"]])
def test_only_tables_are_packed(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["solve", "tsp", "a.csv", *option])
    assert f"{option[0]} must end in one of" in capsys.readouterr().err


def test_a_column_called_instance_is_the_users(
    weights: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("instance,x,y\none,0,0\ntwo,1,0\n")
    files = [str(tmp_path / f"{name}.csv") for name in ("a", "b")]
    main(["solve", "hull", *files, "--model", weights["hull"], "--out", "-"])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "diconet_instance,instance,x,y,corner"
    assert rows[3] == "b,one,0,0,0"
