"""The engine: packed sets, trees, `grow` and `fold`. It knows no problem."""
