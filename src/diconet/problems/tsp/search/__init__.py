"""Tours through cities in the plane: candidate edges, decoding, joining and local search.

Nothing here knows of networks, and nothing here holds a number for every pair of cities.
"""
