from __future__ import annotations

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from diconet.core.sets import SetBatch
from diconet.core.tree import Growth, grow
from diconet.nets.classic import MedianSplit
from diconet.problems.kmeans.task import Gaussian, KMeansTask, Patches, cost_of

CIFAR = Path(os.environ.get("DICONET_CIFAR10", "cifar10"))


def test_reward_is_minus_the_cost_of_the_leaves() -> None:
    """0 1 | 10 14 by the median: 0.5 + 8."""
    sets = SetBatch.of([torch.tensor([[10.0], [0.0], [14.0], [1.0]])])
    tree = grow(MedianSplit(), sets, Growth(depth=1))
    assert KMeansTask(Gaussian(1)).reward(sets, tree).tolist() == pytest.approx([-8.5])


def test_gaussian_clusters_have_the_papers_variance(rng: torch.Generator) -> None:
    task = KMeansTask(Gaussian(10))
    sets = task.sample(50, 160, rng=rng)
    assert sets.context[:, 0].tolist() == [8.0] * 50
    truth = torch.arange(8).repeat_interleave(20).repeat(50)
    # 19 of 20 degrees of freedom, 10 dimensions, variance 1e-3
    assert cost_of(sets, truth).mean().item() == pytest.approx(8 * 19 * 10 * 1e-3, rel=0.02)
    assert 0.45 < sets.items.mean() < 0.55


def test_uneven_clusters_differ_in_size(rng: torch.Generator) -> None:
    even = Gaussian(2).draw(1, 40, 4, rng=rng)
    assert even.shape == (40, 2)
    uneven = KMeansTask(Gaussian(1, variance=1e-12, uneven=1.0), (4,)).sample(1, 400, rng=rng)
    counts = np.unique(uneven.items.numpy().round(4), return_counts=True)[1]
    assert counts.max() > 1.5 * counts.min()


def test_same_generator_same_points_and_another_not() -> None:
    def draw(seed: int) -> torch.Tensor:
        return KMeansTask().sample(2, 40, rng=torch.Generator().manual_seed(seed)).items

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_patches_are_cut_out_of_the_photographs(rng: torch.Generator) -> None:
    points = Patches.photographs()
    x = points.draw(2, 30, 4, rng=rng).numpy()
    assert x.shape == (60, 27)
    assert 0 <= x.min() < x.max() <= 1
    windows = [
        np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(0, 1))
        for image in points.images
    ]
    patch = np.round(x[0] * 255).reshape(3, 3, 3).transpose(2, 0, 1)
    assert any(bool((w == patch).all((2, 3, 4)).any()) for w in windows)


def test_a_cifar_file_cannot_run_code(tmp_path: Path) -> None:
    class Bad:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("true",)

    file = io.BytesIO()
    pickle.dump({b"data": Bad()}, file)
    (tmp_path / "test_batch").write_bytes(file.getvalue())
    with pytest.raises(ValueError, match=r"cifar must be arrays; a file there asks for .*system"):
        Patches.cifar10(tmp_path, subset="test_batch")


def test_a_folder_without_cifar_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cifar must be a folder that holds test_batch"):
        Patches.cifar10(tmp_path, subset="test_batch")


@pytest.mark.skipif(not CIFAR.is_dir(), reason="no CIFAR-10 here; DICONET_CIFAR10 may name it")
def test_cifar_patches_look_like_images(rng: torch.Generator) -> None:
    x = Patches.cifar10(CIFAR, subset="test_batch").draw(4, 500, 4, rng=rng)
    assert x.shape == (2000, 27)
    assert 0 <= x.min() < x.max() <= 1
    # neighbouring pixels are alike, colours of one pixel too
    assert torch.corrcoef(x[:, [0, 3]].T)[0, 1] > 0.9
