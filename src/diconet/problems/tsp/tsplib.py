"""TSPLIB files (Reinelt 1991): reads cities, writes tours, and lists known optima."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diconet.core.files import write_whole
from diconet.io.source import Source

KINDS = ("EUC_2D", "CEIL_2D", "ATT", "GEO")
"""The supported edge weight types."""

_OPTIMA = """
    a280 2579, ali535 202339, att48 10628, att532 27686, berlin52 7542, bier127 118282,
    burma14 3323, ch130 6110, ch150 6528, d198 15780, d493 35002, d657 48912, d1291 50801,
    d1655 62128, d2103 80450, eil51 426, eil76 538, eil101 629, fl417 11861, fl1400 20127,
    fl1577 22249, fl3795 28772, fnl4461 182566, gil262 2378, gr96 55209, gr137 69853,
    gr202 40160, gr229 134602, gr431 171414, gr666 294358, kroA100 21282, kroB100 22141,
    kroC100 20749, kroD100 21294, kroE100 22068, kroA150 26524, kroB150 26130, kroA200 29368,
    kroB200 29437, lin105 14379, lin318 42029, nrw1379 56638, p654 34643, pcb442 50778,
    pcb1173 56892, pcb3038 137694, pr76 108159, pr107 44303, pr124 59030, pr136 96772,
    pr144 58537, pr152 73682, pr226 80369, pr264 49135, pr299 48191, pr439 107217,
    pr1002 259045, pr2392 378032, rat99 1211, rat195 2323, rat575 6773, rat783 8806,
    rd100 7910, rd400 15281, rl1304 252948, rl1323 270199, rl1889 316536, rl5915 565530,
    rl5934 556045, rl11849 923288, st70 675, ts225 126643, tsp225 3916, u159 42080,
    u574 36905, u724 41910, u1060 224094, u1432 152970, u1817 57201, u2152 64253,
    u2319 234256, ulysses16 6859, ulysses22 7013, usa13509 19982859, vm1084 239297,
    vm1748 336556
"""
OPTIMA: dict[str, int] = {
    name: int(length) for name, length in (entry.split() for entry in _OPTIMA.split(","))
}
"""Published lengths of shortest tours, by instance name."""


@dataclass(frozen=True, eq=False)
class TspInstance:
    """Cities from a file, and the TSPLIB rule for distances between them."""

    name: str
    kind: str
    cities: np.ndarray

    @property
    def optimum(self) -> int | None:
        """The length of a shortest tour, if known."""
        return OPTIMA.get(self.name)


def is_tsplib(source: Source) -> bool:
    """Whether a file is in TSPLIB format, by its name or content."""
    return source.suffix == ".tsp" or b"NODE_COORD_SECTION" in source.data[:4_096]


def read_tsp(path: str | Path) -> TspInstance:
    """The cities of a .tsp file, in the order of the file."""
    return parse_tsp(Source.of(path))


def parse_tsp(source: Source) -> TspInstance:
    """The cities of a file that has been read, in its order."""
    header, rows = _sections(source, "NODE_COORD_SECTION")
    kind = header.get("EDGE_WEIGHT_TYPE", "(none)")
    if kind not in KINDS:
        raise ValueError(
            f"EDGE_WEIGHT_TYPE must be one of {', '.join(KINDS)}; {source.name} has {kind}."
        )
    cities = []
    for row in rows:
        fields = row.split()
        try:
            if len(fields) != 3:
                raise ValueError
            cities.append((float(fields[1]), float(fields[2])))
        except ValueError:
            raise ValueError(
                f"a line of NODE_COORD_SECTION must be a number, x and y; {source.name} has"
                f" {row!r}."
            ) from None
    _check_dimension(source, header, len(cities))
    name = header.get("NAME", Path(source.name).stem).removesuffix(".tsp")
    return TspInstance(name, kind, np.array(cities).reshape(-1, 2))


def write_tour(path: str | Path, tour: np.ndarray, *, name: str, comment: str = "") -> None:
    """Writes a tour (numbered from 0) as a .tour file."""
    lines = [f"NAME : {name}", "TYPE : TOUR"]
    lines += [f"COMMENT : {comment}"] if comment else []
    lines += [f"DIMENSION : {len(tour)}", "TOUR_SECTION"]
    lines += [str(int(city) + 1) for city in tour]
    write_whole(path, "\n".join([*lines, "-1", "EOF", ""]).encode())


def _sections(source: Source, section: str) -> tuple[dict[str, str], list[str]]:
    """The header of a file, and the lines of one section."""
    header: dict[str, str] = {}
    lines = iter(source.text.splitlines())
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == section:
            break
        header[key.strip()] = value.strip()
    else:
        kind = header.get("EDGE_WEIGHT_TYPE")
        reason = f" (EDGE_WEIGHT_TYPE {kind} is unsupported)" if kind not in (None, *KINDS) else ""
        raise ValueError(f"a TSPLIB file must have a {section}; {source.name} has none{reason}.")
    rows = []
    for line in lines:
        text = line.strip()
        if text == "EOF" or (text and text[0].isalpha()):
            break
        if text:
            rows.append(text)
    return header, rows


def _check_dimension(source: Source, header: dict[str, str], found: int) -> None:
    wanted = header.get("DIMENSION", str(found))
    if wanted != str(found):
        raise ValueError(
            f"DIMENSION must be the number of cities; {source.name} says {wanted}, has {found}."
        )
