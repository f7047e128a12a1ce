from __future__ import annotations

import numpy as np

from diconet.problems.kmeans.solve import Clusters
from diconet.problems.solution import Partitions


def test_clusters_level_by_level() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0]])
    tree = Partitions(np.array([[False, False, True]]))
    centers = np.array([[5.0, 0.0], [0.0, 0.5]])
    clusters = Clusters(0.5, tree, points, np.array([1, 1, 0]), centers, np.ones(3), 1)
    figure = clusters.plot_levels()
    assert [ax.get_title() for ax in figure.axes] == ["root", "leaves", "answer"]
    left, right = (figure.axes[i].collections for i in (1, 2))
    # A cluster keeps its colour, whatever its label is.
    assert [c.get_facecolor().tolist() for c in left] == [c.get_facecolor().tolist() for c in right]
