"""A task or a loss in words that JSON can hold, and where two such descriptions differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any


def described(thing: Any) -> Any:
    """A task or a loss as far as JSON can say it: names, numbers, and the shapes of arrays."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, list | tuple):
        return [described(one) for one in thing]
    if isinstance(thing, dict):
        return {str(name): described(one) for name, one in thing.items()}
    if isinstance(thing, partial):
        return {"class": _call(thing)}
    words: dict[str, Any] = {"class": getattr(thing, "__name__", type(thing).__name__)}
    if is_dataclass(thing) and not isinstance(thing, type):
        words |= {field.name: described(getattr(thing, field.name)) for field in fields(thing)}
    elif hasattr(thing, "shape"):
        words["shape"] = list(thing.shape)
    return words


def _call(made: partial[Any]) -> str:
    """A function with some of its arguments given, as one would write it."""
    given = [str(described(one)) for one in made.args]
    given += [f"{name}={described(one)}" for name, one in made.keywords.items()]
    return f"{described(made.func)['class']}({', '.join(given)})"


def changes(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two descriptions differ in what both of them say: its name, what it was and is."""
    if isinstance(old, dict) and isinstance(new, dict) and old.get("class") == new.get("class"):
        for key in new:
            if key in old:
                yield from changes(f"{name}.{key}".lstrip("."), old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from changes(f"{name}[{place}]", before, now)
    elif isinstance(old, list) and isinstance(new, list):
        yield f"the number of {name}", len(old), len(new)
    elif old != new:
        yield name, _brief(old), _brief(new)


def _brief(words: Any) -> Any:
    """What stands for a description in a line: the class without its path."""
    if not isinstance(words, dict):
        return words
    name = words.get("class")
    return name.rpartition(".")[2] if isinstance(name, str) and "(" not in name else name
