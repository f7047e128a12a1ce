"""Tours through cities in the plane: candidate edges, decoding, joining and local search.

Nothing here depends on networks, and nothing here holds a number for every pair of cities.
"""
