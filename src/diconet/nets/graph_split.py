"""One coin flip per item, with odds from a graph network over the items of each set (eq. fr3).

Also the paper's baseline: the same network with k labels at once.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.coin import coin_cut
from diconet.core.model import Part
from diconet.core.noise import gumbel, mix
from diconet.core.sets import SetBatch
from diconet.core.tree import Cut
from diconet.nets.padding import padded_rows, similar_sizes

_OF_OTHERS = 4
"""Operators other than the identity."""


class GraphLayer(nn.Module):
    """Mixes each item's features with those of the others through five operators.

    Identity, the kernel, its degrees, the mean, and a similarity that the layer learns:
    A(h, h') = f(h) . f(h') with f one linear map and a ReLU, which is symmetric as the paper
    requires. Since it is an inner product, the sum over the items is taken first, and its cost is
    linear, not quadratic, in the number of items. Half of the new features pass a nonlinearity,
    half stay linear; all are standardised within their set.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.similarity = nn.Linear(inputs, width)
        self.own = nn.Linear(inputs, width)  # identity
        self.others = nn.Linear(inputs, _OF_OTHERS * width, bias=False)

    def forward(
        self,
        h: Float[Tensor, "sets size inputs"],
        kernel: Float[Tensor, "sets size size"],
        degree: Float[Tensor, "sets size 1"],
        share: Float[Tensor, "sets size 1"],
    ) -> Float[Tensor, "sets size width"]:
        """The next features. `share` is one over the size of the set, and 0 at padding.

        `kernel` and `degree` are also divided by the size of the set.
        """
        around = h * share
        alike = F.relu(self.similarity(h))
        by_kernel, by_degree, by_mean, by_similar = self.others.weight.t().chunk(_OF_OTHERS, 1)
        # Mix features before summing them, so that no wider tensor is stored.
        mixed = self.own(h) + torch.baddbmm(degree * (h @ by_degree), kernel, h @ by_kernel)
        mixed = mixed + around.sum(1, keepdim=True) @ by_mean
        summed = alike.transpose(1, 2) @ around @ by_similar / alike.shape[2]
        mixed = torch.baddbmm(mixed, alike, summed)
        bent, straight = mixed.chunk(2, 2)
        out = torch.cat([F.relu(bent), straight], 2)
        centred = out - (out * share).sum(1, keepdim=True)
        variance = (centred.square() * share).sum(1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5)


class GraphNet(nn.Module):
    """Layers over the complete graph of each set, with weights exp(-|x - x'|^2 / sigma^2).

    Distances are scaled so that the largest of a set is sqrt(2). The work is dense within a set
    and batched over sets of similar size, so it is never quadratic in the number of all items.
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
        # Groups that fit the cache are faster than one large block.
        for which in similar_sizes(sets.sizes, slack=1.15, most_pairs=2**19):
            packed, there = padded_rows(sets, which)
            here = there[:, :, None].to(sets.items.dtype)
            parts.append(self._dense(sets.items[packed] * here, here)[there])
            rows.append(packed[there])
        out = torch.cat(parts)
        order = torch.cat(rows)
        return torch.zeros_like(out).index_copy(0, order, out)

    def _dense(
        self, x: Float[Tensor, "sets size features"], here: Float[Tensor, "sets size 1"]
    ) -> Float[Tensor, "sets size outputs"]:
        share = here / here.sum(1, keepdim=True)
        x = (x - (x * share).sum(1, keepdim=True)) * here
        # The items may be in double precision, which matters only until they are centred.
        dtype = self.head.weight.dtype
        x, here, share = x.to(dtype), here.to(dtype), share.to(dtype)
        gram = x @ x.transpose(1, 2)
        norm = gram.diagonal(dim1=1, dim2=2)
        both = here @ here.transpose(1, 2)
        square = (norm[:, :, None] + norm[:, None] - 2 * gram).clamp(min=0) * both
        largest = square.amax((1, 2), keepdim=True).clamp(min=1e-20)
        scale = torch.sqrt(2 / largest)
        kernel = torch.exp(-square * scale.square() / self.sigma**2) * both
        kernel = kernel * share.amax(1, keepdim=True)
        degree = kernel.sum(2, keepdim=True)
        h = x * scale
        for layer in self.layers:
            h = layer(h, kernel, degree, share)
        return self.head(h)


class GraphSplit(Part):
    """One coin flip per item, with odds from a graph network; 20 layers of 32 in the paper."""

    many = True

    def __init__(
        self, num_features: int, width: int = 32, num_layers: int = 20, sigma: float = 0.5
    ) -> None:
        super().__init__()
        self.net = GraphNet(num_features, 1, width, num_layers, sigma)

    def forward(self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None) -> Cut:
        return coin_cut(sets, self.net(sets).squeeze(1), seeds)


class SoftmaxLabels(Part):
    """The paper's "Baseline": one graph network, no recursion, a softmax over k labels per point.

    A set with context k uses the first k of `num_labels` labels.
    """

    def __init__(
        self,
        num_features: int,
        num_labels: int,
        width: int = 32,
        num_layers: int = 20,
        sigma: float = 0.5,
    ) -> None:
        super().__init__()
        if num_labels < 2:
            raise ValueError(f"num_labels must be at least 2; got {num_labels}.")
        self.num_labels = num_labels
        self.net = GraphNet(num_features, num_labels, width, num_layers, sigma)

    def forward(
        self, sets: SetBatch, seeds: Int[Tensor, "samples"] | None = None
    ) -> tuple[Int[Tensor, "items"], Float[Tensor, "samples"] | None]:
        """A label per item, the likeliest without seeds; with them, their log-probability per set.

        With several seeds per set, the labels are those of `sets.repeat(times)`.
        """
        scores = self.net(sets)
        numbers = torch.arange(self.num_labels, device=scores.device)
        if sets.context.shape[1]:
            barred = numbers >= sets.context[:, :1]
            scores = scores.masked_fill(barred[sets.owner], -1e30)
        log_prob = torch.log_softmax(scores, 1)
        if seeds is None:
            return log_prob.argmax(1), None
        times = len(seeds) // len(sets)
        copies, spread = sets.repeat(times), sets.repeated(log_prob, times)
        noise = numbers + self.num_labels * copies.position[:, None]
        draw = gumbel(mix(seeds[copies.owner][:, None].expand_as(noise), noise))
        labels = (spread.detach() + draw).argmax(1)
        return labels, copies.sum(spread.gather(1, labels[:, None]).squeeze(1))
