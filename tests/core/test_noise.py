from __future__ import annotations

import pytest
import torch

from diconet.core.noise import gumbel, mix, phase_generator, seeds_from, step_generator, uniform


def test_uniform_is_uniform_and_open() -> None:
    draws = uniform(mix(torch.zeros(100_000, dtype=torch.long), torch.arange(100_000)))
    assert 0 < draws.min() < 0.001 < 0.999 < draws.max() < 1
    counts = torch.histc(draws, bins=20, min=0, max=1)
    assert (counts - 5_000).abs().max() < 350  # five standard deviations


def test_neighbouring_seeds_are_unrelated() -> None:
    salts = torch.arange(50_000)
    a, b = uniform(mix(salts, 0)), uniform(mix(salts + 1, 0))
    assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1]) < 0.02


def test_gumbel_samples_a_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0])
    seeds = mix(torch.arange(60_000).reshape(-1, 3), 3)
    drawn = torch.bincount((logits + gumbel(seeds)).argmax(1), minlength=3) / 20_000
    assert torch.allclose(drawn, logits.softmax(0), atol=0.015)


def test_a_step_is_a_function_of_seed_and_number() -> None:
    def draw(seed: int, step: int) -> torch.Tensor:
        return seeds_from(step_generator(seed, step), 4)

    assert torch.equal(draw(1, 2), draw(1, 2))
    assert not torch.equal(draw(1, 2), draw(1, 3))
    assert not torch.equal(draw(1, 2), draw(2, 2))


@pytest.mark.parametrize("phase", ["test", "train", "watch", "validate", "choose", "ablate"])
def test_no_phase_shares_a_stream_with_a_training_step(phase: str) -> None:
    """A shared stream may be read from another place, and then no two instances are equal."""
    seeds, numbers = range(20), range(51)
    steps = {step_generator(seed, step).initial_seed() for seed in seeds for step in numbers}
    drawn = {phase_generator(phase, seed).initial_seed() for seed in seeds}
    drawn |= {phase_generator(phase, seed, n).initial_seed() for seed in seeds for n in numbers}
    assert len(steps) == 20 * 51
    assert len(drawn) == 20 * 52
    assert not steps & drawn


def test_two_phases_share_no_stream() -> None:
    test, choose = (
        {phase_generator(phase, seed, 50).initial_seed() for seed in range(20)}
        for phase in ("test", "choose")
    )
    assert not test & choose
