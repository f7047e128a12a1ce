"""What the page shows about a problem: words, fields, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Division = Literal["learned", "random", "none"]
"""How to divide: by the network, by a coin flip per item, or not at all."""


@dataclass(frozen=True)
class PageField:
    """A number that the page asks for besides the points; a whole one from 0 to 1 is a switch."""

    name: str
    label: str
    value: float
    least: float = 0.0
    most: float = 1e9
    whole: bool = False

    def read(self, text: Any) -> float:
        """A value for this field, checked."""
        try:
            value = float(text)
        except (TypeError, ValueError):
            value = float("nan")
        if not self.least <= value <= self.most or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            limits = f"from {self.least:g} to {self.most:g}"
            raise ValueError(f"{self.name} must be {kind} {limits}; got {str(text)[:20]}.")
        return value


@dataclass(frozen=True)
class Page:
    """How the page presents a problem.

    `items` is the word for the points, `value` for the value of an answer. With `axes`, the names
    of the two coordinates, it labels the plane and lists the items in a table. `cut`, `merge` and
    `answer` explain the steps of these kinds. `without` describes solving without division, and
    `undivided` is the maximum number of items for that.
    """

    items: str = "points"
    value: str = "reward"
    axes: tuple[str, str] | None = None
    fields: tuple[PageField, ...] = ()
    cut: str = "The split cuts every part in two."
    merge: str = "The merge combines the answers of two parts into one."
    answer: str = "This is the answer."
    without: str = "all at once"
    undivided: int = 2_000

    def read(self, given: Mapping[str, Any]) -> dict[str, float]:
        """The values of all fields: those given, checked, and the defaults of the rest."""
        known = {one.name: one for one in self.fields}
        for name in given:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise ValueError(f"fields must be among {allowed}; got {name[:20]!r}.")
        return {name: one.read(given.get(name, one.value)) for name, one in known.items()}

    def check(self, num_items: int, division: Division) -> None:
        """Rejects more items than can be solved without division."""
        if division == "none" and num_items > self.undivided:
            raise ValueError(
                f"without division at most {self.undivided} {self.items} are solved here; got"
                f" {num_items}: a tree makes larger inputs cheap."
            )
