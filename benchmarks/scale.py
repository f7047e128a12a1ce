"""Larger than memory: hulls, clusters and tours on two Dask workers, compared with others.

    python benchmarks/scale.py            all of the following, one after the other
    python benchmarks/scale.py hull       1.4 * 10^8 points (--points)
    python benchmarks/scale.py kmeans     5 * 10^7 points, d = 8, k = 100; then by dask-ml's KMeans
                                          and MiniBatchKMeans, and by scikit-learn on a sample
    python benchmarks/scale.py tour       10^6 cities by one worker, then by two (or --workers),
                                          which must give the same tour

Files are made in --folder and deleted (kept for the next run with --keep). dask-ml is not
installed with diconet: pip install dask-ml; it is stopped after --limit seconds. Memory (every
0.2 s) and CPU time are those of this process and all its children.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import diconet
from diconet.scale.cluster import connected

FILES = 8
D, K = 8, 100
FITS = 1.5  # GB in two workers of 2 GB, with room to work


class Watch:
    """The peak memory and CPU time of this process and its children."""

    def __init__(self) -> None:
        self.total = self.largest = 0
        self.start, self.now = self._look(), dict[int, float]()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _look(self) -> dict[int, float]:
        me, sizes, busy = psutil.Process(), [0], {}
        for process in [me, *me.children(recursive=True)]:
            with suppress(psutil.Error):
                sizes.append(process.memory_info().rss)
                busy[process.pid] = sum(process.cpu_times()[:2])
        self.total = max(self.total, sum(sizes))
        self.largest = max(self.largest, *sizes)
        return busy

    def _watch(self) -> None:
        while not self.over.wait(0.2):
            self.now.update(self._look())

    def end(self) -> dict[str, float]:
        self.over.set()
        self.thread.join()
        self.now.update(self._look())
        spent = sum(t - self.start.get(process, 0.0) for process, t in self.now.items())
        return {
            "CPU seconds": round(spent, 1),
            "total GB": round(self.total / 1e9, 2),
            "largest process GB": round(self.largest / 1e9, 2),
        }


@contextmanager
def files(options: argparse.Namespace, name: str, points: int, make: Any) -> Iterator[str]:
    """Rows in .npy files, made a million at a time."""
    place = options.folder / f"diconet-{name}-{points}"
    if not place.exists():
        new = Path(tempfile.mkdtemp(dir=options.folder))
        for number, rows in enumerate(np.diff(np.linspace(0, points, FILES + 1).astype(int))):
            rng = np.random.default_rng([7, number])
            width = make(rng, 1).shape[1]
            file = np.lib.format.open_memmap(
                new / f"{number}.npy", "w+", np.float64, (int(rows), width)
            )
            for start in range(0, int(rows), 10**6):
                stop = min(start + 10**6, int(rows))
                file[start:stop] = make(rng, stop - start)
            file.flush()
            del file
        new.rename(place)
    try:
        yield str(place / "*.npy")
    finally:
        if not options.keep:
            shutil.rmtree(place)


def say(**record: Any) -> None:
    print(json.dumps(record), flush=True)


def gigabytes(pattern: str) -> float:
    return sum(path.stat().st_size for path in Path(pattern).parent.glob("*.npy")) / 1e9


def watched(work: Any, limit: int = 0) -> tuple[Any, dict[str, Any]]:
    """An answer, or None if it is not ready after `limit` seconds, and what it took."""

    def out(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, out)
    watch, start = Watch(), time.perf_counter()
    signal.alarm(limit)
    try:
        answer = work()
        seconds: Any = round(time.perf_counter() - start, 1)
    except TimeoutError:
        answer, seconds = None, f"not finished after {limit}"
    finally:
        signal.alarm(0)
    return answer, {"seconds": seconds, **watch.end()}


def hull(options: argparse.Namespace) -> None:
    points = options.points or 14 * 10**7
    with files(options, "hull", points, lambda rng, n: rng.standard_normal((n, 2))) as pattern:
        with connected(options.workers or 2, memory="2GB") as client:
            client.run(_imported, "hulls")
            found, spent = watched(lambda: diconet.convex_hull(pattern))
        say(task="hull", points=points, workers=options.workers or 2,
            GB=gigabytes(pattern), **spent, corners=len(found.indices),
            area=found.value)  # fmt: skip


def blobs(rng: np.random.Generator, many: int) -> np.ndarray:
    """A mixture of 300 Gaussians of unequal weights and widths, which no 100 clusters fit well."""
    own = np.random.default_rng(1)
    centres, share = own.random((300, D)), own.dirichlet(np.full(300, 2.0))
    width = own.uniform(0.02, 0.2, 300)
    which = rng.choice(300, many, p=share)
    return centres[which] + width[which][:, None] * rng.standard_normal((many, D))


def cost(points: np.ndarray, centers: np.ndarray) -> float:
    from sklearn.metrics import pairwise_distances_argmin_min

    total = 0.0
    for part in np.array_split(points, max(1, len(points) // 100_000)):
        total += float(np.square(pairwise_distances_argmin_min(part, centers)[1]).sum())
    return total


def kmeans(options: argparse.Namespace) -> None:
    points = options.points or 5 * 10**7
    size = min(points, 10**6)
    with files(options, "kmeans", points, blobs) as pattern:
        # Rows at equal spacing over all files, so that the sample represents them.
        parts = [np.load(p, mmap_mode="r") for p in sorted(Path(pattern).parent.glob("*.npy"))]
        sample = np.concatenate([np.array(part[:: points // size]) for part in parts])[:size]
        del parts
        say(task="kmeans", points=points, GB=gigabytes(pattern), workers=options.workers or 2)
        ours(options, pattern, sample)
        if "dask-ml" in options.beside:
            by_dask_ml(options, pattern, sample)
        if "scikit-learn" in options.beside:
            by_scikit_learn(sample)


def ours(options: argparse.Namespace, pattern: str, sample: np.ndarray) -> None:
    with connected(options.workers or 2, memory="2GB") as client:
        client.run(_imported, "clusters")
        found, spent = watched(lambda: diconet.kmeans(pattern, K, seed=0))
    say(by="diconet", **spent, rounds=found.rounds, cost=found.value,
        sample_error=found.sample_error, cost_on_sample=cost(sample, found.centers))  # fmt: skip


def by_scikit_learn(sample: np.ndarray) -> None:
    from sklearn.cluster import KMeans

    for starts in (1, 3):
        model, spent = watched(lambda s=starts: KMeans(K, n_init=s, random_state=0).fit(sample))
        say(by=f"scikit-learn, {starts} starts, sample of {len(sample)}", **spent,
            cost_on_sample=cost(sample, model.cluster_centers_))  # fmt: skip


def by_dask_ml(options: argparse.Namespace, pattern: str, sample: np.ndarray) -> None:
    """dask-ml with default settings, MiniBatchKMeans in its Incremental, on blocks of two sizes.

    Data that fits stays in the workers' memory, since KMeans makes many passes. What is not
    finished after --limit seconds is reported as such.
    """
    warnings.filterwarnings("ignore", message="Sending large graph")  # theirs, once per task
    from dask_ml.cluster import KMeans
    from dask_ml.wrappers import Incremental
    from sklearn.cluster import MiniBatchKMeans

    def mini() -> Any:
        return Incremental(MiniBatchKMeans(K, n_init=3, random_state=0))

    for name, model, rows in (
        ("Incremental(MiniBatchKMeans), blocks of 500,000", mini(), 500_000),
        ("Incremental(MiniBatchKMeans), blocks of 20,000", mini(), 20_000),
        ("KMeans", KMeans(K, random_state=0), 500_000),
    ):
        with connected(options.workers or 2, memory="2GB") as client:
            client.run(_imported, "clusters")
            array = in_blocks(pattern, rows)
            if gigabytes(pattern) < FITS:
                array = array.persist()
            _, spent = watched(lambda m=model, a=array: m.fit(a), options.limit)
        model = getattr(model, "estimator_", model)
        centers = getattr(model, "cluster_centers_", None)
        found = {} if centers is None else {"cost_on_sample": cost(sample, centers)}
        say(by=f"dask-ml's {name}", **spent, **found)


def in_blocks(pattern: str, block: int) -> Any:
    """The files as a Dask array with `block` rows per block, read where they are used."""
    import dask
    import dask.array as da

    blocks = []
    for path in sorted(Path(pattern).parent.glob("*.npy")):
        rows = len(np.load(path, mmap_mode="r"))
        for start in range(0, rows, block):
            many = min(block, rows - start)
            part = dask.delayed(_block)(str(path), start, many)
            blocks.append(da.from_delayed(part, (many, D), dtype=np.float64))
    return da.concatenate(blocks)


def _block(path: str, start: int, many: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start : start + many])


def tour(options: argparse.Namespace) -> None:
    points = options.points or 10**6
    usual = 0.7124 * points**0.5 * (1 + 0.33 / points)
    orders: list[np.ndarray] = []
    with files(options, "tour", points, lambda rng, n: rng.random((n, 2))) as pattern:
        for workers in [options.workers] if options.workers else [1, 2]:
            with connected(workers, memory="2GB") as client:
                client.run(_imported, "tours")
                found, spent = watched(lambda: diconet.tsp(pattern, kicks=options.kicks, seed=0))
                orders.append(found.tour.compute())
            assert np.array_equal(np.sort(orders[-1]), np.arange(points))
            assert np.array_equal(orders[0], orders[-1])
            say(task="tour", cities=points, workers=workers, cells=found.cells, **spent,
                length=found.value, ratio=found.value / usual)  # fmt: skip


def _imported(module: str) -> None:
    """Imports a module in a worker, so that the start of Python is not measured."""
    import_module(f"diconet.scale.{module}")
    if module == "tours":
        diconet.tsp(np.random.default_rng(0).random((5_000, 2)), kicks=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", nargs="?", choices=["hull", "kmeans", "tour"])
    parser.add_argument("--points", type=int)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--kicks", type=float, default=1.0, help="kicks per city of a tour")
    others = ["dask-ml", "scikit-learn"]
    parser.add_argument("--beside", nargs="*", choices=others, default=others)
    parser.add_argument("--limit", type=int, default=600, help="time limit of dask-ml in seconds")
    parser.add_argument("--keep", action="store_true", help="keep the files for the next run")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for task, run in {"hull": hull, "kmeans": kmeans, "tour": tour}.items():
        if options.task in (None, task):
            run(options)


if __name__ == "__main__":
    main()
