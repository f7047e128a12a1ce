"""The general set encoder, on which all splits and merges for user tasks are built.

Each layer is residual and layer-normalised and sees an item, the mean and the maximum over its set,
and, with relations, the mean over neighbours. So its cost is linear in the items and edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.relations import Relations
from diconet.core.segments import segment_sum
from diconet.core.sets import SetBatch
from diconet.nets.signals import degrees, noise_channels, one_seed_each, ranks

_MOST_RANKED = 8
"""Above this many features, ranks are left out: one sort per feature and layer adds up."""

_LARGEST = 8.0
"""Standardised inputs are clipped to this size, so that outliers do not destabilise a network."""


@dataclass(frozen=True)
class Inputs:
    """A description of a task's sets: how many features of which kind, and their usual scale.

    `ordered` sets are sequences: an item then sees its position and the items before and after it.
    """

    num_features: int
    num_context: int = 0
    edge_features: int | None = None
    directed: bool = False
    ordered: bool = False
    scale: Sequence[float] | None = None
    centre: Sequence[float] | None = None
    context_scale: Sequence[float] | None = None
    context_centre: Sequence[float] | None = None
    edge_scale: Sequence[float] | None = None

    @classmethod
    def of(
        cls,
        sets: SetBatch,
        *,
        ordered: bool = False,
        context: Float[Tensor, "rows context"] | None = None,
    ) -> Inputs:
        """The description of a sample of sets; `context` holds contexts of sets of all sizes."""
        edges = sets.relations
        usual = sets.items.double()
        spread = usual.std(0, correction=0)
        spread = torch.where(spread > 0, spread, 1)
        if float(spread.max() / spread.min()) < 3:  # the same unit: preserve shapes
            spread = spread.square().mean().sqrt().expand_as(spread)
        context = (sets.context if context is None else context).double()
        return cls(
            sets.num_features,
            sets.context.shape[1],
            None if edges is None else edges.num_features,
            edges is not None and not edges.symmetric,
            ordered,
            tuple(spread.tolist()),
            tuple(usual.mean(0).tolist()),
            _usual_spread(context),
            tuple(context.mean(0).tolist()),
            None if edges is None else _usual_size(edges.features.double()),
        )


def _usual_size(values: Float[Tensor, "rows features"]) -> tuple[float, ...]:
    """The root mean square of every feature, 1 if there are no rows."""
    size = values.square().mean(0).sqrt() if len(values) else values.new_zeros(values.shape[1])
    return tuple(torch.where(size > 0, size, 1).tolist())


def _usual_spread(values: Float[Tensor, "rows features"]) -> tuple[float, ...]:
    """The standard deviation of every feature; its size if it is the same in all rows."""
    size = values.new_tensor(_usual_size(values))
    spread = (values - values.mean(0)).square().mean(0).sqrt()
    return tuple(torch.where(spread > 1e-6 * size, spread, size).tolist())


def segment_peak(
    values: Float[Tensor, "rows features"], sizes: Int[Tensor, "sets"], owner: Int[Tensor, "rows"]
) -> Float[Tensor, "sets features"]:
    """Largest value of each segment and feature, with gradient; zero if it is empty."""
    if values.device.type in ("cpu", "cuda"):
        peak = torch.segment_reduce(values, "max", lengths=sizes, axis=0, unsafe=True)
    else:
        start = values.new_full((len(sizes), values.shape[1]), -torch.inf)
        index = owner[:, None].expand_as(values)
        peak = start.scatter_reduce(0, index, values, "amax", include_self=False)
    return torch.where((sizes > 0)[:, None], peak, 0) if bool((sizes == 0).any()) else peak


class SetEncoder(nn.Module):
    """A vector per item that depends on its set; `extra` features per item may be added.

    With `noise`, items get that many random channels, which tell similar items apart: drawn by the
    first seed of each set or, without seeds, by the items' positions. `inputs` are as in `Inputs`.
    """

    def __init__(
        self, extra: int = 0, noise: int = 0, width: int = 32, num_layers: int = 5, **inputs: Any
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}.")
        self.inputs, self.noise, self.width = Inputs(**inputs), noise, width
        self._keep_units()
        self._make_layers(extra, num_layers)

    def _keep_units(self) -> None:
        """Stores the usual scale of items and context, in double precision."""
        inputs, items, context = self.inputs, self.inputs.num_features, self.inputs.num_context
        for name, known, usual, in_file in (
            ("unit", inputs.scale, [1.0] * items, True),
            ("origin", inputs.centre, [0.0] * items, True),
            ("context_unit", inputs.context_scale, [1.0] * context, False),
            ("context_origin", inputs.context_centre, [0.0] * context, False),
        ):
            numbers = torch.tensor(list(known or usual), dtype=torch.float64)
            self.register_buffer(name, numbers, persistent=in_file)

    def _make_layers(self, extra: int, num_layers: int) -> None:
        inputs, num_features = self.inputs, self.inputs.num_features
        related = inputs.edge_features is not None
        ranked = num_features if num_features <= _MOST_RANKED else 0
        per_item = 2 * num_features + ranked + self.noise * (1 + related) + extra
        per_item += 2 * related + 2 * inputs.ordered
        self.enter = nn.Linear(per_item, self.width)
        self.enter_set = nn.Linear(num_features + 2 + inputs.num_context, self.width, bias=False)
        self.layers = nn.ModuleList(_Layer(self.width, inputs) for _ in range(num_layers))
        self.norm = nn.LayerNorm(self.width)  # keeps the inputs of later layers moderate

    def forward(
        self,
        sets: SetBatch,
        seeds: Int[Tensor, "draws"] | None = None,
        extra: Float[Tensor, "items extra"] | None = None,
    ) -> Float[Tensor, "items width"]:
        if sets.relations is None and self.inputs.edge_features is not None:
            nothing = Relations.none(sets.sizes, self.inputs.edge_features)
            sets = replace(sets, relations=nothing)
        per_item, per_set = self._signals(sets, seeds)
        if extra is not None:
            per_item = torch.cat([per_item, extra], 1)
        hidden = F.relu(self.enter(per_item) + self.enter_set(per_set).index_select(0, sets.owner))
        ends = None if sets.relations is None else sets.edges()
        for layer in self.layers:
            hidden = layer(hidden, sets, ends)
        return self.norm(hidden)

    def _signals(
        self, sets: SetBatch, seeds: Int[Tensor, "draws"] | None
    ) -> tuple[Float[Tensor, "items per_item"], Float[Tensor, "sets per_set"]]:
        """The inputs: items in the task's scale and in the node's own, and features of the node."""
        dtype = self.enter.weight.dtype
        usual = ((sets.items - self.get_buffer("origin")) / self.get_buffer("unit")).to(
            sets.items.dtype
        )
        mean = sets.mean(usual)
        centred = usual - mean[sets.owner]
        spread = sets.mean(centred.square().mean(1, keepdim=True)).sqrt()
        local = centred / torch.where(spread > 1e-9, spread, 1)[sets.owner]
        parts = [usual, local]
        if sets.num_features <= _MOST_RANKED:
            parts.append(ranks(sets))
        if self.inputs.edge_features is not None:
            parts.append(degrees(sets))
        if self.inputs.ordered:
            place = (sets.position + 0.5) / sets.sizes[sets.owner] - 0.5
            parts.append(torch.stack([place, torch.cos(torch.pi * place)], 1))
        if self.noise:
            parts.append(noise_channels(sets, one_seed_each(sets, seeds), self.noise))
        size = sets.sizes.clamp(min=1).to(mean.dtype).log()[:, None] / 4
        depth = spread.clamp(min=1e-6).log() / 4
        context = sets.context - self.get_buffer("context_origin")
        context = (context / self.get_buffer("context_unit")).to(mean.dtype)
        per_set = torch.cat([mean, depth, size, context], 1)
        clamped = [part.to(dtype).clamp(-_LARGEST, _LARGEST) for part in parts]
        return torch.cat(clamped, 1), per_set.to(dtype).clamp(-_LARGEST, _LARGEST)


class _Layer(nn.Module):
    """h + ReLU(LayerNorm(W [own, set mean, set maximum, neighbours' mean]))."""

    def __init__(self, width: int, inputs: Inputs) -> None:
        super().__init__()
        edges = inputs.edge_features or 0
        unit = torch.tensor(list(inputs.edge_scale or [1.0] * edges))
        self.register_buffer("edge_unit", unit, persistent=False)
        self.own = nn.Linear(width, width)
        self.shared = nn.Linear(2 * width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        ways = 0 if inputs.edge_features is None else 1 + inputs.directed
        self.near = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(ways))
        self.gate = nn.Linear(edges, width) if edges else None
        self.beside = nn.Linear(2 * width, width, bias=False) if inputs.ordered else None

    def forward(
        self,
        hidden: Float[Tensor, "items width"],
        sets: SetBatch,
        ends: tuple[Int[Tensor, "edges"], Int[Tensor, "edges"]] | None,
    ) -> Float[Tensor, "items width"]:
        pooled = torch.cat([sets.mean(hidden), segment_peak(hidden, sets.sizes, sets.owner)], 1)
        total = self.own(hidden) + self.shared(pooled).index_select(0, sets.owner)
        if self.near and ends is not None:
            total = total + self._neighbours(hidden, sets, ends)
        if self.beside is not None:
            total = total + self.beside(_beside(hidden, sets))
        return hidden + F.relu(self.norm(total))

    def _neighbours(
        self,
        hidden: Float[Tensor, "items width"],
        sets: SetBatch,
        ends: tuple[Int[Tensor, "edges"], Int[Tensor, "edges"]],
    ) -> Float[Tensor, "items width"]:
        assert sets.relations is not None
        gate = None
        if self.gate is not None:
            features = sets.relations.features.to(hidden.dtype)
            gate = torch.sigmoid(self.gate(features / self.get_buffer("edge_unit")))
        total = torch.zeros_like(hidden)
        for linear, (away, here) in zip(self.near, (ends, ends[::-1]), strict=False):
            message = linear(hidden).index_select(0, away)
            if gate is not None:
                message = message * gate
            count = torch.bincount(here, minlength=len(hidden)).clamp(min=1)
            total = total + segment_sum(message, here, len(hidden)) / count[:, None]
        return total


def _beside(hidden: Float[Tensor, "items width"], sets: SetBatch) -> Float[Tensor, "items both"]:
    """The features of the items before and after, zero at the ends of a sequence."""
    first = (sets.position == 0)[:, None]
    last = (sets.position == sets.sizes[sets.owner] - 1)[:, None]
    before = torch.where(first, 0, hidden.roll(1, 0))
    after = torch.where(last, 0, hidden.roll(-1, 0))
    return torch.cat([before, after], 1)
