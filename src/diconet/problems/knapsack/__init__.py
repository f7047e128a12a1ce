"""The 0-1 knapsack (section 6.3 of the paper)."""

from diconet.problems.knapsack.problem import PROBLEM

__all__ = ["PROBLEM"]
