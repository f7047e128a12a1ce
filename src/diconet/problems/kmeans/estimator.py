"""A scikit-learn estimator that clusters by a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any, no_type_check

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from diconet.core.model import DiCoNet
from diconet.problems.inputs import check_count
from diconet.problems.kmeans.solve import kmeans


class DiCoKMeans(  # type: ignore[misc, unused-ignore]
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """K-means by a network that cuts the points in two, and the parts again.

    Up to `lloyd` rounds of Lloyd's algorithm follow. Without a `random_state` the likeliest
    cuts are taken, so that equal data give equal clusters. `model` is a shipped name, a weights
    file or a `DiCoNet`.

    After fitting, it has `labels_`, `cluster_centers_`, `inertia_` (the cost), `n_iter_` and
    `n_features_in_`, like KMeans, and the `solution_`, whose tree shows how the points were cut.
    """

    n_clusters: int
    lloyd: int
    model: str | Path | DiCoNet | None
    random_state: int | np.random.RandomState | None

    @no_type_check  # scikit-learn lets constructors accept anything and `fit` check it
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lloyd: int = 300,
        model: str | Path | DiCoNet | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.lloyd = lloyd
        self.model = model
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DiCoKMeans:
        """Divides the rows of X into `n_clusters`; `sample_weight` holds their weights."""
        X = validate_data(self, X, dtype=np.float64)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_count(self.n_clusters, "n_clusters", least=1)
        if len(X) < self.n_clusters:
            raise ValueError(
                f"n_clusters must be at most n_samples={len(X)}; got n_clusters={self.n_clusters}."
            )
        found = kmeans(
            X,
            self.n_clusters,
            lloyd=self.lloyd,
            sample_weight=None if sample_weight is None else weight,
            model=self.model,
            seed=self._seed(),
        )
        self.solution_ = found
        self.cluster_centers_ = found.centers
        self.labels_ = self._nearest(X)
        self.inertia_ = self._cost(X, self.labels_, weight)
        self.n_iter_ = max(found.rounds, 1)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the cost of the rows: the sum of squared distances to the nearest centres."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return -self._cost(X, self._nearest(X), weight)

    def predict(self, X: Any) -> np.ndarray:
        """The nearest centre to each row."""
        check_is_fitted(self)
        return self._nearest(validate_data(self, X, dtype=np.float64, reset=False))

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each row to each centre."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(pairwise_distances(X, self.cluster_centers_))

    @property
    def _n_features_out(self) -> int:
        """The number of distances that `transform` returns."""
        return len(self.cluster_centers_)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _cost(self, X: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> float:
        return float((np.square(X - self.cluster_centers_[labels]).sum(1) * weight).sum())

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(pairwise_distances_argmin(X, self.cluster_centers_), dtype=np.int32)
