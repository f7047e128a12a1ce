"""The pointer merge written out with loops and dense matrices, straight from appendix D."""

from __future__ import annotations

import torch
from torch import Tensor

from diconet.core.tree import PartitionTree
from diconet.nets.pointer import PointerMerge


class NaiveNode:
    """One node: its two input sequences as lists of root rows, its matrix, its answer."""

    def __init__(self, merge: PointerMerge, points: Tensor, halves: list[list[int]]) -> None:
        self.merge = merge
        self.rows = halves[0] + halves[1]
        x = points[self.rows]
        self.mean = x.mean(0)
        spread = (x - self.mean).square().mean().sqrt()
        self.spread = spread if spread > 0 else 1
        encodings, last = [], []
        for half in halves:
            state = x.new_zeros(1, 1, merge.encoder.hidden_size)
            for row in half:
                out, state = merge.encoder(self.seen(points[row]).reshape(1, 1, -1), state)
                encodings.append(out.reshape(-1))
            last.append(state.reshape(-1))
        self.keys = [merge.decoder.key(e) for e in encodings]
        self.start = torch.tanh(merge.start(torch.cat(last)))

    def seen(self, point: Tensor) -> Tensor:
        return (point - self.mean) / self.spread

    def probabilities(self, state: Tensor, taken: list[int], step: int) -> Tensor:
        """Over the items and, last, the end symbol."""
        decoder = self.merge.decoder
        query = decoder.query(state)
        scores = [decoder.score(torch.tanh(key + query))[0] for key in self.keys]
        end = decoder.score(torch.tanh(decoder.end_key + query))[0]
        for i, row in enumerate(self.rows):
            if row in taken:
                scores[i] = torch.tensor(-torch.inf)
        if step == 0:
            end = torch.tensor(-torch.inf)
        return torch.stack([*scores, end]).softmax(0)

    def run(
        self, points: Tensor, target: list[int] | None, is_root: bool
    ) -> tuple[Tensor, list[int], Tensor]:
        """The matrix (rows: steps), the sequence, and the probability of ending after it."""
        state = self.start
        seen, taken, matrix = self.merge.decoder.first_input, [], []
        for step in range(len(self.rows) + 1 if target is None else len(target) + 1):
            _, new = self.merge.decoder.gru(seen.reshape(1, 1, -1), state.reshape(1, 1, -1))
            state = new.reshape(-1)
            p = self.probabilities(state, taken, step)
            if target is None:
                best = int(p[:-1].argmax())
                stop = p[-1] > p[best] if is_root else p[-1] >= self.merge.patience
                if len(taken) == len(self.rows) or (step and stop):
                    break
                chosen = self.rows[best]
            elif step == len(target):
                break
            else:
                chosen = target[step]
            matrix.append(p[:-1])
            taken.append(chosen)
            seen = self.seen(points[chosen])
        return torch.stack(matrix), taken, p[-1]


def naive_log_prob(merge: PointerMerge, tree: PartitionTree, target: list[int]) -> Tensor:
    """log p(target | tree) of one example, all matrices of eq. mergefinaleq multiplied out."""
    points = tree.roots.items
    node_rows = [[s.tolist() for s in lv.sets.unpack(lv.sets.index)] for lv in tree.levels]

    def solve(level: int, node: int) -> tuple[Tensor, list[int], Tensor]:
        """Matrix over the *roots'* items, answer and end probability of a node."""
        inner = tree.levels[level].inner.tolist()
        if node in inner:
            i = inner.index(node)
            left, right = solve(level + 1, 2 * i), solve(level + 1, 2 * i + 1)
            halves, below = [left[1], right[1]], torch.cat([left[0], right[0]])
        else:
            halves = [node_rows[level][node], []]
            below = torch.eye(len(points), dtype=points.dtype)[halves[0]]
        if not halves[0] + halves[1]:
            return torch.zeros(0, len(points)), [], torch.ones(())
        one = NaiveNode(merge, points, halves)
        goal = None
        if level == 0:
            first = next(row for row in one.rows + target if row in target)
            if merge.begin == "lowest":
                first = min(target, key=lambda row: float(points[row, -1]))
            turn = target.index(first)
            goal = target[turn:] + target[:turn]
        matrix, answer, end = one.run(points, goal, level == 0)
        return matrix @ below, answer, end

    product, goal, end = solve(0, 0)
    hit = torch.stack([product[s, t] for s, t in enumerate(goal)])
    return torch.log(hit + merge.epsilon).sum() + torch.log(end)
