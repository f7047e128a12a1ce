"""Presets: the settings of a training run, as YAML files beside this one."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml

S = TypeVar("S")


def read_settings(cls: type[S], task: str, preset: str, overrides: list[str]) -> S:
    """The settings of a preset, shipped or a YAML file, with overrides like `--train.steps 9`."""
    import argparse

    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog=f"diconet train {task}", exit_on_error=False)
    parser.add_class_arguments(cls)
    try:
        parser.set_defaults(_known(cls, task, preset))
        chosen = parser.instantiate(parser.parse_args(overrides))
    except (argparse.ArgumentError, KeyError, TypeError) as error:
        raise ValueError(f"setting refused: {error}") from error
    return cls(**vars(chosen))


def show_settings(settings: Any) -> str:
    """All settings as YAML; a file of these lines is a preset."""
    assert is_dataclass(settings)
    assert not isinstance(settings, type)
    return yaml.safe_dump(asdict(settings), sort_keys=False)


def names(task: str) -> list[str]:
    """The shipped presets of a task."""
    stems = [
        f.name.removesuffix(".yaml") for f in files(__name__).iterdir() if f.name.endswith(".yaml")
    ]
    return sorted(s.removeprefix(f"{task}_") for s in stems if s.startswith(f"{task}_"))


def _read(task: str, preset: str) -> dict[str, Any]:
    shipped = files(__name__) / f"{task}_{preset}.yaml"
    if shipped.is_file():
        text = shipped.read_text()
    elif Path(preset).is_file():
        text = Path(preset).read_text()
    else:
        raise ValueError(
            f"preset must be a file or one of {', '.join(names(task))}; got {preset!r}."
        )
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"preset must be YAML; {preset}: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"preset must be a mapping of settings; {preset} is not.")
    return content


def _known(cls: type[Any], task: str, preset: str) -> dict[str, Any]:
    """The settings of a preset, all of which the task has."""
    given, known = _flat(_read(task, preset)), _flat(asdict(cls()))
    for name in given.keys() - known.keys():
        raise ValueError(f"preset must have settings of {task} only; {preset} has {name!r}.")
    return given


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
