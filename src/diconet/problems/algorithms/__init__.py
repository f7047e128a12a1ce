"""Algorithms learned from input-output pairs: sorting, selection and others that textbooks divide."""

from diconet.problems.algorithms.problem import PROBLEMS

__all__ = ["PROBLEMS"]
