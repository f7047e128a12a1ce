"""Several networks in one, by the number of features."""

import pytest
import torch

from diconet.core.model import DiCoNet
from diconet.core.sets import SetBatch
from diconet.core.weights import load, save
from diconet.nets.by_features import ByFeatures
from diconet.nets.set_split import SetSplit


def both() -> ByFeatures:
    torch.manual_seed(0)
    return ByFeatures(d2=SetSplit(2), d5=SetSplit(5))


@pytest.mark.parametrize("features", [2, 5])
def test_each_set_goes_to_the_network_for_its_features(features: int) -> None:
    split = both()
    sets = SetBatch.of([torch.rand(6, features), torch.rand(3, features)])
    expected = split.networks[f"d{features}"](sets, None).prob
    assert torch.equal(split(sets).prob, expected)


def test_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have one of 2, 5 coordinates .*; got 3"):
        both()(SetBatch.of([torch.rand(4, 3)]))


def test_all_of_them_are_in_one_file(tmp_path) -> None:
    model = DiCoNet(both(), depth=1)
    save(model, tmp_path / "both.safetensors", half=False)
    again = load(tmp_path / "both.safetensors")
    for features in (2, 5):
        sets = SetBatch.of([torch.rand(6, features)])
        assert torch.equal(again.split(sets).prob, model.split(sets).prob)
