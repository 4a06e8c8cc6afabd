"""Milliseconds a photo for every named system, on this machine.

    python -m benchmarks.methods [--write] [NAME ...]

Random weights, which take as long as trained ones; photos of noise at each method's own size,
one at a time and four at a time, the network only (no decoding).  Processor time of one thread,
which other work on the machine disturbs least; the least of several runs after one to warm up.
AnyLoc's giant needs 3.6 GB.
"""

import argparse
import os
import platform
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
    torch.set_num_threads(1)
    lines = []
    # A mixed system with two networks takes the sum of their rows.
    for name in args.names or [n for n in METHODS if METHODS[n].describer is None]:
        lines.append(line(name, args.runs))
        print(lines[-1], flush=True)
    if args.write:
        TABLE.write_text("\n".join([*head(args.runs), *lines]) + "\n")


def line(name: str, runs: int) -> str:
    network = build_model(name, weights=None).eval()
    one = elapsed_ms(network, 1, runs)
    four = elapsed_ms(network, 4, max(1, runs // 2)) / 4
    size = network.image_size
    return f"| {name} | {network.spec.backbone} | {size} | {network.dim} | {one:.0f} | {four:.0f} |"


def elapsed_ms(network: PlaceNetwork, batch: int, runs: int) -> float:
    """Milliseconds of processor time of one call, the least of several."""
    size = network.image_size
    photos = torch.randint(256, (batch, 3, size, size), dtype=torch.uint8)
    times = []
    with torch.inference_mode():
        for _ in range(runs + 1):
            began = time.process_time()
            network(photos)
            times.append(1000 * (time.process_time() - began))
    return min(times[1:])


def head(runs: int) -> list[str]:
    load = os.getloadavg()[0]
    return [
        f"Milliseconds of processor time a photo: {platform.machine()}, one thread, torch "
        f"{torch.__version__.split('+')[0]}, float32, least of {runs} runs, random weights.",
        f"Load average while it ran: {load:.1f}.",
        "Made by `python -m benchmarks.methods --write`.",
        "",
        "| method | backbone | pixels | dim | one at a time | four at a time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]


if __name__ == "__main__":
    main()
