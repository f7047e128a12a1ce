"""K-means clustering (section 6.2 of the paper)."""

from diconet.problems.kmeans.problem import PROBLEM

__all__ = ["PROBLEM"]
