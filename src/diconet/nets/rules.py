"""The merge for the best run of a sequence: a few numbers per half, combined by learned rules.

A node holds several channels, each a run of its items and its sum. A rule makes a channel of the
node from one channel of the first half (or nothing) and one of the second half (or nothing). Only
the set of rules is learned, from whole answers at the root alone: a grammar, whose derivations are
summed exactly (the inside algorithm, Baker 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import numbers
from diconet.core.model import Part
from diconet.core.segments import index_of, ragged_arange
from diconet.core.sets import SetBatch, standardise
from diconet.core.tree import Level
from diconet.nets.forms import counted

_NEVER = -1e5
"""Represents the logarithm of 0."""


@dataclass(frozen=True, eq=False)
class Runs:
    """The channels of every node: their sums, and the first and last item of their runs.

    During training there are `inside` and `reached` instead: the log of the summed weight of all
    derivations of each channel, and of those that yield exactly the target's items; the last
    channel is the empty one.
    """

    roots: SetBatch
    value: Float[Tensor, "nodes channels"] | None = None
    ends: Int[Tensor, "nodes channels 2"] | None = None
    inside: Float[Tensor, "nodes tables channels"] | None = None
    reached: Float[Tensor, "nodes tables channels"] | None = None
    log_prob: Float[Tensor, "roots"] | None = None
    work: Float[Tensor, "roots"] | None = None

    @property
    def solution(self) -> Sequences | None:
        """The run of each root's first channel; None during training."""
        if self.ends is None:
            return None
        first, last = (self.ends[:, 0] - self.roots.offsets[:-1, None]).unbind(1)
        sizes = (last - first + 1).clamp(min=0)
        return Sequences(ragged_arange(first, sizes), sizes)


class RuleMerge(Part):
    """Combines the channels of two halves by learned rules; the root's first channel is the answer.

    It is given that there are `num_channels` of them, that a leaf's item is the run of each, and
    that sums add. A table of rules is learned: for every channel, the pairs of channels (or
    nothing) of the two halves that it is the best of. Several tables (`num_tables`) are trained
    side by side, since some end in a poor grammar; `settled` keeps one. `sharpness` is the weight
    of a spread of the items.
    """

    def __init__(self, num_channels: int = 4, num_tables: int = 1, sharpness: float = 3.0) -> None:
        super().__init__()
        self.num_channels, self.sharpness = num_channels, sharpness
        some = num_channels + 1
        self.rules = nn.Parameter(torch.randn(num_tables, num_channels, some, some))

    def settled(self, table: int) -> RuleMerge:
        """The same merge with only one table."""
        one = RuleMerge(self.num_channels, 1, self.sharpness).to(self.rules.device)
        one.rules.data.copy_(self.rules.data[table : table + 1])
        return one.train(self.training)

    def allowed(self) -> list[tuple[int, int, int]]:
        """The rules used when solving: a channel, and those of both halves (last: nothing)."""
        yes = self.rules[0] > 0
        yes[:, -1, -1] = False  # a run is not made of nothing
        found: list[tuple[int, int, int]] = [tuple(rule) for rule in numbers(yes.nonzero())]
        return found

    def forward(self, level: Level, below: Runs | None, target: Sequences | None) -> Runs:
        if target is not None:
            return self._likelihood(level, below, target)
        value, ends = _at_leaves(level, self.num_channels)
        rules = self.allowed()
        if below is not None and below.value is not None and below.ends is not None:
            halves = below.value.reshape(-1, 2, self.num_channels)
            made = _best(rules, halves, below.ends.reshape(-1, 2, self.num_channels, 2))
            value[level.inner], ends[level.inner] = made
        work = (~level.is_leaf).long() * len(rules)
        return Runs(level.roots, value, ends, work=counted(level, work, below))

    def _likelihood(self, level: Level, below: Runs | None, target: Sequences) -> Runs:
        """The weights of all derivations, and of those that yield the target's items."""
        member = target.mask(level.roots)[level.sets.index]
        alone = level.sets.sizes == 1
        first = level.sets.offsets[:-1].clamp(max=max(level.sets.num_items - 1, 0))
        scale = self.sharpness / standardise(level.roots)[2][:, 0].clamp(min=1e-30)
        item = (scale[level.example] * level.sets.items[first, 0]).to(self.rules.dtype)
        chosen = member[first]
        shape = (len(level.sets), len(self.rules), self.num_channels)
        run = torch.where(alone, item, _NEVER)[:, None, None].expand(shape)
        nothing = run.new_zeros(*shape[:2], 1)
        inside = torch.cat([run, nothing], 2)
        apart = chosen[:, None, None]
        reached = torch.cat(
            [run.masked_fill(~apart, _NEVER), nothing.masked_fill(apart, _NEVER)], 2
        )
        if below is not None and below.inside is not None and below.reached is not None:
            inside = inside.index_copy(0, level.inner, self._joined(below.inside))
            reached = reached.index_copy(0, level.inner, self._joined(below.reached))
        log_prob = None
        if level.number == 0:
            log_prob = (reached - inside)[:, :, 0].sum(1)
        return Runs(level.roots, inside=inside, reached=reached, log_prob=log_prob)

    def _joined(
        self, halves: Float[Tensor, "nodes tables channels"]
    ) -> Float[Tensor, "inner tables channels"]:
        """The log-weights of nodes from those of their halves."""
        pairs = halves.reshape(-1, 2, *halves.shape[1:])
        weight = F.logsigmoid(self.rules)
        both = pairs[:, 0, :, :, None] + pairs[:, 1, :, None, :]
        ways = (both[:, :, None] + weight).flatten(3)[..., :-1]  # except nothing and nothing
        return torch.cat([torch.logsumexp(ways, 3), both[:, :, -1:, -1]], 2)


def _at_leaves(level: Level, channels: int) -> tuple[Tensor, Tensor]:
    """The item of every leaf in all channels; a leaf of several items has none."""
    sets = level.sets
    first = sets.offsets[:-1].clamp(max=max(sets.num_items - 1, 0))
    alone: Bool[Tensor, "nodes"] = sets.sizes == 1
    value = torch.where(alone, sets.items[first, 0].double(), -torch.inf)
    ends = torch.where(alone, sets.index[first], level.roots.offsets[:-1][level.example])
    return value[:, None].repeat(1, channels), ends[:, None, None].repeat(1, channels, 2)


def _best(
    rules: list[tuple[int, int, int]],
    halves: Float[Tensor, "inner 2 channels"],
    ends: Int[Tensor, "inner 2 channels 2"],
) -> tuple[Float[Tensor, "inner channels"], Int[Tensor, "inner channels 2"]]:
    """The best rule of every channel; a run goes from the start of its first part to its end."""
    value = torch.full_like(halves[:, 0], -torch.inf)
    found = ends[:, 0].clone()
    channels = halves.shape[2]
    for channel, left, right in rules:
        parts = [(side, one) for side, one in enumerate((left, right)) if one < channels]
        total = torch.stack([halves[:, side, one] for side, one in parts]).sum(0)
        better = index_of(total > value[:, channel])
        value[better, channel] = total[better]
        (side_0, one_0), (side_1, one_1) = parts[0], parts[-1]
        found[better, channel, 0] = ends[better, side_0, one_0, 0]
        found[better, channel, 1] = ends[better, side_1, one_1, 1]
    return value, found
