"""The planar convex hull (section 6.1 of the paper)."""

from diconet.problems.hull.problem import PROBLEM

__all__ = ["PROBLEM"]
