"""A coin for every item, from a graph network over the items of each set (eq. fr3)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.segments import ragged_arange
from diconet.sets import SetBatch
from diconet.splits.coin import coin_cut
from diconet.tree import Cut


class GraphLayer(nn.Module):
    """Mixes each item's features with those of the others through five operators.

    Identity, the kernel, its degrees, the mean, and a similarity softmax(h B h') learned by the
    layer. Half of the new features pass a nonlinearity, half stay linear; all are standardised
    within their set.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.similarity = nn.Linear(inputs, inputs, bias=False)
        self.mix = nn.Linear(5 * inputs, width)

    def forward(
        self,
        h: Float[Tensor, "sets size inputs"],
        kernel: Float[Tensor, "sets size size"],
        here: Float[Tensor, "sets size 1"],
    ) -> Float[Tensor, "sets size width"]:
        """The next features; `here` is 1 where there is an item and 0 where there is padding."""
        count = here.sum(1, keepdim=True)
        mean = (h * here).sum(1, keepdim=True) / count
        scores = self.similarity(h) @ h.transpose(1, 2) / h.shape[2]
        alike = torch.softmax(scores.masked_fill(here.transpose(1, 2) == 0, -torch.inf), 2)
        degree = kernel.sum(2, keepdim=True)
        mixed = self.mix(
            torch.cat([h, kernel @ h / count, degree / count * h, mean.expand_as(h), alike @ h], 2)
        )
        bent, straight = mixed.chunk(2, 2)
        out = torch.cat([F.relu(bent), straight], 2) * here
        centred = (out - out.sum(1, keepdim=True) / count) * here
        variance = centred.square().sum(1, keepdim=True) / count
        return centred * torch.rsqrt(variance + 1e-5)


class GraphNet(nn.Module):
    """Layers over the complete graph of each set, with weights exp(-|x - x'|^2 / sigma^2).

    Distances are scaled so that the largest of a set is sqrt(2). The work is dense within a set
    and batched over sets of similar size, so it never grows with the square of all items.
    """

    def __init__(
        self, num_features: int, outputs: int, width: int, num_layers: int, sigma: float
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        if width % 2:
            raise ValueError(f"width must be even; got {width}.")
        if not sigma > 0:
            raise ValueError(f"sigma must be above 0; got {sigma}.")
        self.sigma = sigma
        self.layers = nn.ModuleList(
            GraphLayer(width if r else num_features, width) for r in range(num_layers)
        )
        self.head = nn.Linear(width, outputs)

    def forward(self, sets: SetBatch) -> Float[Tensor, "items outputs"]:
        """The outputs of every item."""
        parts, rows = [], []
        for which, width in similar_sizes(sets.sizes):
            x, here, packed = padded(sets, which, width)
            parts.append(self._dense(x, here)[here.bool().squeeze(2)])
            rows.append(packed)
        out = torch.cat(parts)
        order = torch.cat(rows)
        return torch.zeros_like(out).index_copy(0, order, out)

    def _dense(
        self, x: Float[Tensor, "sets size features"], here: Float[Tensor, "sets size 1"]
    ) -> Float[Tensor, "sets size outputs"]:
        x = (x - (x * here).sum(1, keepdim=True) / here.sum(1, keepdim=True)) * here
        # The items may be in double precision, of use only until they are centred.
        x, here = x.to(self.head.weight.dtype), here.to(self.head.weight.dtype)
        gram = x @ x.transpose(1, 2)
        norm = gram.diagonal(dim1=1, dim2=2)
        both = here @ here.transpose(1, 2)
        square = (norm[:, :, None] + norm[:, None] - 2 * gram).clamp(min=0) * both
        largest = square.amax((1, 2), keepdim=True).clamp(min=1e-20)
        scale = torch.sqrt(2 / largest)
        kernel = torch.exp(-square * scale.square() / self.sigma**2) * both
        h = x * scale
        for layer in self.layers:
            h = layer(h, kernel, here)
        return self.head(h)


class GraphSplit(nn.Module):
    """A coin for every item, whose bias a graph network finds; 20 layers of 32 in the paper."""

    def __init__(
        self, num_features: int, width: int = 32, num_layers: int = 20, sigma: float = 0.5
    ) -> None:
        super().__init__()
        self.config = {
            "num_features": num_features,
            "width": width,
            "num_layers": num_layers,
            "sigma": sigma,
        }
        self.net = GraphNet(num_features, 1, width, num_layers, sigma)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "sets"] | None) -> Cut:
        return coin_cut(sets, self.net(sets).squeeze(1), seeds)

    def many(self, sets: SetBatch, seeds: Int[Tensor, "samples"]) -> Cut:
        """Cuts of `sets.repeat(times)` from one look at each set; `times` seeds a set in a row."""
        times = len(seeds) // len(sets)
        which = torch.arange(len(sets), device=seeds.device).repeat_interleave(times)
        rows = ragged_arange(sets.offsets[which], sets.sizes[which])
        return coin_cut(sets.repeat(times), self.net(sets).squeeze(1)[rows], seeds)


def similar_sizes(
    sizes: Int[Tensor, "sets"], slack: float = 1.25, most_pairs: int = 2**24
) -> Iterator[tuple[Int[Tensor, "some"], int]]:
    """Groups of sets whose sizes differ by at most that factor, with the largest of each group.

    A group has at most `most_pairs` pairs of items (one set at least). Empty sets are left out.
    """
    order = torch.argsort(sizes, descending=True, stable=True)
    ordered = sizes[order].tolist()
    low = 0
    while low < len(ordered) and ordered[low] > 0:
        width = ordered[low]
        limit = low + max(1, most_pairs // width**2)
        high = low
        while (
            high < min(limit, len(ordered)) and ordered[high] > 0 and ordered[high] * slack >= width
        ):
            high += 1
        yield order[low:high], width
        low = high


def padded(
    sets: SetBatch, which: Int[Tensor, "some"], width: int
) -> tuple[
    Float[Tensor, "some width features"], Float[Tensor, "some width 1"], Int[Tensor, "rows"]
]:
    """Some sets as one block with zeros behind, where there are items, and their packed rows."""
    sizes = sets.sizes[which]
    here: Bool[Tensor, "some width"] = torch.arange(width, device=sizes.device) < sizes[:, None]
    rows = ragged_arange(sets.offsets[:-1][which], sizes)
    x = sets.items.new_zeros(len(which), width, sets.num_features)
    x[here] = sets.items[rows]
    return x, here[:, :, None].to(x.dtype), rows
