"""A table from a user's file, and the choice of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

_ROW_NUMBERS = ("", "id", "index", "row", "nr", "no", "unnamed: 0", "fid", "objectid")
_LOOK = 100
"""The number of cells that decide whether a column is text."""

_GROUPS = {",": " .'\u2019_\u00a0\u202f", ".": " ,'\u2019_\u00a0\u202f"}
"""Possible thousands separators, by decimal sign."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows under `columns`, kept as read, so that answers can be written beside them.

    `named` says whether the file names its columns; otherwise they are column1, column2, ...
    `extras` holds other values of an instance, such as its capacity, `decimal` is the decimal
    sign, and `mark` the separator between cells. `lines` are the line numbers of the rows
    in a text file.
    """

    name: str
    frame: pd.DataFrame
    named: bool = True
    extras: Mapping[str, Any] = field(default_factory=dict)
    decimal: str | None = None
    mark: str = ","
    lines: Sequence[int] = ()

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.frame.columns)

    def extra(self, name: str, given: Any) -> Any:
        """A value given as an option, or else in the file."""
        limit = self.extras.get(name) if given is None else given
        if limit is None:
            raise ValueError(
                f"{name} must be given, as --{name} or under {name!r} in a JSON file;"
                f" {self.name} has none."
            )
        return limit

    # Choosing columns.

    def role(self, names: Sequence[str]) -> str | None:
        """The column with one of these names, ignoring case."""
        there = {column.strip().lower(): column for column in self.columns}
        return next((there[name] for name in names if name in there), None)

    def asked(self, columns: Sequence[str]) -> list[str]:
        """Columns selected by name or number from 1."""
        return [self._asked(name.strip()) for name in columns]

    def _asked(self, name: str) -> str:
        column = self.role([name.lower()])
        if column is None and name.isdecimal() and 1 <= int(name) <= len(self.columns):
            column = self.columns[int(name) - 1]
        if column is None:
            known = ", ".join(self.columns) if self.named else f"1 to {len(self.columns)}"
            raise ValueError(f"--columns must be among {known}; got {name!r}.")
        return column

    def numeric(self, count: int | None) -> list[str]:
        """The columns of measurements, `count` of them, if they can be told apart."""
        kept = [c for c in self.columns if not self._is_text(c) and not self._counts_rows(c)]
        odd = [column for column in self.columns if column not in kept]
        if count is None and odd and kept:
            why = "holds text" if self._is_text(odd[0]) else "looks like row numbers"
            raise ValueError(
                f"every column must be a measurement; in {self.name} {odd[0]!r} {why}:"
                f" use --columns {self.typed(kept)} to leave it out."
            )
        if count in (None, len(kept)):
            return kept or self.columns
        if count == len(self.columns):
            return self.columns
        some = (kept if len(kept) > (count or 0) else self.columns)[:count]
        has = ", ".join(self.columns) if self.named else f"{len(self.columns)} without names"
        hint = f": choose them with --columns, such as --columns {self.typed(some)}"
        raise ValueError(
            f"columns must be {count}; {self.name} has {has}"
            f"{hint if len(self.columns) > (count or 0) else ''}."
        )

    def typed(self, columns: Sequence[str]) -> str:
        """Columns as a user would type them: by name if it is simple, or else by number."""
        plain = re.compile(r"(?!\d+$)[\w.-]+")
        numbers = {column: str(place) for place, column in enumerate(self.columns, start=1)}
        is_plain = self.named and all(plain.fullmatch(column) for column in columns)
        return ",".join(columns if is_plain else [numbers[column] for column in columns])

    def _is_text(self, column: str) -> bool:
        """Whether no cell at the top of a column is a number."""
        cells = self.frame[column]
        if cells.dtype.kind in "biuf":
            return False
        return not any(self.is_number(cell) for cell in islice(cells, _LOOK))

    def _counts_rows(self, column: str) -> bool:
        """Whether a column only numbers the rows, judged by its name or its values."""
        if self.named:
            return column.strip().lower() in _ROW_NUMBERS
        if column != self.columns[0] or len(self.columns) < 3 or len(self.frame) < 3:
            return False
        cells = [str(cell) for cell in self.frame[column]]
        return any(cells == [str(i + k) for i in range(len(cells))] for k in (0, 1))

    # Reading numbers.

    def is_number(self, cell: Any) -> bool:
        """Whether a cell reads as a number."""
        try:
            float(self._plain(cell))
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def numbers(self, column: str) -> list[Any]:
        """The numbers of a column; whole numbers of any size stay exact."""
        cells = self.frame[column]
        if cells.dtype.kind in "biuf":
            found: list[Any] = cells.tolist()
            return found
        return [self._number(cell, row, column) for row, cell in enumerate(cells)]

    def points(self, columns: Sequence[str]) -> np.ndarray:
        """The numbers of these columns, one row per item."""
        if not columns:
            return np.zeros((len(self.frame), 0))
        return np.column_stack([self._floats(column) for column in columns])

    def _floats(self, column: str) -> np.ndarray:
        cells = self.frame[column]
        if cells.dtype.kind in "biuf":
            return cells.to_numpy(dtype=np.float64, na_value=np.nan)
        try:
            return np.array([self._plain(cell) for cell in cells], dtype=np.float64)
        except OverflowError:
            raise ValueError(
                f"every number must be in the range of float64; {self.name} has one beyond it."
            ) from None
        except (TypeError, ValueError):
            return np.array(self.numbers(column), dtype=np.float64)  # raises a clear error

    def _plain(self, cell: Any) -> Any:
        """A cell in Python's number format; None is not a number, not even NaN."""
        if cell is None or cell is pd.NA:
            raise TypeError("nothing there")
        if self.decimal is None or not isinstance(cell, str):
            return cell
        return re.sub(f"[{_GROUPS[self.decimal]}]", "", cell).replace(self.decimal, ".")

    def _number(self, cell: Any, row: int, column: str) -> Any:
        if isinstance(cell, Number) and not isinstance(cell, bool):
            return cell  # any numeric type, including decimals
        for kind in (int, float):
            try:
                return kind(self._plain(cell))
            except (TypeError, ValueError, OverflowError):
                pass
        where = f"line {self.lines[row]}" if self.lines else f"row {row + 1}"
        under = f" under {column!r}" if self.named else ""
        what = "nothing" if cell is None or cell is pd.NA else repr(cell)
        raise ValueError(
            f"every cell must be a number; {self.name} has {what} in {where}{under}"
            f"{self._hint(cell)}."
        )

    def _hint(self, cell: Any) -> str:
        """What to type if a cell looks like a number in another format."""
        if self.decimal is None and (sign := _decimal_sign(str(cell).strip(), self.mark)):
            return f": use --decimal {sign} if that is 1.234,5 or 1,234.5 for 1234.5"
        return ""


def _decimal_sign(cell: str, mark: str) -> str | None:
    """The decimal sign of a number as people write it; None if it is not a number."""
    signs = (".", ",") if mark == "," else (",", ".")  # a comma between cells is not a decimal sign
    for sign in signs:
        group = "," if sign == "." else "."
        pattern = rf"[+-]?(\d+|\d{{1,3}}([ '\u2019{group}]\d{{3}})+)(\{sign}\d*)?"
        if re.fullmatch(pattern, cell):
            return sign
    return None


def stem(name: str) -> str:
    """The name of a file without its suffix, keeping the name of an instance within it."""
    found = re.fullmatch(r"(.*?)(?:\.\w+)?(\[[^\[\]]*\])?", name, flags=re.DOTALL)
    assert found is not None
    return found[1] + (found[2] or "")
