"""Learning from a reward alone: speed, growth and quality of k-means and knapsack.

Each part is a separate script, `rewards_kmeans.py` and `rewards_knapsack.py`.
"""

from __future__ import annotations

import argparse
import json

import rewards_kmeans
import rewards_knapsack
import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print only records")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parts = {"kmeans": rewards_kmeans, "knapsack": rewards_knapsack}
    found = {name: part.measure() for name, part in parts.items()}
    if options.json:
        flat = [{"task": name, **record} for name, some in found.items() for record in some]
        print(json.dumps(flat))
        return
    for name, some in found.items():
        parts[name].show(some)


if __name__ == "__main__":
    main()
