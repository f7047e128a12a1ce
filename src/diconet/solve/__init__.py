"""Answers for a user's own data: arrays in, a `Solution` out."""

from diconet.solve.solution import Solution

__all__ = ["Solution"]
