"""The engine: packed sets, trees, `grow` and `fold`, independent of any problem."""
