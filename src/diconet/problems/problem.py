"""The interface of a problem to the command line, the page, the demo and the benchmarks.

`Problem` works for any task: it derives everything from the task's `sample` and `reward`, with
the general functions of `diconet.problems.general`. The built-in problems subclass it and override
what they do better. Nothing here imports torch; what needs it is imported when called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diconet.core.files import named_files
from diconet.io.parse import existing
from diconet.problems.page import Division, Page, PageField

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import numpy as np

    from diconet.core.model import DiCoNet
    from diconet.core.task import Task
    from diconet.io.source import Source
    from diconet.io.tables import Table
    from diconet.problems.solution import Model, Solution


__all__ = ["Instances", "Option", "Page", "PageField", "Problem", "Record", "Show"]

Record = dict[str, Any]
"""A flat record of plain values: a row of a table that a command prints."""


@dataclass(frozen=True)
class Option:
    """An option that belongs to one problem, such as `--k`; without `read`, a switch.

    An option with `writes` names a file for the answer's table of that name, such as `--centers`.
    """

    name: str
    help: str
    read: Callable[[str], Any] | None = None
    commands: tuple[str, ...] = ("solve",)
    writes: bool = False


@dataclass(frozen=True, eq=False)
class Instances:
    """Inputs by name, and what is given with each of them, such as its capacity.

    `given` has the names of options as keys; `solve` uses it if the option is not set.
    """

    names: list[str]
    data: list[Any]
    given: Mapping[str, list[Any]] = field(default_factory=dict)
    tables: Sequence[Table | None] = ()

    def __len__(self) -> int:
        return len(self.data)

    @classmethod
    def joined(cls, several: Sequence[Instances]) -> Instances:
        """The instances of several files, one after the other."""
        if len(several) == 1:
            return several[0]
        keys = dict.fromkeys(key for one in several for key in one.given)
        return cls(
            [name for one in several for name in one.names],
            [data for one in several for data in one.data],
            {
                key: [x for one in several for x in one.given.get(key, [None] * len(one))]
                for key in keys
            },
            [table for one in several for table in one.tables or [None] * len(one)],
        )


@dataclass(frozen=True, eq=False)
class Show:
    """An instance for the demo, its measure, and two named methods to compare with."""

    instances: Instances
    text: str
    measure: str
    reference: tuple[str, Callable[[], float]]
    oracle: tuple[str, Callable[[], float]] | None


class Problem:
    """A problem: how to read, solve, measure, learn and draw it.

    `task` is an object with `sample` and `reward`, and optionally an `oracle`. `package` holds its
    `presets/` and `weights/`, if it has any.
    """

    own_files = ""
    """The formats that `diconet solve` reads besides tables, for its help."""

    roles: tuple[tuple[str, ...], ...] = ()
    """The possible names of each column of a table, if columns have fixed roles."""

    options: tuple[Option, ...] = (
        Option("edges", "source, target (from 0), features; or 'edges' in a JSON FILE", existing),
    )
    sizes: tuple[int, ...] = (20, 50, 100)
    """The set sizes that `diconet evaluate` measures."""

    num_sets = 1_024
    """The number of fresh sets of each size that it measures."""

    own_outputs: tuple[str, ...] = ()
    """The suffixes of files, besides tables, that answers can be written to."""

    table: str | None = None
    """The name of the table that `diconet reproduce` prints, if there is one."""

    alone: Mapping[str, Any] = {}
    """Options of `solve` that leave out the search after the network, if there is one."""

    def __init__(
        self, name: str, task: Any = None, *, summary: str = "", package: str | None = None
    ) -> None:
        self.name = name
        self.summary = summary or _first_line(task)
        self.package = package
        self.address = name
        """Its name in `diconet train`; `file.py:Class` for a task in a file."""
        self._task = task
        if type(self) is Problem:
            self.num_sets = 256  # each is divided in five ways

    def __repr__(self) -> str:
        return f"Problem({self.name!r})"

    @property
    def task(self) -> Task:
        """Draws inputs and scores solutions."""
        return self._task

    @property
    def _general(self) -> Any:
        """The module of general functions, imported on first use."""
        return import_module("diconet.problems.general")

    # What lies beside it: modules, presets and weights.

    def module(self, name: str, has: str) -> Any:
        """The module of this name in the problem's package, if it has an attribute `has`."""
        path = f"{self.package}.{name}"
        found = import_module(path) if self.package and find_spec(path) else None
        return found if hasattr(found, has) else None

    def folder(self, kind: str) -> Traversable | None:
        """The folder of presets or weights, if it exists."""
        if self.package is None:
            return None
        folder = files(self.package) / kind
        return folder if folder.is_dir() else None

    @cached_property
    def weights(self) -> dict[str, Traversable]:
        """The shipped weights, by name; the default network has the problem's name."""
        return named_files(self.folder("weights"), ".safetensors")

    @property
    def presets(self) -> list[str]:
        """The names of its presets; the default comes first and needs no file."""
        return list(dict.fromkeys(["default", *named_files(self.folder("presets"), ".yaml")]))

    # Reading files.

    def read(self, source: Source, options: Mapping[str, Any]) -> Instances:
        """The instances in a file."""
        from diconet.io.read import read_tables
        from diconet.io.tables import stem

        tables = read_tables(source, options.get("decimal"))
        data = [self.instance(table, self.columns(table, options)) for table in tables]
        return Instances([stem(t.name) for t in tables], data, self.given(tables, options), tables)

    def instance(self, table: Table, columns: list[str]) -> Any:
        """The instance in these columns of a table."""
        return table.points(columns)

    def given(self, tables: Sequence[Table], options: Mapping[str, Any]) -> dict[str, list[Any]]:
        """What options or files specify for each instance, by option name."""
        from diconet.io.read import edges_beside

        found = {
            "context": [table.extras.get("context") for table in tables],
            "edges": edges_beside(tables, options.get("edges")),
        }
        return {name: every for name, every in found.items() if any(x is not None for x in every)}

    @property
    def num_columns(self) -> int | None:
        """The number of columns of an instance; None for any number."""
        return len(self.roles) or self.task.num_features

    def columns(self, table: Table, options: Mapping[str, Any]) -> list[str]:
        """The columns selected by `--columns`, by their names, or because they hold numbers."""
        if options.get("columns") is not None:
            asked = table.asked(options["columns"].split(","))
            if self.num_columns not in (None, len(asked)):
                raise ValueError(
                    f"--columns must name {self.num_columns} for {self.name}; got {len(asked)}."
                )
            return asked
        called = [column for column in map(table.role, self.roles) if column is not None]
        if called and len(called) == self.num_columns:
            return called
        return table.numeric(self.num_columns)

    def hint(self, table: Table, options: Mapping[str, Any]) -> str | None:
        """A suggestion of what the user may have wanted to type for this table, if any."""
        return None

    # Answers.

    def solve(self, instances: Instances, **options: Any) -> list[Solution]:
        """The answers of a network, by default the default one.

        Options are `model`, `seed`, `device` and the problem's own.
        """
        return list(self._general.solve_task(self, instances, **options))

    def accepts(self, network: DiCoNet) -> bool:
        """Whether a network read from a file is for this problem."""
        return True

    # Quality.

    def fresh(self, size: int, num_sets: int, seed: int, **options: Any) -> Instances:
        """Fresh instances of a size, none of which any training seed draws."""
        return self._general.fresh_instances(self.task, size, num_sets, seed)

    def grade(self, instances: Instances, solutions: Sequence[Solution]) -> dict[str, float]:
        """The quality of solutions by metric, as means over all instances.

        Uses the problem's own module `measure`, if it has one; else the task's reward.
        """
        if own := self.module("measure", "grade"):
            return dict(own.grade(instances, solutions))
        return self._general.grade_by_reward(self, instances, solutions)

    def evaluate(
        self,
        *,
        model: Model = None,
        sizes: Sequence[int] | None = None,
        num_sets: int | None = None,
        seed: int = 0,
        device: str | None = None,
        how: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Record]:
        """The quality of the answers of `solve`, as one record per size and metric.

        `how` are options of `solve`, the others of `fresh`.
        """
        records: list[Record] = []
        how = {**(how or {}), **({} if device is None else {"device": device})}
        for size in sizes or self.sizes:
            instances = self.fresh(size, num_sets or self.num_sets, seed, **options)
            graded = self.grade(instances, self.solve(instances, model=model, **how))
            records += [{"size": size, "metric": m, "value": v} for m, v in graded.items()]
        return records

    def figures(self, model: Model, settings: Any, num_sets: int = 100) -> str:
        """The first metric per size of a network, in one line for its weights file.

        Where a search follows the network, also the network's own. `settings` are those it was
        trained with, for problems whose settings choose the data.
        """
        if type(self) is Problem:  # it compares divisions, which do not fit in one line
            return self._general.reward_in_words(self, model, settings, num_sets)
        found = self._first_metrics(model, num_sets, {})
        lines = [f"n={one['size']} {one['metric']} {one['value']:.5g}" for one in found]
        if self.alone:
            alone = self._first_metrics(model, num_sets, self.alone)
            lines = [f"{a} (alone {b['value']:.5g})" for a, b in zip(lines, alone, strict=True)]
        return ", ".join(lines)

    def _first_metrics(self, model: Model, num_sets: int, how: Mapping[str, Any]) -> list[Record]:
        records = self.evaluate(model=model, num_sets=num_sets, how=how)
        return [one for one in records if one["metric"] == records[0]["metric"]]

    def ablate(self, **how: Any) -> list[Record]:
        """What dividing and learning contribute.

        Uses the problem's own module `ablate`, if it has one; otherwise compares no, random, median
        and learned division of the default network on fresh inputs.
        """
        own = self.module("ablate", "ablate")
        return list(own.ablate(**how)) if own else self._general.ablate_task(self, **how)

    # Learning.

    @cached_property
    def recipe(self) -> Any:
        """How networks are trained: `Settings` and `train_model`; for a table also `reproduce`.

        The problem's own module `recipe`, if it has one.
        """
        return self.module("recipe", "train_model") or self._general.TaskRecipe(self)

    # Pictures, demo and page.

    def pictures(self, model: Model, folder: Path) -> list[Path]:
        """Pictures of a network's answers, level by level."""
        instances = self.fresh(self.sizes[-1], 1, seed=3)
        (solution,) = self.solve(instances, model=model)
        return [solution.save_levels(folder / f"{self.name}_levels.png")]

    def demo(self, rng: np.random.Generator, scale: float) -> Show:
        """An instance to show, and what its answer is compared with."""
        own = self.module("measure", "show")
        return own.show(rng, scale) if own else self._general.demo_of(self, rng, scale)

    @property
    def page(self) -> Page | None:
        """How the page presents the problem; None if it cannot be drawn."""
        return Page() if self._general.is_planar(self) else None

    def page_sample(self, n: int, seed: int, **fields: float) -> dict[str, Any]:
        """A fresh instance for the page: `points` in the unit square, and values for its fields."""
        return {"points": self._general.points_for_page(self, n, seed)}

    def page_solve(
        self, points: np.ndarray, division: Division, model: Model, **fields: float
    ) -> Solution:
        """The answer to points from the page, by a network or with another division."""
        instances = Instances(["page"], [points])
        (solution,) = self.solve(instances, model=self.divided(model, division))
        return solution

    def divided(self, model: Model, division: Division) -> Model:
        """A network with its own division, a random one or none; the merge stays the same."""
        from diconet.learn.diagnose import with_division
        from diconet.problems.networks import as_network

        return model if division == "learned" else with_division(as_network(self, model), division)

    def page_training(self) -> list[str]:
        """Options of `diconet train` for the short run on the page."""
        if "page" in self.presets:
            return ["--preset", "page"]
        often = ["--train.log_every", "5", "--train.checkpoint_every", "10"]
        return ["--train.seconds", "60", *often]


def _first_line(task: Any) -> str:
    """The first line of a task's docstring."""
    text = (getattr(task, "__doc__", None) or "").strip()
    return text.splitlines()[0] if text else ""
