"""The non-recursive network that the paper sets beside its own: k labels at once."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diconet.core.noise import gumbel, mix
from diconet.core.sets import SetBatch
from diconet.nets.graph_split import GraphNet


class SoftmaxLabels(nn.Module):
    """The paper's "Baseline": one graph network, no recursion, a softmax over k labels per point.

    A set whose context is k takes its labels from the first k of `num_labels`.
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
        self.config = {
            "num_features": num_features,
            "num_labels": num_labels,
            "width": width,
            "num_layers": num_layers,
            "sigma": sigma,
        }
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
        which = torch.arange(len(sets), device=scores.device).repeat_interleave(times)
        copies = sets.repeat(times)
        rows = sets.offsets[:-1][which][copies.owner] + copies.position
        spread = log_prob[rows]
        noise = numbers + self.num_labels * copies.position[:, None]
        draw = gumbel(mix(seeds[copies.owner][:, None].expand_as(noise), noise))
        labels = (spread.detach() + draw).argmax(1)
        return labels, copies.sum(spread.gather(1, labels[:, None]).squeeze(1))
