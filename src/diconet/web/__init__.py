"""A page to play with: click points, solve them, step through the levels of the tree."""
