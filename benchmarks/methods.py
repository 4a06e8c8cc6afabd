"""Milliseconds a photo for every named system, on this machine.

    python -m benchmarks.methods [--write] [--check] [NAME ...]

Random weights, which take as long as trained ones; photos of noise at each method's own size,
one at a time and four at a time, the network only (no decoding).  Processor time of one thread,
which other work on the machine disturbs least; the least of several runs after one to warm up.
AnyLoc's giant needs 3.6 GB.
"""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import torch

from evenplace.networks.build_model import build_model
from evenplace.networks.methods import METHODS
from evenplace.networks.network import PlaceNetwork

TABLE = Path(__file__).parent / "results" / "methods.md"
HEAVY = ("salad", "boq", "cricavpr", "megaloc", "image")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit 1 unless dapr-m is the quickest")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines, spent = [], {}
    # A mixed system with two networks takes the sum of their rows.
    names = args.names or [n for n in METHODS if METHODS[n].describer is None]
    for name in names:
        text, spent[name] = line(name, args.runs)
        lines.append(text)
        print(text, flush=True)
    if args.write:
        TABLE.write_text("\n".join([*head(args.runs), *lines]) + "\n")
    others = [ms for name, ms in spent.items() if METHODS[name].network.aggregator in HEAVY]
    quickest = spent.get("dapr-m", float("inf")) * 10 <= min(others, default=0)
    print(f"dapr-m takes at most a tenth of every DINOv2 aggregator's time: {quickest}")
    return 0 if quickest or not args.check else 1


def line(name: str, runs: int) -> tuple[str, float]:
    network = build_model(name, weights=None).eval()
    one = elapsed_ms(network, 1, runs)
    four = elapsed_ms(network, 4, max(1, runs // 2)) / 4
    size = " x ".join(map(str, network.image_size))
    cells = (name, network.spec.backbone, size, network.dim, f"{one:.0f}", f"{four:.0f}")
    return f"| {' | '.join(map(str, cells))} |", one


def elapsed_ms(network: PlaceNetwork, batch: int, runs: int) -> float:
    """Milliseconds of processor time of one call, the least of several."""
    photos = torch.randint(256, (batch, 3, *network.image_size), dtype=torch.uint8)
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
    sys.exit(main())
