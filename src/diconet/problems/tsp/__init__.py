"""The travelling salesman (appendix C of the paper)."""

from diconet.problems.tsp.problem import PROBLEM

__all__ = ["PROBLEM"]
