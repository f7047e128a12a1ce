"""Algorithms learned from input-output pairs: sorting, selection, and three more."""

from diconet.problems.algorithms.problem import PROBLEMS

__all__ = ["PROBLEMS"]
