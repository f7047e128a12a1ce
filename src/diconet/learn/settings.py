"""Presets: the settings of a training run as YAML files, with overrides from the command line."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from diconet.core.files import named_files

S = TypeVar("S")


def read_settings(
    cls: type[S], presets: Traversable | None, preset: str, overrides: list[str]
) -> S:
    """The settings of a preset, with overrides such as `["--train.steps", "9"]`.

    `preset` names a YAML file in the folder `presets`, or is the path of any YAML file.
    """
    import argparse

    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog="diconet train", exit_on_error=False)
    parser.add_class_arguments(cls)
    try:
        parser.set_defaults(_known(cls, presets, preset))
        chosen = parser.instantiate(parser.parse_args(overrides))
    except (argparse.ArgumentError, KeyError, TypeError) as error:
        raise ValueError(f"invalid setting: {error}") from error
    return cls(**vars(chosen))


def show_settings(settings: Any) -> str:
    """All settings as YAML; a file with these lines is a preset."""
    assert is_dataclass(settings)
    assert not isinstance(settings, type)
    return yaml.safe_dump(asdict(settings), sort_keys=False)


def _read(presets: Traversable | None, preset: str) -> dict[str, Any]:
    files = named_files(presets, ".yaml")
    if preset in files:
        text = files[preset].read_text()
    elif Path(preset).is_file():
        text = Path(preset).read_text()
    elif preset == "default":
        return {}  # the defaults of the settings
    else:
        names = ", ".join(dict.fromkeys(["default", *files]))
        raise ValueError(f"preset must be a file or one of {names}; got {preset!r}.")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"preset must be YAML; {preset}: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"preset must be a mapping of settings; {preset} is not.")
    return content


def _known(cls: type[Any], presets: Traversable | None, preset: str) -> dict[str, Any]:
    """The settings in a preset, all of which must exist."""
    given, known = _flat(_read(presets, preset)), _flat(asdict(cls()))
    for name in given.keys() - known.keys():
        raise ValueError(f"preset must hold known settings only; {preset} has {name!r}.")
    return given


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
