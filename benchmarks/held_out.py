"""Tasks on which nothing was tuned, learned with the defaults of `network_for` and `train`.

python benchmarks/held_out.py [NAME ...] [--steps 1000]

Each is written as in docs/add_a_task.md. The table has the mean reward of the likeliest
answer and of the best of 16 draws on 200 fresh inputs of 30 items, then that of simple rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from diconet import Relations, Sequences, SetBatch, Values, best_of, network_for, train
from diconet.core.segments import segment_sum
from diconet.learn.general import usual_config

SIZE, TESTS = 30, 200


def pack(items: Tensor, relations: Relations | None = None) -> SetBatch:
    """Sets of one size from a tensor (sets, items, features)."""
    return SetBatch.pack(
        items.flatten(0, 1), torch.full((len(items),), items.shape[1]), relations=relations
    )


def each(sets: SetBatch, rule: Callable[[Tensor], Tensor]) -> Tensor:
    """A rule applied to the items of every set."""
    return torch.cat([rule(items) for items in sets.unpack()])


def orders(sets: SetBatch, key: Callable[[Tensor], Tensor]) -> Sequences:
    """Every set sorted by a key."""
    return Sequences(each(sets, lambda items: key(items).argsort()), sets.sizes)


def shuffled(sets: SetBatch) -> Sequences:
    """Every set in a random order."""
    rng = torch.Generator().manual_seed(0)
    return orders(sets, lambda items: torch.rand(len(items), generator=rng))


def neighbours(sets: SetBatch) -> list[Tensor]:
    """A matrix per set that is True where items have an edge."""
    out = []
    for number, size in enumerate(sets.sizes.tolist()):
        graph = sets.take(torch.tensor([number])).graph
        joined = torch.zeros(size, size)
        joined[graph.source, graph.target] = 1
        out.append(joined)
    return out


class Readers:
    """A sequence of chapters for four readers: minimise the longest share."""

    num_features, num_parts, ordered = 1, 4, True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return pack(-torch.rand(num_sets, set_size, 1, generator=rng).clamp(min=1e-4).log())

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        load = segment_sum(sets.items[:, 0], 4 * sets.owner + solution.leaves, 4 * len(sets))
        return -4 * load.reshape(-1, 4).amax(1) / load.reshape(-1, 4).sum(1)

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        def by_sum(items: Tensor) -> Tensor:
            middle = items[:, 0].cumsum(0) - items[:, 0] / 2
            return (4 * middle / items.sum()).long()

        equal = 4 * sets.position // sets.sizes[sets.owner]
        return {
            "equal": SimpleNamespace(leaves=equal),
            "by sums": SimpleNamespace(leaves=each(sets, by_sum)),
        }


class TwoMachines:
    """Jobs whose time depends on which of two machines runs them: minimise the finishing time."""

    num_features, exchangeable = 2, False

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return pack(0.1 + torch.rand(num_sets, set_size, 2, generator=rng))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        first = (solution.leaves == 0).float()
        loads = sets.sum(sets.items * torch.stack([first, 1 - first], 1))
        return -loads.amax(1) / sets.sizes

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        def in_turn(items: Tensor) -> Tensor:
            load, choice = torch.zeros(2), []
            for job in items:
                choice.append(int((load + job).argmin()))
                load[choice[-1]] += job[choice[-1]]
            return torch.tensor(choice)

        return {
            "the faster one": SimpleNamespace(leaves=sets.items.argmin(1)),
            "the one done first": SimpleNamespace(leaves=each(sets, in_turn)),
        }


class Dominating:
    """The fewest nodes of a graph such that every other node has a neighbour among them."""

    num_features, answer = 2, "subset"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        points = torch.rand(num_sets, set_size, 2, generator=rng)
        near = (torch.cdist(points, points) < 0.25) & ~torch.eye(set_size, dtype=torch.bool)
        return pack(points, Relations.where(near))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        chosen = solution.mask(sets)
        source, target = sets.edges()
        seen = chosen.clone()
        seen[target[chosen[source]]] = True
        return -sets.mean(chosen.float() + 2 * (~seen).float())

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        def cover(joined: Tensor, greedy: bool) -> Tensor:
            reach, bare = joined + torch.eye(len(joined)), torch.ones(len(joined))
            chosen = torch.zeros(len(joined), dtype=torch.bool)
            while bare.any():
                best = (reach @ bare if greedy else bare).argmax()
                chosen[best] = True
                bare[reach[best] > 0] = 0
            return chosen

        graphs = neighbours(sets)
        return {
            name: Sequences.where(sets, torch.cat([cover(graph, greedy) for graph in graphs]))
            for name, greedy in (("first uncovered", False), ("greedy", True))
        }


class Tardiness:
    """Jobs with deadlines on one machine: minimise the total delay."""

    num_features, answer = 2, "order"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        length = 0.1 + torch.rand(num_sets, set_size, generator=rng)
        due = torch.rand(num_sets, set_size, generator=rng) * length.sum(1, keepdim=True)
        return pack(torch.stack([length, due], 2))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        late = []
        for jobs in sets.items[solution.rows(sets)].split(sets.sizes.tolist()):
            done = jobs[:, 0].cumsum(0)
            late.append(-(done - jobs[:, 1]).clamp(min=0).mean() / done[-1])
        return torch.stack(late)

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        return {
            "random": shuffled(sets),
            "shortest first": orders(sets, lambda items: items[:, 0]),
            "by deadline": orders(sets, lambda items: items[:, 1]),
        }


class Tournament:
    """Players ranked by who beat whom: minimise the games that contradict the ranking."""

    num_features, answer = 1, "order"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        skill = torch.randn(num_sets, set_size, 1, generator=rng)
        luck = torch.randn(num_sets, set_size, set_size, generator=rng).triu(1)
        played = (torch.rand(luck.shape, generator=rng) < 0.5).triu(1)
        beat = skill - skill.transpose(1, 2) + luck - luck.transpose(1, 2) > 0
        won = beat & (played | played.transpose(1, 2))
        return pack(torch.ones_like(skill), Relations.where(won))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        rank = torch.empty(sets.num_items)
        rank[solution.rows(sets)] = sets.position.float()
        winner, loser = sets.edges()
        right = (rank[winner] < rank[loser]).float()
        return segment_sum(right, sets.graph.owner, len(sets)) / sets.graph.sizes.clamp(min=1)

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        lost = [(won.sum(0) - won.sum(1)).argsort() for won in neighbours(sets)]
        return {"random": shuffled(sets), "by wins": Sequences(torch.cat(lost), sets.sizes)}


class Dominoes:
    """A chain of tiles with a left and a right number: neighbours should match."""

    num_features, answer = 2, "path"

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return pack(torch.rand(num_sets, set_size, 2, generator=rng))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        tiles = sets.items[solution.rows(sets)].split(sets.sizes.tolist())
        return torch.stack([-(tile[1:, 0] - tile[:-1, 1]).abs().mean() for tile in tiles])

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        def nearest(items: Tensor) -> Tensor:
            gap = (items[None, :, 0] - items[:, None, 1]).abs()
            path = [0]
            while len(path) < len(items):
                gap[:, path[-1]] = torch.inf
                path.append(int(gap[path[-1]].argmin()))
            return torch.tensor(path)

        found = Sequences(each(sets, nearest), sets.sizes)
        return {"random": shuffled(sets), "nearest": found}


class Inversions:
    """The number of pairs of a sequence that are in the wrong order."""

    num_features, answer, ordered = 1, "number", True

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return pack(torch.rand(num_sets, set_size, 1, generator=rng))

    def oracle(self, sets: SetBatch) -> Values:
        counts = [(items > items.T).triu(1).sum() for items in sets.unpack()]
        return Values(torch.stack(counts).float())

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        pairs = sets.sizes * (sets.sizes - 1) / 2
        return -(solution.values - self.oracle(sets).values).abs() / pairs

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        return {"the mean": Values(self.oracle(sets).values.mean().expand(len(sets)))}


class Majority:
    """Which of four kinds is the most frequent in a set."""

    num_features, answer, num_labels = 1, "label", 4

    def sample(self, num_sets: int, set_size: int, *, rng: torch.Generator) -> SetBatch:
        return pack(torch.randint(4, (num_sets, set_size, 1), generator=rng).float())

    def oracle(self, sets: SetBatch) -> Values:
        counts = [torch.bincount(items[:, 0].long(), minlength=4) for items in sets.unpack()]
        return Values(torch.stack(counts).argmax(1))

    def reward(self, sets: SetBatch, solution: Any) -> Tensor:
        return (solution.values == self.oracle(sets).values).float()

    def rules(self, sets: SetBatch) -> dict[str, Any]:
        first = [items[:9, 0].long().mode().values for items in sets.unpack()]
        often = self.oracle(sets).values.mode().values
        return {
            "always one": Values(often.expand(len(sets))),
            "of nine": Values(torch.stack(first)),
        }


TASKS = [Readers, TwoMachines, Dominating, Tardiness, Tournament, Dominoes, Inversions, Majority]


def measure(task: Any, steps: int) -> str:
    """One line of the table."""
    torch.manual_seed(0)
    model = network_for(task)
    clock = time.process_time()
    train(model, task, replace(usual_config(model, task), steps=steps), quiet=True)
    seconds = time.process_time() - clock
    sets = task.sample(TESTS, SIZE, rng=torch.Generator().manual_seed(77))
    with torch.no_grad():
        learned = task.reward(sets, model(sets).solution).mean()
    best = task.reward(sets, best_of(model, task, sets, 16).solution).mean()
    rules = "  ".join(
        f"{name} {task.reward(sets, found).mean():.4f}" for name, found in task.rules(sets).items()
    )
    return f"{type(task).__name__:12} {learned:9.4f} {best:9.4f} {seconds:6.0f} s  {rules}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these tasks")
    parser.add_argument("--steps", type=int, default=1_000)
    given = parser.parse_args()
    print(f"{'task':12} {'learned':>9} {'best of 16':>10} {'CPU':>6}    simple rules", flush=True)
    for kind in TASKS:
        if not given.names or kind.__name__ in given.names:
            print(measure(kind(), given.steps), flush=True)


if __name__ == "__main__":
    main()
