"""Learning from the length of tours: a reward that nothing can be differentiated through.

Noise on the scores of edges is the draw, the greedy tour on them its outcome (REINFORCE with a
Gaussian policy). A change of one edge's score changes the tour nearby, so each edge is held to
account for the length around its two cities only, not for that of the whole tour.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diconet.losses import advantage
from diconet.merges.edges import EdgeSignal
from diconet.model import DiCoNet
from diconet.noise import mix, uniform
from diconet.segments import place_within, segment_sum
from diconet.sets import SetBatch
from diconet.task import Task
from diconet.tours.decode import greedy_tour
from diconet.tours.metric import Metric
from diconet.train import Batch, TrainConfig


def tour_loss(
    model: DiCoNet, task: Task, batch: Batch, config: TrainConfig
) -> tuple[Tensor, dict[str, float]]:
    """A loss whose gradient is that of the expected length, of `tree_samples` draws a set."""
    signal: EdgeSignal = model(batch.sets).answer
    edges, score = signal.edges()
    samples = config.tree_samples
    owner = batch.sets.owner[edges[:, 0]]
    seeds = batch.seeds.reshape(len(batch.sets), samples)[owner]
    place = place_within(owner, len(batch.sets))
    noise = gaussian(mix(seeds, place[:, None].expand_as(seeds)))
    cost = torch.stack([_costs(batch.sets, signal, noise[:, s]) for s in range(samples)], 1)
    nearby = (cost + cost[signal.graph.neighbour].mean(1)) / 2
    unit = nearby.mean(1, keepdim=True).clamp(min=1e-12)
    credit = advantage((-nearby / unit).flatten(), samples).reshape(nearby.shape)
    of_edge = credit[edges[:, 0]] + credit[edges[:, 1]]
    push = (of_edge * noise).mean(1)
    # Greedy does not see what all scores of a set have in common, so nothing may push that.
    number = torch.bincount(owner, minlength=len(batch.sets)).clamp(min=1)
    common = segment_sum(push, owner, len(batch.sets)) / number
    loss = -((push - common[owner]) * score).sum() / batch.sets.num_items
    total = batch.sets.sum(cost).mean().item()
    return loss, {"loss": loss.item(), "score": -total}


def gaussian(seeds: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """One standard normal number for every seed (Box and Muller)."""
    radius = torch.sqrt(-2 * torch.log(uniform(seeds)))
    return radius * torch.cos(2 * torch.pi * uniform(mix(seeds, 1)))


def _costs(
    sets: SetBatch, signal: EdgeSignal, noise: Float[Tensor, "edges"]
) -> Float[Tensor, "items"]:
    """For every city, half of the two steps of the greedy tour that it is an end of."""
    each = []
    noises = iter(noise.split([len(scores) for _, scores in signal.candidates()]))
    for cities, (edges, scores) in zip(sets.unpack(), signal.candidates(), strict=True):
        points = cities.double().numpy()
        tour = greedy_tour(Metric.of(points), edges, scores + next(noises).numpy())
        step = np.linalg.norm(points[tour] - points[np.roll(tour, -1)], axis=1)
        cost = np.empty(len(tour))
        cost[tour] = (step + np.roll(step, 1)) / 2
        each.append(torch.from_numpy(cost).float())
    return torch.cat(each)
