"""Milliseconds a photo for every named system, on this machine.

    python -m benchmarks.methods [--write] [NAME ...]

Random weights, which take as long as trained ones; photos of noise at each method's own size,
one at a time and eight at a time, the network only (no decoding).  Median of several runs after
one to warm up.  AnyLoc's giant needs 3.6 GB.
"""

import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import torch

from evenplace.models.methods import METHODS, build_model
from evenplace.models.network import PlaceNetwork

TABLE = Path(__file__).parent / "results" / "methods.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    lines = []
    for name in args.names or list(METHODS):
        lines.append(line(name, args.runs))
        print(lines[-1], flush=True)
    if args.write:
        TABLE.write_text("\n".join([*head(args.runs), *lines]) + "\n")


def line(name: str, runs: int) -> str:
    network = build_model(name, weights=None).eval()
    one = elapsed_ms(network, 1, runs)
    eight = elapsed_ms(network, 8, max(1, runs // 2)) / 8
    size = network.image_size
    return (
        f"| {name} | {network.spec.backbone} | {size} | {network.dim} | {one:.0f} | {eight:.0f} |"
    )


def elapsed_ms(network: PlaceNetwork, batch: int, runs: int) -> float:
    """Median milliseconds of one call."""
    size = network.image_size
    photos = torch.randint(256, (batch, 3, size, size), dtype=torch.uint8)
    times = []
    with torch.inference_mode():
        for _ in range(runs + 1):
            began = time.perf_counter()
            network(photos)
            times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])


def head(runs: int) -> list[str]:
    load = os.getloadavg()[0]
    return [
        f"Milliseconds a photo: {platform.machine()}, {torch.get_num_threads()} threads, torch "
        f"{torch.__version__.split('+')[0]}, float32, median of {runs} runs, random weights.",
        f"Load average while it ran: {load:.1f}.",
        "Made by `python -m benchmarks.methods --write`.",
        "",
        "| method | backbone | pixels | dim | one at a time | eight at a time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]


if __name__ == "__main__":
    main()
