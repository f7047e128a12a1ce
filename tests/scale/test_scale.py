"""Answers of Dask collections and files, on real workers, whatever happens to them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import diconet
from diconet.cli import main
from diconet.scale import work
from diconet.scale.links import Runs, linked
from diconet.scale.packings import exact_sum
from tests.scale.blocks import block, slow_array

POINTS = np.random.default_rng(0).standard_normal((60_000, 2)).round(3)  # some of them twice
ITEMS = np.random.default_rng(1).integers(1, 10**6, (50_000, 2)).astype(float)
CAPACITY = float(ITEMS[:, 1].sum() // 3)


@pytest.fixture(autouse=True)
def _small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diconet.scale.chunks.FEWEST_ROWS", 2_000)


def chunked(rows: np.ndarray, *sizes: int) -> da.Array:
    return da.from_array(rows, chunks=(sizes if len(sizes) > 1 else sizes[0], -1))


def in_process(function: Any, *args: Any, **options: Any) -> Any:
    """The same call without a cluster."""
    before = work._client
    try:
        work._client = lambda: None
        with dask.config.set(scheduler="sync"):
            return function(*args, **options)
    finally:
        work._client = before


# The same answer anywhere.

WAYS = [(7_000,), (60_000,), (20_000, 0, 39_999, 1, 0), (1_000,)]


@pytest.mark.parametrize("sizes", WAYS, ids=str)
def test_the_hull_is_the_same_in_any_chunks(client: Any, sizes: tuple[int, ...]) -> None:
    small = diconet.convex_hull(POINTS)
    hull = diconet.convex_hull(chunked(POINTS, *sizes))
    alone = in_process(diconet.convex_hull, chunked(POINTS, *sizes))
    for one in (hull, alone):
        assert one.indices.tolist() == small.indices.tolist()
        assert one.value == pytest.approx(small.value, rel=1e-12)
        np.testing.assert_array_equal(one.corners, POINTS[small.indices])
    assert hull.value == alone.value


def test_chunks_in_another_order_have_the_same_corners(client: Any) -> None:
    parts = np.array_split(POINTS, 9)
    order = [4, 2, 8, 0, 7, 1, 3, 6, 5]
    mixed = da.concatenate([chunked(parts[i], len(parts[i])) for i in order])
    hull, other = diconet.convex_hull(chunked(POINTS, 7_000)), diconet.convex_hull(mixed)
    assert hull.value == other.value
    assert {*map(tuple, hull.corners)} == {*map(tuple, other.corners)}


@pytest.mark.parametrize(
    "kind",
    ["whole", "ties", "fractions", "few fit", "nearly all fit", "all fit", "nothing fits"],
)
def test_the_knapsack_is_the_same_in_any_chunks(client: Any, kind: str) -> None:
    items, capacity = ITEMS.copy(), CAPACITY
    if kind == "ties":
        items[:, 0] = items[:, 1]
    elif kind == "fractions":
        items, capacity = items / 7, capacity / 7
    elif kind == "few fit":
        items, capacity = np.ceil(items / 1_000), 1e5
    elif kind == "nearly all fit":  # by less than weights are rounded in histograms
        items = items / 7
        capacity = float(np.nextafter(float(exact_sum(items[:, 1])), 0)) * (1 - 1e-15)
    elif kind == "all fit":
        capacity *= 4
    elif kind == "nothing fits":
        capacity = 0.5
    answers = []
    for sizes in ((9_000,), (50_000,), (30_000, 0, 19_999, 1)):
        table = chunked(items, *sizes)
        answers.append(diconet.knapsack(table, None, capacity))
    answers.append(diconet.knapsack(table[:, 0], table[:, 1], capacity))
    answers.append(in_process(diconet.knapsack, table, None, capacity))
    first = answers[0].taken.compute()
    assert exact_sum(items[first, 1]) <= exact_sum(np.array([capacity]))
    small = diconet.knapsack(items[:, 0], items[:, 1], capacity)
    for one in answers:
        assert (one.value, one.bound) == (answers[0].value, answers[0].bound)
        np.testing.assert_array_equal(one.taken.compute(), first)
        assert one.value == pytest.approx(small.value, rel=1e-12)
        assert one.bound >= small.value
    if kind not in ("fractions", "nearly all fit"):
        assert answers[0].gap == 0
        assert answers[0].value == small.value


@pytest.mark.parametrize("cell", [128, 2], ids=["one cell", "cells"])
def test_clusters_are_the_same_on_any_number_of_workers(
    client: Any, cell: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diconet.scale.sampled.CELL", cell)
    points = np.concatenate([POINTS + shift for shift in ((0, 0), (9, 0), (0, 9))])
    table = chunked(points, 25_000, 0, 70_000, 85_000)
    clusters, again = (diconet.kmeans(table, 6, seed=1) for _ in range(2))
    alone = in_process(diconet.kmeans, table, 6, seed=1)
    for one in (again, alone):
        np.testing.assert_array_equal(one.centers, clusters.centers)
        assert one.value == clusters.value
    labels = clusters.labels.compute()
    assert clusters.labels.chunks == ((25_000, 70_000, 85_000),)
    assert np.bincount(labels).tolist() == clusters.sizes.tolist()
    apart = float(np.square(points - clusters.centers[labels]).sum())
    assert apart == pytest.approx(clusters.value, rel=1e-9)
    assert apart < 1.01 * diconet.kmeans(points, 6).value
    assert clusters.sample_error < 0.02


def test_tours_are_the_same_on_any_number_of_workers(client: Any) -> None:
    cities = np.random.default_rng(3).random((6_000, 2))
    cities[1] = cities[0]
    table = chunked(cities, 1_700, 0, 4_300)
    tour, alone = (
        solve(diconet.tsp, table, kicks=1, cell=800) for solve in (_on_cluster, in_process)
    )
    order = tour.tour.compute()
    assert sorted(order.tolist()) == list(range(6_000))
    assert order[0] == 0
    np.testing.assert_array_equal(in_process(alone.tour.compute), order)
    length = float(np.hypot(*(cities[order] - cities[np.roll(order, 1)]).T).sum())
    assert tour.value == alone.value == pytest.approx(length, rel=1e-9)
    assert tour.value < 1.03 * diconet.tsp(cities, kicks=2).value


def _on_cluster(function: Any, *args: Any, **options: Any) -> Any:
    return function(*args, **options)


# Files.


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "zarr"])
def test_files_of_every_kind(client: Any, kind: str, tmp_path: Path) -> None:
    for number, part in enumerate(np.array_split(POINTS, 3)):
        frame = pd.DataFrame({"name": number, "x": part[:, 0], "y": part[:, 1]})
        path = tmp_path / f"{number}.{kind}"
        if kind == "parquet":
            frame.to_parquet(path, row_group_size=5_000)
        elif kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "npy":
            np.save(path, part)
        else:
            da.from_array(part, chunks=(5_000, 2)).to_zarr(str(path))
    hull = diconet.convex_hull(str(tmp_path / f"*.{kind}"))
    assert hull.indices.tolist() == diconet.convex_hull(POINTS).indices.tolist()


def test_a_dataframe(client: Any) -> None:
    """With an index, a column of text, one of whole numbers and one in single precision."""
    table = pd.DataFrame({"Weight": ITEMS[:, 1].astype(int), "value": ITEMS[:, 0].astype("f4")})
    table = table.assign(name="item").set_index(pd.Index(np.arange(len(ITEMS)) % 7, name="key"))
    frame = dd.from_pandas(table, 4, sort=False)
    packing = diconet.knapsack(frame, None, CAPACITY)
    columns = diconet.knapsack(frame["value"], frame["Weight"], CAPACITY)
    assert packing.value == columns.value == diconet.knapsack(*ITEMS.T, CAPACITY).value
    assert len(packing.chosen.compute()) == int(packing.taken.sum().compute())
    with pytest.raises(ValueError, match=r"in the table 'name' holds text: .* Weight,value"):
        diconet.kmeans(frame, 3)
    with pytest.raises(ValueError, match=r"columns must be among Weight, value, name; got 'x'"):
        diconet.kmeans(frame, 3, columns=["value", "x"])


def test_an_index_in_parquet_is_no_column(client: Any, tmp_path: Path) -> None:
    """Partitions of very different sizes, single precision, and an index that pandas wrote."""
    points = POINTS[:9_000].astype("f4")
    for number, part in enumerate(np.split(points, [1, 8_000, 8_000])):
        table = pd.DataFrame(part, columns=["a", "b"], index=pd.Index(range(len(part)), name="key"))
        table.to_parquet(tmp_path / f"{number}.parquet")
    clusters = diconet.kmeans(tmp_path / "*.parquet", 3)
    assert clusters.centers.shape == (3, 2)
    assert clusters.labels.shape == (9_000,)
    one = diconet.kmeans(tmp_path / "*.parquet", 3, columns=["2"])
    np.testing.assert_allclose(one.centers.mean(), 0, atol=0.5)
    assert one.centers.shape == (3, 1)


def test_a_chunk_with_nan_is_named(client: Any, tmp_path: Path) -> None:
    points = POINTS.copy()
    points[45_003, 1] = np.nan
    with pytest.raises(ValueError, match=r"points must be finite; got nan in row 3 of chunk 9"):
        diconet.convex_hull(da.from_array(points, chunks=(5_000, 2)).rechunk((5_000, 2)))
    for number, part in enumerate(np.array_split(points, 4)):
        np.save(tmp_path / f"part{number}.npy", part)
    with pytest.raises(ValueError, match=r"got nan in row 3 of \S*part3.npy"):
        diconet.kmeans(str(tmp_path / "*.npy"), 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nothing-there-*.csv", "no file matches 'nothing-there"),
        (da.zeros(5), r"points must have shape \(n, d\); got \(5,\)"),
        (da.zeros((0, 2)), "points must hold at least 1 row"),
        (da.zeros((5, 3)), "points must have 2 columns; got 3"),
    ],
    ids=["no file", "one column", "empty", "three columns"],
)
def test_what_is_wrong_is_one_line(client: Any, data: Any, message: str) -> None:
    with pytest.raises((ValueError, OSError), match=message):
        diconet.convex_hull(data)


def test_an_option_for_data_in_memory_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"metric must not be used .* take kicks, model, seed, cell"
    ):
        diconet.tsp("cities.csv", metric="geo")


def test_ten_thousand_tiny_chunks_and_one_giant(client: Any) -> None:
    small = diconet.convex_hull(POINTS[:40_000])
    tiny = diconet.convex_hull(chunked(POINTS[:40_000], 4))
    assert tiny.indices.tolist() == small.indices.tolist()
    giant = da.concatenate([slow_array(1, size) for size in (10, 10**6, 10)])
    found = diconet.convex_hull(giant)
    assert found.indices.tolist() == diconet.convex_hull(giant.compute()).indices.tolist()


# Workers that die.


def solved_while_killing(client: Any, kind: str, after: int, solve: Any) -> Any:
    """An answer during which a worker dies as soon as so many tasks of a kind are done."""
    _wait_for_two(client)
    pid = random.Random(after).choice(list(client.run(os.getpid).values()))
    died = threading.Event()

    def report(done: dict[str, tuple[int, int]]) -> None:
        if done.get(kind, (0, 0))[0] >= after and not died.is_set():
            os.kill(pid, signal.SIGKILL)
            died.set()

    with work.reporting(report):
        answer = solve()
    assert died.is_set()
    return answer


def _wait_for_two(client: Any) -> None:
    """The worker that the last test killed comes back; on a busy machine, another in its place."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(0)
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=60)


def moments(kind: str, most: int, many: int) -> list[tuple[str, int]]:
    return [(kind, int(m)) for m in np.random.default_rng(5).integers(0, most, many)]


@pytest.mark.parametrize(
    ("kind", "after"), [*moments("hull leaves", 28, 5), *moments("hull merges", 20, 5)]
)
def test_a_killed_worker_changes_no_hull(
    client: Any, kind: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SPLIT_EVERY", 2)
    monkeypatch.setattr(work, "POLL", 0.01)
    points = slow_array(32, 2_000)
    hull = solved_while_killing(client, kind, after, lambda: diconet.convex_hull(points))
    at_once = np.concatenate([block(i, 2_000, 2, 0) for i in range(32)])
    assert hull.indices.tolist() == diconet.convex_hull(at_once).indices.tolist()


@pytest.mark.parametrize("kind", ["core leaves", "round leaves", "cells leaves"])
def test_a_killed_worker_changes_nothing_else(
    client: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "POLL", 0.01)
    table = slow_array(12, 600)

    def solve() -> Any:
        if kind.startswith("core"):
            found = diconet.knapsack(table, None, 1e9)
            return found.value, found.taken.compute()
        if kind.startswith("round"):
            found = diconet.kmeans(table, 5)
            return found.value, found.centers
        found = diconet.tsp(table, kicks=1, cell=3_000)
        return found.value, found.tour.compute()

    value, answer = solved_while_killing(client, kind, 2, solve)
    expected, same = in_process(solve)
    assert value == expected
    np.testing.assert_array_equal(answer, same)


def test_all_workers_gone_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.setattr(work, "PATIENCE", 0.5)
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        client.as_current(),
        work.reporting(lambda done: cluster.scale(0)),
        pytest.raises(ConnectionError, match=r"no worker is left at \S+; start some"),
    ):
        diconet.convex_hull(slow_array(30, 2_000))


# On the command line.


def diconet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diconet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_line_with_workers(tmp_path: Path) -> None:
    for number, part in enumerate(np.array_split(ITEMS, 3)):
        frame = pd.DataFrame(part, columns=["value", "weight"])
        frame.to_parquet(tmp_path / f"{number}.parquet")
    done = diconet_command(
        "solve", "knapsack", str(tmp_path / "*.parquet"), "--capacity", str(CAPACITY),
        "--workers", "2", "--memory", "1GB", "--json", "--out", str(tmp_path / "chosen.csv"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    chosen = np.loadtxt(tmp_path / "chosen.csv", skiprows=1, dtype=int)
    assert record["value"] == ITEMS[chosen, 0].sum()
    assert "2 workers of 0.93 GiB, http" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kmeans", "{}"), "--k must be given"),
        (("tsp", "{}", "--seconds", "5"), "--seconds must not be used with --workers"),
        (("kmeans", "{}", "--k", "2", "--centers", "c.csv"), "--centers must not be used"),
        (("hull", "none-*.npy"), "no file matches 'none-"),
        (("hull", "{}", "--memory", "lots"), "memory must be a size such as 2GB; got 'lots'"),
    ],
    ids=["no k", "seconds", "centers", "no file", "memory"],
)
def test_what_is_wrong_is_said_before_workers_start(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "some.npy", POINTS)
    command = [word.format(tmp_path / "some.npy") for word in arguments]
    with pytest.raises(SystemExit) as stop:
        main(["solve", *command, "--workers", "1"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_no_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from diconet.scale import cluster

    monkeypatch.setattr(cluster, "_SECONDS", 0.5)
    with (
        pytest.raises(ConnectionError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1"),
        cluster.connected(scheduler="tcp://127.0.0.1:1"),
    ):
        pass


def test_without_the_extra_it_says_what_to_install() -> None:
    """A Python that cannot find Dask: a line from the function, and from the command."""
    code = """
import sys
from importlib.machinery import PathFinder

class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in ("dask", "distributed")
        return None if hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
import diconet
try:
    diconet.convex_hull("points.npy")
except ModuleNotFoundError as error:
    print(error, file=sys.stderr)
from diconet.cli import main
main(["solve", "hull", "points.npy", "--workers", "2"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = (
        "data larger than memory needs dask and distributed;"
        " install them with pip install 'diconet[dask]'."
    )
    assert done.stderr.splitlines() == [line, f"diconet: {line}"]
    assert done.returncode == 2


def test_nothing_imports_dask_before_it_is_needed() -> None:
    code = (
        "import sys, diconet, numpy; diconet.convex_hull(numpy.eye(2));"
        "from diconet.cli import parser_of; from diconet.problems.catalog import problems;"
        "parser_of(problems());"
        "print([m for m in ('dask', 'distributed', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What joins tours.


def test_trips_that_lie_apart_become_one() -> None:
    """Three closed trips of two runs each; by hand, two exchanges join them."""
    corner = np.array([[0.0, 0.0], [1, 0], [1, 1], [0, 1]])
    ends = np.concatenate([(corner + shift).reshape(2, 2, 2) for shift in ((0, 0), (3, 0), (0, 3))])
    edges = np.array([[0, 1], [1, 0], [2, 3], [3, 2], [4, 5], [5, 4]])
    many = np.array([2, 2, 2, 2, 2, 2])
    places = linked(Runs(edges, ends, many, np.repeat([0, 1, 2], 2), 6.0))
    taken = np.concatenate([places.of_cell(cell, many[:2]) for cell in range(3)])
    assert sorted(taken.tolist()) == list(range(12))
    # The runs are 6 long, and so were the edges between. The square to the right is joined by two
    # ways of 2 in place of two of 1; the one above, whose edges stand one over the other, by 3 + 3.
    assert places.length == pytest.approx(6 + 6 + (4 - 2) + (6 - 2))
