from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import diconet
from diconet.core.weights import load, save
from diconet.problems.networks import find, from_runs, shipped
from tests.tiny import hull_network, kmeans_network, tsp_network


def test_half_precision_is_for_what_it_can_hold(tmp_path: Path) -> None:
    model = kmeans_network()
    name, *others = (name for name, value in model.state_dict().items() if value.numel())
    with torch.no_grad():
        dict(model.named_parameters())[name].view(-1)[0] = 1e5
    save(model, tmp_path / "a.safetensors")
    kept = load_file(tmp_path / "a.safetensors")
    assert kept[name].dtype == torch.float32
    assert {kept[other].dtype for other in others} == {torch.float16}
    again = load(tmp_path / "a.safetensors").state_dict()
    assert torch.equal(again[name], model.state_dict()[name])
    assert all(value.isfinite().all() for value in again.values())


@pytest.mark.parametrize("value", [65_504.0, -65_504.0])
def test_the_largest_half_is_still_a_half(value: float, tmp_path: Path) -> None:
    model = kmeans_network()
    name, parameter = next(iter(model.named_parameters()))
    with torch.no_grad():
        parameter.fill_(value)
    save(model, tmp_path / "a.safetensors")
    assert load_file(tmp_path / "a.safetensors")[name].dtype == torch.float16
    assert (load(tmp_path / "a.safetensors").state_dict()[name] == value).all()


def test_a_shipped_name_wins_over_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hull").write_bytes(b"not weights at all")
    corners = diconet.convex_hull([[0, 0], [1, 0], [0, 1], [0.2, 0.2]]).indices
    assert corners.tolist() == [0, 1, 2]
    expected = shipped("hull").state_dict()
    assert all(
        torch.equal(value, expected[name]) for name, value in find("hull").state_dict().items()
    )
    for path in (Path("hull"), "./hull"):
        with pytest.raises(ValueError, match="model must be a diconet weights file; "):
            find(path)
    save(tsp_network(), "hull.safetensors")
    assert find("hull.safetensors").state_dict().keys() == tsp_network().state_dict().keys()


def test_runs_come_before_what_is_shipped(tmp_path: Path) -> None:
    save(tsp_network(), tmp_path / "weights.safetensors")
    get = from_runs({"tsp": tmp_path})
    assert get("tsp").growth == tsp_network().growth != shipped("tsp").growth
    assert get("kmeans").state_dict().keys() == shipped("kmeans").state_dict().keys()


def test_a_network_says_what_it_lacks_to_be_saved(tmp_path: Path) -> None:
    model = hull_network()
    del model.split.config
    with pytest.raises(ValueError, match=r"MedianSplit must have a config, .*; got None"):
        save(model, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())
