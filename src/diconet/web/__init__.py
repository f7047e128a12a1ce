"""The interactive page: place points, solve them, step through the levels of the tree."""
