"""The merge for paths: one item after the other, each chosen given the previous one."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from diconet.core.answers import Sequences
from diconet.core.host import count
from diconet.core.model import Part
from diconet.core.noise import gumbels, mix
from diconet.core.segments import offsets_of
from diconet.core.tree import Level
from diconet.nets.encoder import SetEncoder
from diconet.nets.handed import HAND_FEATURES, Chosen, Handed, Look
from diconet.nets.pick import Ask, PairJudge

_RANK = 8
"""Numbers by which the first item of a path and a candidate for the next are compared."""


class PathMerge(Part):
    """Points to the next item of a path, step by step: at a leaf to any remaining item, above to
    either end of what remains of either half.

    A step is scored by the item it leads to, the previous one, the pair of the two, and the first
    item. So a leaf of n items costs n^2 and a merge of n items n.
    """

    def __init__(self, **encoder: Any) -> None:
        super().__init__()
        self.encoder = SetEncoder(extra=HAND_FEATURES, **encoder)
        width = self.encoder.width
        self.judge = PairJudge(self.encoder)
        self.opening = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.ends = nn.Linear(width, 2 * _RANK, bias=False)

    def forward(self, level: Level, below: Chosen | None, target: Sequences | None) -> Chosen:
        handed = Handed.of(level, below)
        node = handed.sets
        wanted = None if target is None else handed.in_order_of(target, level)
        look = handed.looked_at(level, self.encoder)
        ask = self.judge(node, look, whole=len(level.inner) == 0)
        order, log_prob = self._walk(handed, look, wanted, ask)
        answer = node.select(order, node.sizes)
        return Chosen.by_steps(level, below, answer, log_prob, target)

    def _walk(
        self, handed: Handed, look: Look, wanted: Int[Tensor, "items"] | None, ask: Ask
    ) -> tuple[Int[Tensor, "items"], Float[Tensor, "nodes"]]:
        """The rows of every node in visiting order, and the log-probability of that order."""
        node = handed.sets
        vectors = look.per_copy()
        opening = self.opening(vectors).squeeze(1)
        first, closing = self.ends(vectors).chunk(2, 1)
        state = _Front(handed)
        order = torch.empty_like(node.index)
        log_prob = opening.new_zeros(len(node))
        at = start = node.offsets[:-1].clamp(max=max(node.num_items - 1, 0))
        for step in range(count(node.sizes.max()) if len(node) else 0):
            alive = (node.sizes > step).nonzero().squeeze(1)
            rows, present = state.candidates(alive)
            if step == 0:
                logits = opening[rows]
            else:
                back = torch.einsum("ir,ijr->ij", first[start[alive]], closing[rows])
                logits = ask(alive, at[alive], rows) + back
            chances = F.log_softmax(logits.masked_fill(~present, -torch.inf), 1)
            pick = self._pick(handed, chances, alive, step, rows, wanted)
            log_prob = log_prob.index_add(0, alive, chances.gather(1, pick[:, None]).squeeze(1))
            gone = rows.gather(1, pick[:, None]).squeeze(1)
            order[node.offsets[:-1][alive] + step] = gone
            at = at.index_copy(0, alive, gone)
            start = at if step == 0 else start
            state.remove(alive, pick)
        return order, log_prob

    def _pick(
        self,
        handed: Handed,
        chances: Float[Tensor, "alive slots"],
        alive: Int[Tensor, "alive"],
        step: int,
        rows: Int[Tensor, "alive slots"],
        wanted: Int[Tensor, "items"] | None,
    ) -> Int[Tensor, "alive"]:
        if wanted is not None:
            goal = wanted[handed.sets.offsets[:-1][alive] + step]
            return ((rows == goal[:, None]) & torch.isfinite(chances)).long().argmax(1)
        if handed.seeds is None:
            return chances.argmax(1)
        noise = gumbels(mix(handed.seeds[alive], step), chances.shape[1])
        return (chances.detach() + noise).argmax(1)


class _Front:
    """The next candidates of the paths: any item left in a leaf, or the ends of both halves."""

    def __init__(self, handed: Handed) -> None:
        node = handed.sets
        half = 2 * node.owner + handed.half
        sizes = torch.bincount(half, minlength=2 * len(node)).reshape(-1, 2)
        start = offsets_of(sizes.flatten())[:-1].reshape(-1, 2)
        self.low, self.high = start.clone(), start + sizes - 1
        self.leaf = torch.zeros(len(node), dtype=torch.bool, device=half.device)
        self.leaf[node.owner[handed.is_leaf > 0]] = True
        most = int(node.sizes[self.leaf].max()) if bool(self.leaf.any()) else 0
        self.slots = max(most, 4)
        places = torch.arange(self.slots, device=half.device)
        self.rows = (start[:, :1] + places).clamp(max=max(node.num_items - 1, 0))
        self.left = self.leaf[:, None] & (places < node.sizes[:, None])

    def candidates(
        self, nodes: Int[Tensor, "alive"]
    ) -> tuple[Int[Tensor, "alive slots"], Bool[Tensor, "alive slots"]]:
        """Candidate rows for each node's path, and which slots hold one."""
        low, high = self.low[nodes], self.high[nodes]
        # the only item left in a half is one candidate, not two
        valid = F.pad(torch.cat([low <= high, low < high], 1), (0, self.slots - 4))
        ends = F.pad(torch.cat([low, high], 1), (0, self.slots - 4)) * valid
        leaf = self.leaf[nodes][:, None]
        return torch.where(leaf, self.rows[nodes], ends), torch.where(leaf, self.left[nodes], valid)

    def remove(self, nodes: Int[Tensor, "alive"], pick: Int[Tensor, "alive"]) -> None:
        """Removes the item that each node's path went to."""
        leaf = self.leaf[nodes]
        self.left[nodes[leaf], pick[leaf]] = False
        inner = nodes[~leaf]
        slot = pick[~leaf]
        side = slot % 2
        self.low[inner, side] += (slot < 2).long()
        self.high[inner, side] -= (slot >= 2).long()
