"""Train, evaluate and reproduce: what a researcher asks for."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from diconet.cli.options import TASKS, add_command, count, sizes, whole
from diconet.cli.show import Record, json_text, patience, show, show_beside_paper

_SEEDS = range(2**63)


def add(commands: Any) -> None:
    """Adds the three commands."""
    train = add_command(
        commands,
        "train",
        _train,
        "train a network; any setting of the preset can be overridden",
        tasks=TASKS,
        takes_more=True,
    )
    train.add_argument("--preset", default="small", help="a shipped preset (below), or a YAML file")
    train.add_argument(
        "--run", type=Path, help="folder of the run (default: runs/TASK_PRESET[_ROW])"
    )
    train.add_argument("--quiet", action="store_true", help="no progress bar")
    train.add_argument("--settings", action="store_true", help="show all settings, and stop")
    train.epilog = _presets()
    train.formatter_class = argparse.RawDescriptionHelpFormatter

    evaluate = add_command(
        commands, "evaluate", _evaluate, "quality against the oracle, per size", tasks=TASKS
    )
    evaluate.add_argument("--model", help="shipped weights by name, or a weights file")
    evaluate.add_argument("--sizes", type=sizes, help="set sizes, such as 25,50")
    evaluate.add_argument("--num-sets", type=count, default=1_024, help="a size (default: 1024)")
    evaluate.add_argument("--seed", type=_seed, default=0, help="what is drawn (default: 0)")
    evaluate.add_argument(
        "--views", type=count, help="hull: see every set from so many of a square's 8 sides"
    )
    evaluate.add_argument("--plot", type=Path, metavar="DIR", help="write pictures there")
    _takes_cifar(evaluate)
    evaluate.add_argument("--json", action="store_true")

    reproduce = add_command(
        commands, "reproduce", _reproduce, "the paper's table beside ours", tasks=(*TASKS, "all")
    )
    reproduce.add_argument("--num-sets", type=count, help="test sets a column")
    reproduce.add_argument("--seed", type=_seed, default=0, help="what is drawn (default: 0)")
    reproduce.add_argument("--train", action="store_true", help="train anew first (hours)")
    _takes_cifar(reproduce)
    reproduce.add_argument("--json", action="store_true")


def _presets() -> str:
    """What `--preset` may name, and how to go on from there."""
    from diconet.presets import names

    lines = [f"  {task:9}{', '.join(names(task))}" for task in TASKS]
    how = "Any setting can follow, such as --train.steps 500; --settings shows them all."
    return "\n".join(["presets:", *lines, "", how])


def _takes_cifar(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cifar", type=Path, metavar="DIR", help="k-means: where CIFAR-10 is")


def _only_for(options: argparse.Namespace, task: str) -> dict[str, Any]:
    """The options that one task alone knows what to do with, where they were given."""
    given = {}
    for name, knows in (("cifar", "kmeans"), ("views", "hull")):
        value = getattr(options, name, None)
        if value is None or (options.task == "all" and task != knows):
            continue
        if task != knows:
            raise ValueError(f"{name} must go with {knows}; got {task}.")
        given[name] = value
    return given


def _seed(text: str) -> int:
    """Reads a seed that every generator takes."""
    seed = whole(text)
    if seed not in _SEEDS:
        raise argparse.ArgumentTypeError(f"must be from 0 to 2^63 - 1; got {seed}.")
    return seed


def _check_seeds(settings: Any) -> None:
    """The same for the seeds of a training's stages."""
    for stage in fields(settings):
        seed = getattr(getattr(settings, stage.name), "seed", 0)
        if seed not in _SEEDS:
            raise ValueError(f"{stage.name}.seed must be from 0 to 2^63 - 1; got {seed}.")


def _recipe(task: str) -> ModuleType:
    return importlib.import_module(f"diconet.recipes.{task}")


def _train(options: argparse.Namespace, rest: list[str]) -> None:
    from diconet.presets import read_settings, show_settings

    recipe = _recipe(options.task)
    settings = read_settings(recipe.Settings, options.task, options.preset, rest)
    if options.settings:
        print(show_settings(settings), end="")
        return
    _check_seeds(settings)
    run = options.run or Path("runs") / _run_name(options, settings)
    recipe.train_model(settings, run, options.quiet)
    print(f"weights: {run / 'weights.safetensors'}")


def _run_name(options: argparse.Namespace, settings: Any) -> str:
    """The task, the preset and, where the task has rows, the row."""
    names = (options.task, Path(options.preset).stem, getattr(settings, "row", None))
    return "_".join(name for name in names if name is not None)


def _evaluate(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.solve.networks import as_network

    recipe, more = _recipe(options.task), _only_for(options, options.task)
    model = as_network(
        options.model, default=recipe.DEFAULT_MODEL, task=options.task, parts=recipe.PARTS
    )
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for path in recipe.pictures(model, options.plot):
            print(f"picture: {path}", file=sys.stderr)
    with patience(f"evaluating {options.task} ..."):
        records = recipe.evaluate(
            model,
            sizes=options.sizes or recipe.SIZES,
            num_sets=options.num_sets,
            seed=options.seed,
            **more,
        )
    show(records, options.json, title=f"{options.task}: {options.num_sets} sets a size")


def _reproduce(options: argparse.Namespace, _: list[str]) -> None:
    tasks = TASKS if options.task == "all" else (options.task,)
    changes: dict[str, Any] = {} if options.num_sets is None else {"num_sets": options.num_sets}
    records: list[Record] = []
    for task in tasks:
        recipe, more = _recipe(task), _only_for(options, task)
        if options.train:
            changes["find"] = recipe.train_all(Path("runs"), quiet=options.json, **more)
        with patience(f"reproducing {task} ..."):
            found = recipe.reproduce(seed=options.seed, **changes, **more)
        records += [{"task": task, **r} for r in found] if len(tasks) > 1 else found
        if not options.json:
            show_beside_paper(found, title=task)
    if options.json:
        print(json_text(records))
