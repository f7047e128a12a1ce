"""One cut of a graph of a million edges: at most 5 seconds and 2 GB, both kinds of split.

python benchmarks/relations.py
"""

from __future__ import annotations

import resource
import sys
import time

import torch

from diconet import Growth, Relations, SetBatch, grow
from diconet.nets.encoder import Inputs
from diconet.nets.general_split import GeneralSplit
from diconet.nets.one_cut import OneCutSplit

NODES, EDGES = 200_000, 1_000_000
MOST_SECONDS, MOST_BYTES = 5.0, 2 * 2**30


def graph() -> SetBatch:
    """Random points on a line, each joined to others near it: a long, thin graph."""
    rng = torch.Generator().manual_seed(0)
    source = torch.randint(NODES, (EDGES // 2,), generator=rng)
    step = torch.randint(1, 50, (EDGES // 2,), generator=rng)
    pairs = torch.stack([source, (source + step) % NODES], 1)
    points = torch.rand(NODES, 2, generator=rng)
    return SetBatch.of([points], relations=Relations.of([pairs]))


def main() -> int:
    sets = graph()
    assert sets.relations is not None
    inputs = vars(Inputs.of(sets))
    torch.manual_seed(0)
    good = True
    for name, split in (
        ("coins", GeneralSplit(noise=2, centred=True, **inputs)),
        ("one cut", OneCutSplit(**inputs)),
    ):
        with torch.inference_mode():
            clock, used = time.perf_counter(), time.process_time()
            tree = grow(split, sets, Growth(depth=1))
            seconds, used = time.perf_counter() - clock, time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        sizes = tree.levels[1].sets.sizes.tolist()
        print(
            f"{name:8} {NODES} nodes, {sets.relations.num_edges} edges: {seconds:.2f} s"
            f" ({used:.2f} s of CPU),"
            f" peak {peak / 2**30:.2f} GB, sides {sizes}"
        )
        good &= seconds < MOST_SECONDS and peak < MOST_BYTES
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
