"""The test suite, and the type check that runs under it."""

from beartype import BeartypeConf, beartype

typecheck = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""Shapes and types of every signature of ours; an int may stand where a float is asked for."""
