"""The pointer merge written out with loops and dense matrices, straight from appendix D."""

from __future__ import annotations

import torch
from torch import Tensor

from diconet.merges import PointerMerge
from diconet.tree import PartitionTree


class NaiveNode:
    """One node: its two input sequences as lists of root rows, its matrix, its answer."""

    def __init__(self, merge: PointerMerge, points: Tensor, halves: list[list[int]]) -> None:
        self.merge = merge
        self.rows = halves[0] + halves[1]
        x = points[self.rows]
        self.mean = x.mean(0)
        spread = (x - self.mean).square().mean().sqrt()
        self.stretch = torch.eye(2) / (spread if spread > 0 else 1)
        if merge.normalise != "spread":
            covariance = (x - self.mean).T @ (x - self.mean) / len(x)
            size = covariance.trace() / 2
            if size > 0:
                floored = covariance / size + 1e-6 * torch.eye(2)
                self.stretch = torch.linalg.cholesky(floored).inverse() / size.sqrt()
        if merge.normalise == "facing":
            x, y = max((self.seen(p) for p in x), key=lambda p: round(1000 * float(p @ p)))
            if x.hypot(y) > 0:
                turn = torch.stack([x, y, -y, x]).reshape(2, 2) / x.hypot(y)
                self.stretch = turn @ self.stretch
        if merge.normalise == "abreast" and all(halves):
            left, right = (torch.stack([self.seen(points[r]) for r in h]).mean(0) for h in halves)
            x, y = right - left
            if x.hypot(y) > 0:
                turn = torch.stack([x, y, -y, x]).reshape(2, 2) / x.hypot(y)
                self.stretch = turn @ self.stretch
        if merge.order != "given":
            read = self._by_angle if merge.order == "angle" else self._by_outline
            halves = [read(points, half) for half in halves]
            self.rows = halves[0] + halves[1]
        encodings, last = [], []
        for half in halves:
            state = torch.zeros(1, 1, merge.encoder.hidden_size)
            for row in half:
                out, state = merge.encoder(self.seen(points[row]).reshape(1, 1, -1), state)
                encodings.append(out.reshape(-1))
            last.append(state.reshape(-1))
        self.keys = [merge.key(e) for e in encodings]
        self.start = torch.tanh(merge.start(torch.cat(last)))

    def _by_angle(self, points: Tensor, half: list[int]) -> list[int]:
        def angle(row: int) -> float:
            d = self.seen(points[row])
            turn = torch.atan2(d[1], d[0]).item()
            ahead = self.merge.normalise == "facing" and turn < -2e-3
            return turn + 2 * torch.pi if ahead else turn

        return sorted(half, key=angle)

    def _by_outline(self, points: Tensor, half: list[int]) -> list[int]:
        """Once around the half's own middle, from where the item is that the node faces."""
        if not half:
            return half
        middle = torch.stack([self.seen(points[row]) for row in half]).mean(0)
        begin = 0.0
        if self.merge.normalise == "facing":
            ahead = max(
                (self.seen(points[row]) for row in self.rows),
                key=lambda p: round(1000 * float(p @ p)),
            )
            begin = torch.atan2(*(ahead - middle).flip(0)).item()

        def angle(row: int) -> float:
            turn = torch.atan2(*(self.seen(points[row]) - middle).flip(0)).item() - begin
            return (turn + 2e-3) % (2 * torch.pi) if self.merge.normalise == "facing" else turn

        return sorted(half, key=angle)

    def seen(self, point: Tensor) -> Tensor:
        return self.stretch @ (point - self.mean)

    def probabilities(self, points: Tensor, state: Tensor, taken: list[int], step: int) -> Tensor:
        """Over the items and, last, the end symbol."""
        query = self.merge.query(state)
        scores = [
            self.merge.score(torch.tanh(k + query + self.bearing(points, row, taken)))[0]
            for k, row in zip(self.keys, self.rows, strict=True)
        ]
        end = self.merge.score(torch.tanh(self.merge.end_key + query))[0]
        if self.merge.course is not None:
            places = [self.seen(points[row]) for row in self.rows]
            visited = [self.seen(points[row]) for row in taken] or [None]
            scores = [
                s + self.gain(state, visited[-1], to) for s, to in zip(scores, places, strict=True)
            ]
            if taken:
                end = end + self.gain(state, visited[-1], visited[0])
        for i, row in enumerate(self.rows):
            if row in taken:
                scores[i] = torch.tensor(-torch.inf)
        if step == 0:
            end = torch.tensor(-torch.inf)
        return torch.stack([*scores, end]).softmax(0)

    def bearing(self, points: Tensor, row: int, taken: list[int]) -> Tensor:
        """What the direction of an item, seen from the last one, adds to the sum."""
        if self.merge.bearing is None:
            return torch.zeros(())
        way = self.seen(points[row])
        if taken:
            way = way - self.seen(points[taken[-1]])
            way = way / way.norm() if way.norm() > 0 else way
        return self.merge.bearing(6 * way)

    def gain(self, state: Tensor, here: Tensor | None, there: Tensor) -> Tensor:
        """Cosine between the course and the way from here to there, times how binding it is."""
        x, y, signal = self.merge.course.signal(state)
        log_length = 6 * torch.tanh(signal / 6)
        if here is None:
            return torch.dot(torch.stack([x, y]) / x.hypot(y), there) * log_length.exp()
        turn = torch.atan2(y, x) - torch.atan2(there[1] - here[1], there[0] - here[0])
        if torch.equal(here, there):
            return -log_length.exp()
        return torch.cos(turn) * log_length.exp()

    def start_of(self, points: Tensor, target: list[int]) -> int:
        """The item of the target that comes first in reading, from ahead, or in preference."""
        rows = self.rows
        if self.merge.normalise == "facing":
            rows = self._by_angle(points, rows)
        elif self.merge.course is not None:
            seen = self.merge.first_input.reshape(1, 1, -1)
            _, state = self.merge.decoder(seen, self.start.reshape(1, 1, -1))
            liked = self.probabilities(points, state.reshape(-1), [], 0)[:-1]
            rows = [rows[i] for i in liked.argsort(descending=True)]
        return next(row for row in rows + target if row in target)

    def run(
        self, points: Tensor, target: list[int] | None, is_root: bool
    ) -> tuple[Tensor, list[int], Tensor]:
        """The matrix (rows: steps), the sequence, and the probability of ending after it."""
        state = self.start
        seen, taken, matrix = self.merge.first_input, [], []
        for step in range(len(self.rows) + 1 if target is None else len(target) + 1):
            _, new = self.merge.decoder(seen.reshape(1, 1, -1), state.reshape(1, 1, -1))
            state = new.reshape(-1)
            p = self.probabilities(points, state, taken, step)
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
            if self.merge.course is not None:
                came = torch.zeros(2)
                if len(taken) > 1:
                    came = seen - self.seen(points[taken[-2]])
                    came = came / came.norm()
                seen = torch.cat([seen, came])
        return torch.stack(matrix), taken, p[-1]


def naive_log_prob(merge: PointerMerge, tree: PartitionTree, target: list[int]) -> Tensor:
    """log p(target | tree) of one example, all matrices of eq. mergefinaleq multiplied out."""
    points = tree.roots.items
    node_rows = [[s.tolist() for s in lv.sets.unpack(lv.sets.index)] for lv in tree.levels]

    def solve(level: int, node: int) -> tuple[Tensor, list[int], Tensor, Tensor]:
        """Matrix over the *roots'* items, answer, end probability and own matrix, of a node."""
        inner = tree.levels[level].inner.tolist()
        if node in inner:
            i = inner.index(node)
            left, right = solve(level + 1, 2 * i), solve(level + 1, 2 * i + 1)
            halves, below = [left[1], right[1]], torch.cat([left[0], right[0]])
            given = left[1] + right[1]
        else:
            halves = [node_rows[level][node], []]
            given = halves[0]
            below = torch.eye(len(points))[given]
        if not given:
            return torch.zeros(0, len(points)), [], torch.ones(()), torch.zeros(0, 0)
        one = NaiveNode(merge, points, halves)
        goal = None
        if level == 0:
            first = one.start_of(points, target)
            turn = target.index(first)
            goal = target[turn:] + target[:turn]
        matrix, answer, end = one.run(points, goal, level == 0)
        order = [one.rows.index(r) for r in given]  # columns in the order of `below`
        return matrix[:, order] @ below, answer, end, matrix

    product, goal, end, _ = solve(0, 0)
    hit = torch.stack([product[s, t] for s, t in enumerate(goal)])
    return torch.log(hit + merge.epsilon).sum() + torch.log(end)
