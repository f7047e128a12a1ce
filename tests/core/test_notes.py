from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diconet.core.files import read_notes
from diconet.core.weights import annotate, load, save
from tests.tiny import kmeans_network


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    save(kmeans_network(), tmp_path / "a.safetensors", steps="7")
    return tmp_path / "a.safetensors"


def test_notes_are_added_and_replaced_and_the_tensors_stay(weights: Path) -> None:
    before, network = load_file(weights), read_notes(weights)["diconet"]
    annotate(weights, steps="9", figures="n=25 ratio 1.01 – so far")
    assert read_notes(weights) == {
        "diconet": network,
        "steps": "9",
        "figures": "n=25 ratio 1.01 – so far",
    }
    after = load_file(weights)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert load(weights).growth == kmeans_network().growth


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0[]", b"\x09\0\0\0\0\0\0\0{}"],
    ids=["empty", "noise", "no object", "cut short"],
)
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model must be a diconet weights file; .*a\.safetensors"):
        annotate(path, steps="9")
    assert path.read_bytes() == content


def test_a_full_disk_leaves_the_file_as_it_was(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        annotate(weights, steps="9")
    assert weights.read_bytes() == before
    assert list(weights.parent.iterdir()) == [weights]
