"""The list of problems: the built-in ones, those of other packages, and a task in a user's file.

Nothing here imports torch: the command line needs names and options before it knows whether it
needs a network. A problem of another package is imported only on request.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from diconet.problems.problem import Problem

GROUP = "diconet.problems"
"""The entry-point group through which other packages add problems."""


@cache
def built_in() -> dict[str, Problem]:
    """The built-in problems by name: those of every folder beside this file."""
    folder = str(Path(__file__).parent)
    names = [module.name for module in pkgutil.iter_modules([folder]) if module.ispkg]
    packages = [import_module(f"diconet.problems.{name}") for name in names]
    found = [one for each in packages for one in getattr(each, "PROBLEMS", None) or [each.PROBLEM]]
    # problems with a folder of their own come first
    return {one.name: one for one in sorted(found, key=lambda one: one.name not in names)}


def problem_names() -> list[str]:
    """The names of all installed problems, the built-in ones first."""
    return list(dict.fromkeys([*built_in(), *_entry_points()]))


def problems() -> list[Problem]:
    """All installed problems, the built-in ones first; any that cannot be loaded is left out."""
    found = []
    for name in problem_names():
        try:
            found.append(find_problem(name))
        except Exception as error:  # an error in another package must not stop the rest
            warnings.warn(f"problem {name!r} is left out: {error}", stacklevel=2)
    return found


def find_problem(name: str) -> Problem:
    """A problem by its name, or as `file.py:Class`, a task in a user's file."""
    if name in built_in():
        return built_in()[name]
    if name in _entry_points():
        return _of_package(name)
    path, _, attribute = name.rpartition(":")
    if path.endswith(".py"):
        return _of_file(Path(path).resolve(), attribute)
    raise ValueError(
        f"TASK must be one of {', '.join(problem_names())} or file.py:Class; got {name!r}."
    )


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=str)}


@cache
def _of_package(name: str) -> Problem:
    """The problem of an entry point; its presets and weights are beside its module."""
    point = _entry_points()[name]
    found = point.load()
    problem = as_problem(name, found, sys.modules[point.module].__package__ or None)
    if problem.name != name:
        raise ValueError(
            f"an entry point must have the name of its problem, {problem.name!r}; got {name!r}."
        )
    return problem


@cache
def _of_file(path: Path, attribute: str) -> Problem:
    """The task (or problem) in a file; a task is named like its class in lower case."""
    if not path.is_file():
        raise ValueError(f"TASK must name an existing file; there is no {path}.")
    module = _module_at(path)
    if not hasattr(module, attribute):
        raise ValueError(f"TASK must name a class in {path.name}; it has no {attribute!r}.")
    problem = as_problem(attribute.lower(), getattr(module, attribute), None)
    problem.address = f"{path}:{attribute}"
    return problem


def _module_at(path: Path) -> Any:
    """A Python file, imported under its own name, so that it can import its neighbours."""
    known = importlib.util.find_spec(path.stem) if path.stem.isidentifier() else None
    if known is not None and known.origin != str(path):
        raise ValueError(
            f"TASK must be a file named unlike any module; {path.name} hides {known.origin}."
        )
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def as_problem(name: str, found: Any, package: str | None) -> Problem:
    """A problem unchanged, or one made from a task (or task class)."""
    if isinstance(found, Problem):
        return found
    try:
        task = found() if isinstance(found, type) else found
    except TypeError as error:
        raise ValueError(f"TASK must be a class that needs no arguments; {error}.") from error
    for method in ("sample", "reward"):
        if not callable(getattr(task, method, None)):
            raise ValueError(f"TASK must have a method {method}; {type(task).__name__} has none.")
    return Problem(name, task, package=package)
