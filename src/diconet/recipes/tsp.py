"""How the travelling salesman is trained, evaluated and set beside the paper's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from diconet.answers import Sequences
from diconet.merges.edges import EdgeMerge
from diconet.merges.length import LengthMerge
from diconet.merges.pair_net import PairNet
from diconet.merges.pairs import NODE_INPUTS, PairMerge, PairSplit
from diconet.model import DiCoNet
from diconet.presets import read_settings
from diconet.sets import SetBatch
from diconet.solve.tsp import Tour, tsp
from diconet.splits.across import AcrossSplit
from diconet.splits.coin import RandomSplit
from diconet.tasks.tsp import TourBook, TspTask, accuracy, lengths
from diconet.tours.decode import Refine, greedy_tour, refined
from diconet.tours.metric import Metric
from diconet.tours.near import near_lists
from diconet.train import TrainConfig, train
from diconet.train_config import check_least
from diconet.tree import Growth
from diconet.weights import find as find_weights
from diconet.weights import from_runs, shipped, start_from

SIZES = (10, 20, 40, 80)
DEFAULT_MODEL = "tsp"
PARTS = (EdgeMerge, PairMerge, LengthMerge)
"""What networks for tours are made of."""


def _default_training() -> TrainConfig:
    return TrainConfig(
        steps=1_800,
        batch_size=16,
        tree_samples=1,
        min_size=8,
        max_size=120,
        merge_lr=2e-3,
        merge_optimiser="adamw",
        schedule="cosine",
        warmup=100,
        merge_clip=1.0,
    )


@dataclass(frozen=True)
class Settings:
    """A network over near neighbours ("near") or the paper's over all pairs ("pairs").

    "near" works on trees with leaves of at most `leaf_size` cities, "pairs" on trees of a fixed
    `depth`, with the network of `leaf` (a shipped name or a file) at the leaves where that is
    above 0 (the merge starts from it too). `num_labels` instances of the sizes that training draws
    are solved by fast-tsp in `label_seconds` each, and kept in the file `labels` where that is
    given. With `start` (a name or a file too), training goes on from those weights.
    """

    network: Literal["near", "pairs"] = "near"
    width: int = 48
    num_layers: int = 8
    slots: int = 8
    leaf_size: int = 90
    depth: int = 0
    leaf: str = "tsp_bs1"
    num_labels: int = 9_650
    label_seconds: float = 0.02
    labels: str | None = None
    start: str | None = None
    train: TrainConfig = field(default_factory=_default_training)

    def __post_init__(self) -> None:
        check_least(self, 1, "width", "num_layers", "leaf_size", "num_labels")
        check_least(self, 0, "depth")


def build(settings: Settings) -> DiCoNet:
    """The network that the settings describe, untrained or as it was at `start`."""
    torch.manual_seed(settings.train.seed)
    if settings.network == "near":
        merge = EdgeMerge.fresh(settings.width, settings.num_layers, settings.slots)
        model = DiCoNet(AcrossSplit(), merge, Growth(leaf_size=settings.leaf_size))
    elif settings.depth == 0:
        model = DiCoNet(RandomSplit(), PairMerge(_pair_net(settings, 1)), depth=0)
    else:
        model = _paper_network(settings)
    if settings.start is not None:
        start_from(model, settings.start, "start")
    return model


def _pair_net(settings: Settings, edge_inputs: int) -> PairNet:
    return PairNet(NODE_INPUTS, edge_inputs, settings.width, settings.num_layers)


def _paper_network(settings: Settings) -> DiCoNet:
    """DiCoNet as in appendix C: two networks of its own around a reference at the leaves."""
    trained = find_weights(settings.leaf, "leaf").merge
    if not isinstance(trained, PairMerge):
        raise ValueError(f"leaf must be a network over pairs; got {settings.leaf!r}.")
    if trained.leaf.config["width"] != settings.width:
        raise ValueError(
            f"leaf must be a network of width {settings.width}; {settings.leaf} is of width"
            f" {trained.leaf.config['width']}."
        )
    merge = PairMerge(trained.leaf, _pair_net(settings, 3))
    merge.leaf_head.load_state_dict(trained.leaf_head.state_dict())
    _start_as(merge)
    return DiCoNet(PairSplit(_pair_net(settings, 1)), merge, depth=settings.depth)


@torch.no_grad()
def _start_as(merge: PairMerge) -> None:
    """Lets the merge begin as the network at the leaves, deaf to what the leaves say."""
    assert merge.merge is not None
    known = merge.leaf.state_dict()
    entry = merge.merge.edges_in.weight
    entry.zero_()
    entry[:, :1] = known.pop("edges_in.weight")
    merge.merge.load_state_dict(known, strict=False)
    merge.merge_head.load_state_dict(merge.leaf_head.state_dict())


def labels(settings: Settings) -> TourBook:
    """The labelled instances, read if they are there, made (and kept) if not."""
    path = None if settings.labels is None else Path(settings.labels)
    if path is not None and path.exists():
        return TourBook.load(path)
    low, high = settings.train.min_size, settings.train.max_size
    sizes = [low + i % (high - low + 1) for i in range(settings.num_labels)]
    book = TourBook.make(sizes, seed=settings.train.seed, seconds=settings.label_seconds)
    if path is not None:
        book.save(path)
    return book


def train_model(settings: Settings, run: str | Path | None = None, quiet: bool = False) -> DiCoNet:
    """Trains a network on labelled instances."""
    model = build(settings)  # first: a start that does not fit should not wait for labels
    book = labels(settings)
    return train(model, book, settings.train, oracle=book.oracle, run=run, quiet=quiet)


def train_all(runs: Path, *, quiet: bool = False) -> Callable[[str], DiCoNet]:
    """Trains every network of the table anew, one folder of `runs` each, the first for the others.

    Gives what finds them by the names of their weights.
    """
    first = str(runs / "tsp_bs1" / "weights.safetensors")
    begun = {"bs2": ["--start", first], "paper": ["--leaf", first]}
    for preset in ("bs1", "bs2", "paper", "small"):
        settings = read_settings(Settings, "tsp", preset, begun.get(preset, []))
        train_model(settings, runs / f"tsp_{preset}", quiet)
    named = {name: runs / name for name in _SHIPPED.values()}
    return from_runs({**named, DEFAULT_MODEL: runs / "tsp_small"})


def control() -> DiCoNet:
    """The network's place taken by the length of the edges: what learning has to beat."""
    return DiCoNet(AcrossSplit(), LengthMerge(), depth=0)


@dataclass(frozen=True, eq=False)
class Exam:
    """Instances of one size with the oracle's tours."""

    sets: SetBatch
    tours: Sequences

    @classmethod
    def of(cls, size: int, num_sets: int, seed: int) -> Exam:
        """Fresh uniform instances, solved by fast-tsp in a time that grows with their size."""
        task = TspTask(seconds=0.02 + 0.001 * size)
        rng = torch.Generator().manual_seed((1_000 * seed + size) % 2**63)
        sets = task.sample(num_sets, size, rng=rng)
        return cls(sets, task.oracle(sets))

    def grade(self, found: Sequences) -> dict[str, float]:
        """The paper's three figures: accuracy in percent, mean cost, mean ratio to the oracle."""
        cost, best = lengths(self.sets, found), lengths(self.sets, self.tours)
        return {
            "acc": accuracy(found, self.tours),
            "cost": cost.mean().item(),
            "ratio": (cost / best).mean().item(),
        }


def beamed(model: DiCoNet, exam: Exam, group: int = 10) -> Sequences:
    """The tours of a network over pairs, by beam search, some sets at a time."""
    tours: list[torch.Tensor] = []
    for some in torch.arange(len(exam.sets)).split(group):
        part = exam.sets.take(some).as_roots()
        with torch.inference_mode():
            outcome = model(part)
        tours += outcome.solution.unpack()
    return Sequences.of(tours)


def solved(model: DiCoNet, exam: Exam, refine: Refine, samples: int = 200) -> Sequences:
    """The tours that `diconet.tsp` gives with this network."""
    cities = [points.double().numpy() for points in exam.sets.unpack()]
    found = tsp(cities, refine=refine, samples=samples, model=model)
    assert isinstance(found, list)
    return Sequences.of([torch.from_numpy(np.ascontiguousarray(one.tour)) for one in found])


def greedy(model: DiCoNet, exam: Exam, refine: Refine) -> Sequences:
    """One tour a set, that of the best edges first: the network read once, with nothing to pick."""
    with torch.inference_mode():
        candidates = model(exam.sets).answer.candidates()
    tours = []
    for cities, (edges, scores) in zip(exam.sets.unpack(), candidates, strict=True):
        points = cities.double().numpy()
        metric, near = Metric.of(points), near_lists(points, 8)
        tour = refined(metric, near, greedy_tour(metric, edges, scores), refine)
        tours.append(torch.from_numpy(tour.astype(np.int64)))
    return Sequences.of(tours)


def evaluate(
    model: DiCoNet,
    *,
    sizes: Sequence[int] = SIZES,
    num_sets: int = 200,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Accuracy, cost and ratio per size and refinement, with the control's ratio beside it."""
    records: list[dict[str, Any]] = []
    for size in sizes:
        exam = Exam.of(size, num_sets, seed)
        if isinstance(model.merge, PairMerge):
            records.append({"n": size, "refine": "beam", **exam.grade(beamed(model, exam))})
            continue
        for refine in ("none", "2opt", "lk"):
            grades = exam.grade(solved(model, exam, refine))
            beside = exam.grade(solved(control(), exam, refine))
            records.append({"n": size, "refine": refine, **grades, "control": beside["ratio"]})
    return records


PAPER: dict[str, dict[int, tuple[float, float, float]]] = {
    "BS1": {
        10: (78.71, 2.89, 1.01),
        20: (27.36, 4.74, 1.24),
        40: (15.06, 9.12, 1.77),
        80: (13.76, 15.07, 2.15),
    },
    "BS2": {
        10: (19.45, 3.68, 1.29),
        20: (54.34, 4.04, 1.05),
        40: (28.42, 6.29, 1.22),
        80: (15.72, 11.23, 1.60),
    },
    "DiCoNet": {
        10: (41.82, 3.15, 1.11),
        20: (43.86, 4.06, 1.06),
        40: (35.46, 6.01, 1.18),
        80: (29.44, 9.01, 1.28),
    },
}
"""Accuracy, cost and ratio of the paper's table, by row and n."""

_SHIPPED = {"BS1": "tsp_bs1", "BS2": "tsp_bs2", "DiCoNet": "tsp_paper"}
_GREEDY: dict[str, tuple[str, Refine]] = {
    "ours, one try": ("tsp", "none"),
    "control, one try": ("length", "none"),
    "ours, one try + 2opt": ("tsp", "2opt"),
    "control, one try + 2opt": ("length", "2opt"),
}
_OWN: dict[str, tuple[str, Refine, int]] = {
    "ours": ("tsp", "none", 200),
    "control": ("length", "none", 200),
    "ours, one sample + 2opt": ("tsp", "2opt", 1),
    "control, one sample + 2opt": ("length", "2opt", 1),
    "ours + 2opt": ("tsp", "2opt", 200),
    "control + 2opt": ("length", "2opt", 200),
    "ours + lk": ("tsp", "lk", 200),
    "control + lk": ("length", "lk", 200),
}
"""Which network, which refinement, and how many noisy greedy tours compete with the joined one.

With 200 of them refined both find the optimum up to 40 cities; with one, the difference shows.
"""


def reproduce(
    *, num_sets: int = 1_000, seed: int = 0, find: Callable[[str], DiCoNet] = shipped
) -> list[dict[str, Any]]:
    """The paper's table, then our own rows and the control's; `find` gets networks by name."""
    exams = {size: Exam.of(size, num_sets, seed) for size in SIZES}
    records: list[dict[str, Any]] = []
    for row, name in _SHIPPED.items():
        model = find(name)
        for size, exam in exams.items():
            records += _cells(row, size, exam.grade(beamed(model, exam)))
    models = {"tsp": find(DEFAULT_MODEL), "length": control()}
    for row, (which, refine) in _GREEDY.items():
        for size, exam in exams.items():
            records += _cells(row, size, exam.grade(greedy(models[which], exam, refine)))
    for row, (which, refine, samples) in _OWN.items():
        for size, exam in exams.items():
            found = solved(models[which], exam, refine, samples)
            records += _cells(row, size, exam.grade(found))
    return records


def _cells(row: str, size: int, grades: dict[str, float]) -> list[dict[str, Any]]:
    paper = dict(zip(("acc", "cost", "ratio"), PAPER.get(row, {}).get(size, ()), strict=False))
    return [
        {
            "row": row,
            "column": f"n={size}",
            "metric": metric,
            "ours": value,
            "paper": paper.get(metric),
        }
        for metric, value in grades.items()
    ]


def pictures(
    model: DiCoNet, folder: Path, *, size: int = 240, leaf_size: int = 40, seed: int = 3
) -> list[Path]:
    """Parts with their own tours, level by level up to the tour of all cities.

    Trees grow to small leaves here: what is enough for the network is too much for a picture.
    """
    from diconet.plot import save_levels

    small = DiCoNet(model.split, model.merge, Growth(leaf_size=leaf_size))
    cities = TspTask().sample(1, size, rng=torch.Generator().manual_seed(seed)).items
    solution = tsp(cities, model=small)
    assert isinstance(solution, Tour)
    return [save_levels(solution, folder / "tsp_levels.png", model=small)]
