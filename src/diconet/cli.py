"""The command line: one function a command; a bad input is one line and exit code 2."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

TASKS = ("hull", "kmeans", "knapsack", "tsp")


class CommandError(Exception):
    """Something the user can mend; shown as one line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `diconet`."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and not options.takes_settings:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        options.run_command(options, rest)
    except KeyboardInterrupt as stop:
        print(f"diconet: {stop or 'stopped'}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except (CommandError, ValueError, OSError) as error:
        line = " ".join(str(error).split())
        print(f"diconet: {line}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="diconet", description="Divide and Conquer Networks.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Any, summary: str, *, tasks: Sequence[str] = TASKS) -> Any:
        sub = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        sub.set_defaults(run_command=run, takes_settings=name == "train")
        if tasks:
            sub.add_argument("task", choices=tasks, metavar="TASK", help=", ".join(tasks))
        return sub

    train = command("train", _train, "train a network; any setting of the preset can be overridden")
    train.add_argument("--preset", default="small", help="a shipped preset, or a YAML file")
    train.add_argument("--run", type=Path, help="folder of the run (default: runs/TASK_PRESET)")
    train.add_argument("--quiet", action="store_true", help="no progress bar")
    train.add_argument("--settings", action="store_true", help="show all settings, and stop")

    evaluate = command("evaluate", _evaluate, "quality against the oracle, per size")
    evaluate.add_argument("--model", help="shipped weights by name, or a weights file")
    evaluate.add_argument("--sizes", type=_sizes, help="set sizes, such as 25,50")
    evaluate.add_argument("--num-sets", type=_count, default=1_024)
    evaluate.add_argument("--seed", type=int, default=0)
    evaluate.add_argument("--plot", type=Path, metavar="DIR", help="write pictures there")
    evaluate.add_argument("--json", action="store_true")

    reproduce = command(
        "reproduce", _reproduce, "the paper's table beside ours", tasks=(*TASKS, "all")
    )
    reproduce.add_argument("--num-sets", type=_count, help="test sets a column")
    reproduce.add_argument("--seed", type=int, default=0)
    reproduce.add_argument("--train", action="store_true", help="train anew first (hours)")
    reproduce.add_argument("--json", action="store_true")

    demo = command("demo", _demo, "one instance of each task with the shipped weights", tasks=())
    demo.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    demo.add_argument("--json", action="store_true")
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}.")
    return int(text)


def _sizes(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _recipe(task: str) -> ModuleType:
    return importlib.import_module(f"diconet.recipes.{task}")


def _train(options: argparse.Namespace, rest: list[str]) -> None:
    from diconet.presets import read_settings, show_settings

    recipe = _recipe(options.task)
    settings = read_settings(recipe.Settings, options.task, options.preset, rest)
    if options.settings:
        print(show_settings(settings), end="")
        return
    run = options.run or Path("runs") / f"{options.task}_{Path(options.preset).stem}"
    recipe.train_model(settings, run, options.quiet)
    print(f"weights: {run / 'weights.safetensors'}")


def _evaluate(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.weights import find

    recipe = _recipe(options.task)
    model = find(options.model or recipe.DEFAULT_MODEL)
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for path in recipe.pictures(model, options.plot):
            print(f"picture: {path}", file=sys.stderr)
    records = recipe.evaluate(
        model, sizes=options.sizes or recipe.SIZES, num_sets=options.num_sets, seed=options.seed
    )
    _show(records, options.json, title=f"{options.task}: {options.num_sets} sets a size")


def _reproduce(options: argparse.Namespace, _: list[str]) -> None:
    tasks = TASKS if options.task == "all" else (options.task,)
    changes = {} if options.num_sets is None else {"num_sets": options.num_sets}
    records: list[dict[str, Any]] = []
    for task in tasks:
        recipe = _recipe(task)
        if options.train:
            recipe.train_all(Path("runs"))
        found = recipe.reproduce(seed=options.seed, **changes)
        records += [{"task": task, **r} for r in found] if len(tasks) > 1 else found
        if not options.json:
            _show_beside_paper(found, title=task)
    if options.json:
        print(json.dumps(records))


def _demo(options: argparse.Namespace, _: list[str]) -> None:
    from diconet.demo import demo

    options.out.mkdir(parents=True, exist_ok=True)
    _show(demo(options.out), options.json, title="one instance of each task")
    if not options.json:
        print(f"pictures: {options.out}")


def _show(records: list[dict[str, Any]], as_json: bool, title: str) -> None:
    """Flat records as JSON, or as a table with a column a field."""
    if as_json:
        print(json.dumps(records))
        return
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    fields = list(dict.fromkeys(name for record in records for name in record))
    for name in fields:
        numeric = any(isinstance(record.get(name), int | float) for record in records)
        table.add_column(name, justify="right" if numeric else "left")
    for record in records:
        table.add_row(*(_cell(record.get(name)) for name in fields))
    _console().print(table)


def _show_beside_paper(records: list[dict[str, Any]], title: str) -> None:
    """One table a metric, rows and columns as in the paper; its figure in brackets."""
    from rich.table import Table

    for metric in dict.fromkeys(record["metric"] for record in records):
        cells = {(r["row"], r["column"]): r for r in records if r["metric"] == metric}
        table = Table(title=f"{title}: {metric}, ours (paper)", title_justify="left")
        table.add_column("")
        columns = dict.fromkeys(column for _, column in cells)
        for column in columns:
            table.add_column(column, justify="right")
        for row in dict.fromkeys(row for row, _ in cells):
            table.add_row(row, *(_beside(cells.get((row, column))) for column in columns))
        _console().print(table)


def _beside(record: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    paper = "" if record["paper"] is None else f" ({_cell(record['paper'])})"
    return _cell(record["ours"]) + paper


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _console() -> Any:
    from rich.console import Console

    # Piped, a table keeps its full width instead of being cut to 80 columns.
    return Console() if sys.stdout.isatty() else Console(width=160)
