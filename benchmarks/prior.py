"""What the prior of low-visit bias amounts to: the figures of docs/method.md.

    python benchmarks/prior.py [--check]

Sizes are those of the paper's data: SF-XL (110,000 places, 300:1, four groups) and GSV-Cities
(62,000 places of 4 to 20 photos), with counts drawn, not read.  Signs and samplers are tried on
a toy: 30 places of 300 to 1 photos in 8 dimensions that overlap, a linear classifier, balanced
questions, the mean of 5 seeds.  Writes benchmarks/results/prior.md; with --check, exits 1
unless what the text claims holds.
"""

import argparse
import datetime
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from evenplace.losses import (
    LowVisitBiasPairs,
    class_weights,
    cross_entropy,
    logit_offsets,
    multi_similarity,
)

SEEDS = range(5)
RESULTS = Path(__file__).parent / "results" / "prior.md"


@dataclass(frozen=True)
class Figures:
    """Lines to print, and claims of the text with whether they hold."""

    lines: list[str]
    claims: dict[str, bool]


def long_tail(places: int, most: int, least: int) -> Tensor:
    """Photos per place, falling as a power from `most` to `least`."""
    rank = torch.linspace(0, 1, places, dtype=torch.float64)
    return (most * (least / most) ** rank).round()


def sizes() -> Figures:
    """How large weights and offsets are."""
    lines = [
        "| places | photos | beta, kappa | w rarest/commonest | nu rarest-commonest | nu mean |",
        "|---|---|---|---|---|---|",
    ]
    ratios = {}
    for places, most, least in ((110_000, 3000, 10), (62_000, 20, 4)):
        counts = long_tail(places, most, least)
        for beta, kappa in ((0.01, 0.05), (0.01, 0.01), (0.25, 0.5)):
            w, nu = class_weights(counts, beta), logit_offsets(counts, kappa)
            ratio, spread = float(w.max() / w.min()), float(nu.max() - nu.min())
            ratios[most, beta] = ratio
            lines.append(
                f"| {places:,} | {least} to {most} | {beta}, {kappa} | {ratio:.3f} "
                f"| {spread:.3f} | {float(nu.mean()):.3f} |"
            )
    counts = long_tail(110_000, 3000, 10)
    positive = bool((logit_offsets(counts) > 0).all())
    return Figures(
        lines,
        {
            "nu is positive for every place": positive,
            "beta 0.01 at 300:1 is a ratio of 1.06": round(ratios[3000, 0.01], 2) == 1.06,
        },
    )


def groups() -> Figures:
    """What a global prior changes in a softmax over one of four groups."""
    counts = long_tail(110_000, 3000, 10)
    group = counts[torch.randperm(110_000, generator=torch.Generator().manual_seed(0))[:27_500]]
    apart = logit_offsets(group, 0.05, all_counts=counts) - logit_offsets(group, 0.05)
    times = class_weights(group, 0.01, all_counts=counts) / class_weights(group, 0.01)
    lines = [
        f"- nu, global minus group: {float(apart.mean()):.4f} for every place, "
        f"{float(apart.max() - apart.min()):.1e} apart",
        f"- w, global over group: {float(times.mean()):.5f} for every place, "
        f"{float(times.max() - times.min()):.1e} apart",
    ]
    return Figures(
        lines,
        {
            "a global prior is a constant in nu": float(apart.max() - apart.min()) < 1e-3,
            "a global prior is a factor in w": float(times.max() - times.min()) < 1e-6,
        },
    )


def toy(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Photos with labels to learn from, questions with labels to ask, photos per place."""
    draw = torch.Generator().manual_seed(seed)
    counts = long_tail(30, 300, 1).long()
    centres = torch.randn(30, 8, generator=draw)
    labels = torch.arange(30).repeat_interleave(counts)
    photos = centres[labels] + torch.randn(len(labels), 8, generator=draw)
    asked = torch.arange(30).repeat_interleave(200)
    questions = centres[asked] + torch.randn(len(asked), 8, generator=draw)
    return photos, labels, questions, asked, counts


def recall_by_tier(seed: int, kappa: float, sign: float, per_place: bool) -> tuple[float, float]:
    """Train the toy's classifier, ask without nu: recall of the common and the rare third."""
    photos, labels, questions, asked, counts = toy(seed)
    bent = torch.zeros(8, 30, requires_grad=True)
    bias = torch.zeros(30, requires_grad=True)
    weights = len(labels) / (30 * counts.double()) if per_place else None  # as if drawn by place
    offsets = sign * logit_offsets(counts, kappa)
    optimiser = torch.optim.LBFGS([bent, bias], max_iter=200, line_search_fn="strong_wolfe")

    def step() -> float:
        optimiser.zero_grad()
        logits = photos @ bent + bias
        loss = cross_entropy(logits, labels, scale=1.0, weights=weights, offsets=offsets)
        torch.autograd.backward(loss + 1e-3 * bent.square().sum())
        return float(loss.detach())

    optimiser.step(step)  # type: ignore[no-untyped-call]
    right = ((questions @ bent + bias).argmax(dim=1) == asked).float()
    return float(right[asked < 10].mean()), float(right[asked >= 20].mean())


def signs_and_samplers() -> Figures:
    """Eq. 6's sign, the other one, and both samplers."""
    cases = {
        "plain": (0.0, 1.0),
        "kappa 0.05, Eq. 6 (z - nu)": (0.05, 1.0),
        "kappa 1, Eq. 6 (z - nu)": (1.0, 1.0),
        "kappa 1, the other sign (z + nu)": (1.0, -1.0),
    }
    lines = [
        "| trained with | photos drawn alike: common third | rare third "
        "| places drawn alike: common third | rare third |",
        "|---|---|---|---|---|",
    ]
    found: dict[str, list[float]] = {}
    for name, (kappa, sign) in cases.items():
        found[name] = [
            100 * sum(tier) / len(SEEDS)
            for per_place in (False, True)
            for tier in zip(
                *(recall_by_tier(seed, kappa, sign, per_place) for seed in SEEDS), strict=True
            )
        ]
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in found[name]) + " |")
    plain, weak, biased, reverse = found.values()
    return Figures(
        lines,
        {
            "Eq. 6's sign lifts the rare": biased[1] > plain[1] + 10,
            "the other sign sinks them": reverse[1] < plain[1],
            "kappa 0.05 is hardly seen": abs(weak[1] - plain[1]) < 5,
            "places drawn alike need no prior": plain[3] > plain[1] + 10,
            "both together turn on the common": biased[2] < plain[2] - 10,
        },
    )


def pairs() -> Figures:
    """How much of LB on pairs is one constant, early in training and late."""
    counts = long_tail(62_000, 20, 4)
    effect = LowVisitBiasPairs(counts.float(), kappa=0.01).describe()
    lines = [
        f"gamma_n nu is {effect.constant_logit:.2f} on average and differs by at most "
        f"{effect.logit_spread:.2f} between two places.",
        "",
        "| batch of 120 x 4 | largest cosine of negatives | gradient moved by nu "
        "| by its mean alone | by nu centred |",
        "|---|---|---|---|---|",
    ]
    stages = {name: gradient_moves(counts, *how) for name, how in STAGES.items()}
    for name, (cosine, moves) in stages.items():
        columns = " | ".join(f"{move:.3f}" for move in moves)
        lines.append(f"| {name} | {cosine:.2f} | {columns} |")
    (_, early), _, (_, late) = stages.values()
    return Figures(
        lines,
        {
            "the constant outweighs the spread": effect.constant_logit > 5 * effect.logit_spread,
            "early, its mean moves no gradient": early[1] < 0.01,
            "late, its mean moves more than the rest": late[1] > late[2],
        },
    )


# True dimensions of the places, scatter of their photos.
STAGES = {
    "early: places confused": (32, 1.0),
    "midway": (512, 0.5),
    "late: places apart": (2048, 0.5),
}


def gradient_moves(counts: Tensor, dimension: int, noise: float) -> tuple[float, list[float]]:
    """How far nu, its mean, and the rest of it move the gradient of multi-similarity."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(len(counts), (120,), generator=draw).repeat_interleave(4)
    seen = torch.randn(120, dimension, generator=draw).repeat_interleave(4, dim=0)
    z = (seen + noise * torch.randn(480, dimension, generator=draw)).requires_grad_()
    unit = torch.nn.functional.normalize(z.detach())
    negative = (unit @ unit.T)[labels[:, None] != labels]
    nu = logit_offsets(counts, 0.01)
    forms = [nu, nu.mean().repeat(len(nu)), nu - nu.mean()]
    (plain,) = torch.autograd.grad(multi_similarity(z, labels), z)
    moved = [torch.autograd.grad(multi_similarity(z, labels, offsets=form), z)[0] for form in forms]
    moves = [float((gradient - plain).norm() / plain.norm()) for gradient in moved]
    return float(negative.max()), moves


SECTIONS = {
    "Sizes": sizes,
    "Groups": groups,
    "Signs and samplers": signs_and_samplers,
    "Pairs": pairs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 unless the claims hold")
    options = parser.parse_args()
    text = [
        "# What the prior amounts to",
        "",
        f"`python benchmarks/prior.py`, {datetime.date.today()}, seeds 0 to 4, "
        f"torch {torch.__version__}.",
    ]
    claims: dict[str, bool] = {}
    for title, section in SECTIONS.items():
        found = section()
        text += ["", f"## {title}", "", *found.lines]
        claims |= found.claims
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(text) + "\n")
    print("\n".join(text))
    for claim, holds in claims.items():
        print("holds:" if holds else "DOES NOT HOLD:", claim)
    if options.check and not all(claims.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
