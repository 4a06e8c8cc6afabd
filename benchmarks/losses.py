"""How fast and how large the losses are, beside what they replace.

    python benchmarks/losses.py [--rounds 31] [--check]

Both sides of a ratio run in turn, within one process, on the same tensors; the ratio is the
median over rounds.  Peaks of memory are tensors alive at once, as torch's profiler sees them.
Writes benchmarks/results/losses.md; with --check, exits 1 unless every bound holds.
"""

import argparse
import datetime
import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from evenplace.losses import LowVisitBias, LowVisitBiasPairs, SampledClassifier

SEED = 0
RESULTS = Path(__file__).parent / "results" / "losses.md"
Step = Callable[[], Tensor]
Steps = tuple[dict[str, Step], list[Tensor]]  # by name; the tensors that gather gradients

# What is compared with what, and the largest ratio that counts as kept.
BOUNDS = {
    "LB on cosines / cross_entropy, 256 x 27,500": ("lb", "cross-entropy", 1.05),
    "LB on pairs, own mining / theirs, 480 x 8448": ("pairs", "their-pairs", 1.0),
    "LB on pairs, their miner / theirs, 480 x 8448": ("pairs-their-miner", "their-pairs", 1.0),
    "a tenth of 110,000 places / all, 256 x 768": ("sampled", "full", 1.0),
}


def cosine_steps() -> Steps:
    """LB, and torch's cross_entropy on the same (256, 27500) logits."""
    draw = torch.Generator().manual_seed(SEED)
    cosines = (torch.rand(256, 27_500, generator=draw) * 0.4 - 0.2).requires_grad_()
    labels = torch.randint(27_500, (256,), generator=draw)
    loss = LowVisitBias(torch.randint(10, 300, (27_500,), generator=draw))
    steps: dict[str, Step] = {
        "cross-entropy": lambda: _backward(F.cross_entropy(cosines, labels), cosines),
        "lb": lambda: _backward(loss(cosines, labels), cosines),
    }
    return steps, [cosines]


def pair_steps() -> Steps:
    """LB on pairs, and pytorch-metric-learning's loss with its miner; 120 places x 4 photos."""
    draw = torch.Generator().manual_seed(SEED)
    # Of 32 true dimensions, so that places are mistaken for each other and the miner finds work.
    seen = torch.randn(120, 32, generator=draw).repeat_interleave(4, dim=0)
    seen = seen + torch.randn(480, 32, generator=draw)
    z = (seen @ torch.randn(32, 8448, generator=draw)).requires_grad_()
    labels = torch.arange(120).repeat_interleave(4)
    counts = torch.randint(4, 20, (120,), generator=draw)
    miner, theirs = MultiSimilarityMiner(0.1), MultiSimilarityLoss(alpha=1, beta=50, base=0.0)
    own, plain = LowVisitBiasPairs(counts, mining=0.1), LowVisitBiasPairs(counts)
    steps: dict[str, Step] = {
        "their-pairs": lambda: _backward(theirs(z, labels, miner(z, labels)), z),
        "pairs": lambda: _backward(own(z, labels), z),
        "pairs-their-miner": lambda: _backward(plain(z, labels, miner(z, labels)), z),
    }
    return steps, [z]


def place_steps() -> Steps:
    """A classifier of 110,000 places x 768: all of them, and a tenth at a time."""
    draw = torch.Generator().manual_seed(SEED)
    z = torch.randn(256, 768, generator=draw, requires_grad=True)
    labels = torch.randint(110_000, (256,), generator=draw)
    loss = LowVisitBias(torch.randint(10, 300, (110_000,), generator=draw))
    full = SampledClassifier(loss, 110_000, 768, generator=draw)
    tenth = SampledClassifier(loss, 110_000, 768, fraction=0.1, sparse=True, generator=draw)
    steps: dict[str, Step] = {
        "full": lambda: _backward(full(z, labels), z, full.prototypes),
        "sampled": lambda: _backward(tenth(z, labels), z, tenth.prototypes),
    }
    return steps, [z, full.prototypes, tenth.prototypes]


GROUPS: list[Callable[[], Steps]] = [cosine_steps, pair_steps, place_steps]


def _backward(loss: Tensor, *leaves: Tensor) -> Tensor:
    for leaf in leaves:
        leaf.grad = None
    torch.autograd.backward(loss)
    return loss.detach()


def seconds(step: Step) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure_ratios(steps: dict[str, Step], rounds: int) -> dict[tuple[str, str], float]:
    """Run all steps in turn, `rounds` times; give the median ratio of each two."""
    for step in steps.values():
        step()
    taken: list[dict[str, float]] = []
    for turn in range(rounds):
        names = list(steps) if turn % 2 else list(steps)[::-1]
        taken.append({name: seconds(steps[name]) for name in names})
    return {
        (a, b): statistics.median(row[a] / row[b] for row in taken) for a in steps for b in steps
    }


def measure_peak(step: Step) -> float:
    """Count the MiB of tensors alive at once in one step, above what was there before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watch:
        step()
    # The profiler's tables give sums only; its raw events give every allocation in order.
    raw: Any = watch.profiler
    changes = [event for event in raw.kineto_results.events() if event.name() == "[memory]"]
    alive = itertools.accumulate(
        event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())
    )
    return float(max(alive)) / 2**20


def report(rounds: int) -> tuple[str, bool]:
    """Measure everything; give the table and whether all bounds hold."""
    times: dict[tuple[str, str], float] = {}
    peaks: dict[str, float] = {}
    for group in GROUPS:
        steps, leaves = group()
        times |= measure_ratios(steps, min(rounds, 5) if group is place_steps else rounds)
        for name, step in steps.items():
            for leaf in leaves:
                leaf.grad = None
            peaks[name] = measure_peak(step)
    lines = [
        "| forward and backward | time | bound | peak memory | bound |",
        "|---|---|---|---|---|",
    ]
    kept = True
    for title, (ours, theirs, bound) in BOUNDS.items():
        ratio, memory = times[ours, theirs], peaks[ours] / peaks[theirs]
        kept &= ratio <= bound and memory <= 1.0
        sizes = f"{memory:.2f} ({peaks[ours]:.0f} / {peaks[theirs]:.0f} MiB)"
        lines.append(f"| {title} | {ratio:.2f} | <= {bound:.2f} | {sizes} | <= 1.00 |")
    return "\n".join(lines), kept


def write_results(table: str, rounds: int) -> None:
    head = (
        "# Losses beside what they replace\n\n"
        f"`python benchmarks/losses.py --rounds {rounds}`, {datetime.date.today()}, seed {SEED}, "
        f"torch {torch.__version__}, {torch.get_num_threads()} CPU threads.  Ratios are medians "
        "of runs in turn; below 1 ours is quicker or smaller.  Memory is what one step needs "
        "above its inputs.\n\n"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(head + table + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--check", action="store_true", help="exit 1 unless every bound holds")
    options: Any = parser.parse_args()
    table, kept = report(options.rounds)
    write_results(table, options.rounds)
    print(table)
    print("all bounds hold" if kept else "A BOUND DOES NOT HOLD")
    if options.check and not kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
