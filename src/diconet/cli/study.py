"""The commands train, evaluate, diagnose, reproduce and ablate."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from diconet.cli.options import (
    add_command,
    add_own_options,
    add_shared,
    add_task,
    own_options,
    problem,
)
from diconet.cli.show import json_text, patience, show, show_beside_paper
from diconet.io.parse import count, number, seed
from diconet.problems.catalog import problems
from diconet.problems.problem import Problem, Record


def add(commands: Any, known: Sequence[Problem]) -> None:
    """Adds the five commands."""
    _add_train(commands, known)
    summary = "compare the division with random, median and no division"
    diagnose = add_command(commands, "diagnose", _diagnose, summary)
    add_task(diagnose)
    diagnose.add_argument("--size", type=count, default=50, help="items per input (default: 50)")
    diagnose.add_argument("--num-sets", type=count, default=256, help="inputs (default: 256)")
    add_shared(diagnose, "--model", "--seed", "--json")

    evaluate = add_command(commands, "evaluate", _evaluate, "quality against the oracle, per size")
    add_task(evaluate)
    evaluate.add_argument("--plot", type=Path, metavar="DIR", help="write pictures there")
    add_shared(evaluate, "--model", "--sizes", "--num-sets", "--seed", "--device", "--json")
    add_own_options(evaluate, "evaluate", known)

    reproduce = add_command(commands, "reproduce", _reproduce, "the paper's table beside ours")
    reproduce.add_argument("task", type=_with_table, metavar="TASK", help="a problem, or all")
    reproduce.add_argument("--train", action="store_true", help="retrain first (hours)")
    add_shared(reproduce, "--num-sets", "--seed", "--json")
    add_own_options(reproduce, "reproduce", known)

    summary = "no, random, hand-made and learned division at equal processor time"
    ablate = add_command(commands, "ablate", _ablate, summary)
    add_task(ablate)
    ablate.add_argument("--seconds", type=number, help="processor time per row and instance")
    add_shared(ablate, "--sizes", "--num-sets", "--seed", "--json")


def _add_train(commands: Any, known: Sequence[Problem]) -> None:
    summary = "train a network; any setting of the preset can be overridden"
    train = add_command(commands, "train", _train, summary, takes_more=True)
    add_task(train)
    train.add_argument("--preset", default="default", help="a preset (below), or a YAML file")
    train.add_argument("--run", type=Path, help="run folder (default: runs/TASK_PRESET[_ROW])")
    add_shared(train, "--device")
    train.add_argument("--quiet", action="store_true", help="no progress bar")
    train.add_argument("--settings", action="store_true", help="show all settings and exit")
    presets = [f"  {one.name:9}{', '.join(one.presets)}" for one in known]
    how = "Any setting can be overridden, such as --train.steps 500; --settings shows them all."
    train.epilog = "\n".join(["presets:", *presets, "", how])


def _with_table(text: str) -> list[Problem]:
    """Reads the name of a table, usually that of its problem, or "all"."""
    there = {one.table: one for one in problems() if one.table is not None}
    if text == "all":
        return list(there.values())
    if text not in there:
        problem(text)  # raises if there is no such problem
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join([*there, 'all'])}; got {text!r}."
        )
    return [there[text]]


def _train(options: argparse.Namespace, rest: list[str]) -> None:
    from diconet.cli.models import note_origin
    from diconet.learn.settings import read_settings, show_settings
    from diconet.problems.networks import WEIGHTS

    chosen: Problem = options.task
    recipe = chosen.recipe
    settings = read_settings(recipe.Settings, chosen.folder("presets"), options.preset, rest)
    if options.settings:
        print(show_settings(settings), end="")
        return
    _check_seeds(settings)
    run = options.run or Path("runs") / _run_name(options, settings)
    where = {} if options.device is None else {"device": options.device}
    try:
        recipe.train_model(settings, run, quiet=options.quiet, **where)
        with patience("measuring its figures ..."):
            note_origin(run / WEIGHTS, chosen, options.preset, rest, settings)
    except KeyboardInterrupt as stop:
        kept = f"stopped; the run is in {run}, and the same command resumes it"
        text = str(stop).removesuffix(".") or (kept if run.exists() else "stopped; nothing saved")
        raise KeyboardInterrupt(f"{text}:\n  {options.typed}") from None
    print(f"weights: {run / WEIGHTS}")


def _check_seeds(settings: Any) -> None:
    """Checks that the seed of every training stage is valid for all generators."""
    for stage in fields(settings):
        try:
            seed(str(getattr(getattr(settings, stage.name), "seed", 0)))
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"{stage.name}.seed {error}") from None


def _run_name(options: argparse.Namespace, settings: Any) -> str:
    """The task, the preset and, if the task has rows, the row."""
    names = (options.task.name, Path(options.preset).stem, getattr(settings, "row", None))
    return "_".join(name for name in names if name is not None)


def _evaluate(options: argparse.Namespace, _: list[str]) -> None:
    chosen: Problem = options.task
    own = own_options(options, chosen)[chosen.name]
    num_sets = options.num_sets or chosen.num_sets
    with patience(f"evaluating {chosen.name} ..."):
        records = chosen.evaluate(
            model=options.model,
            sizes=options.sizes,
            num_sets=num_sets,
            seed=options.seed,
            device=options.device,
            **own,
        )
    show(records, options.json, title=f"{chosen.name}: {num_sets} sets per size")
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for path in chosen.pictures(options.model, options.plot):
            print(f"picture: {path}", file=sys.stderr)


def _diagnose(options: argparse.Namespace, _: list[str]) -> None:
    chosen: Problem = options.task
    with patience(f"measuring {chosen.name} ..."):
        from diconet.learn import diagnose
        from diconet.problems.networks import as_network

        report = diagnose(
            as_network(chosen, options.model),
            chosen.task,
            set_size=options.size,
            num_sets=options.num_sets,
            seed=options.seed,
        )
    if options.json:
        print(json_text([*report.records(), *({"advice": line} for line in report.advice)]))
    else:
        print(report)


def _reproduce(options: argparse.Namespace, _: list[str]) -> None:
    tasks: list[Problem] = options.task
    own = own_options(options, *tasks)
    records: list[Record] = []
    for chosen in tasks:
        how: dict[str, Any] = {"seed": options.seed, **own[chosen.name]}
        if options.num_sets is not None:
            how["num_sets"] = options.num_sets
        if options.train:
            how["find"] = chosen.recipe.train_all(
                Path("runs"), quiet=options.json, **own[chosen.name]
            )
        with patience(f"reproducing {chosen.name} ..."):
            found = chosen.recipe.reproduce(**how)
        records += [{"task": chosen.name, **r} for r in found] if len(tasks) > 1 else found
        if not options.json:
            show_beside_paper(found, title=chosen.table or chosen.name)
    if options.json:
        print(json_text(records))


def _ablate(options: argparse.Namespace, _: list[str]) -> None:
    if options.seconds is not None and not options.seconds > 0:
        raise ValueError(f"--seconds must be above 0; got {options.seconds}.")
    given = {name: getattr(options, name) for name in ("seconds", "sizes", "num_sets")}
    how = {name: value for name, value in given.items() if value is not None}
    with patience(f"dividing {options.task.name} in several ways ..."):
        records = options.task.ablate(seed=options.seed, **how)
    show(records, options.json, title=f"{options.task.name}: what dividing and learning do")
