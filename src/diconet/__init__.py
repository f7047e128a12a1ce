"""Divide and Conquer Networks: learn to split a set into a tree and to merge answers up it."""
