"""Networks small enough for tests: the shapes of the real ones, a hundredth of the numbers."""

import dataclasses

import torch
from torch import Tensor

from evenplace.networks.aggregators import (
    SALAD,
    VLAD,
    Aggregator,
    BoQ,
    CricaVPR,
    GeM,
    ImAge,
    Mean,
    MixVPR,
    NetVLAD,
)
from evenplace.networks.backbone import BackboneSpec, Features
from evenplace.networks.build_backbone import BACKBONES
from evenplace.networks.dinov2 import Transformer

CHANNELS, SIDE = 32, 12


def small_spec(name: str = "dinov2-small", depth: int = 3, **changes: object) -> BackboneSpec:
    sizes = {"channels": 64, "heads": 2, "widths": (64,) * (depth + 2), "stages": depth + 2}
    return dataclasses.replace(BACKBONES[name], **(sizes | {"cut": 2} | changes))  # type: ignore[arg-type]


def small_transformer(name: str = "dinov2-small", **changes: object) -> Transformer:
    torch.manual_seed(0)
    spec = small_spec(name, **changes)  # type: ignore[arg-type]
    return Transformer(spec.assemble(spec), spec, spec.cut).eval()


def small_aggregators() -> dict[str, Aggregator]:
    torch.manual_seed(0)
    made: dict[str, Aggregator] = {
        "gem": GeM(CHANNELS),
        "cosplace": GeM(CHANNELS, normalise="before"),
        "mean": Mean(CHANNELS),
        "netvlad": NetVLAD(CHANNELS, clusters=4),
        "vlad": VLAD(CHANNELS, clusters=4),
        "mixvpr": MixVPR(CHANNELS, SIDE**2, width=8, rows=2),
        "salad": SALAD(CHANNELS, clusters=16, width=8, token=8),
        "boq": BoQ(CHANNELS, width=16, rows=4, queries=8),
        "cricavpr": CricaVPR(CHANNELS),
        "image": ImAge(CHANNELS, tokens=3),
    }
    return {name: aggregator.eval() for name, aggregator in made.items()}


def random_features(seed: int, batch: int = 3, dtype: torch.dtype = torch.float32) -> Features:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    maps = draw(batch, CHANNELS, SIDE, SIDE)
    return Features(maps, draw(batch, 1, CHANNELS), draw(batch, 3, CHANNELS))


def pick(features: Features, rows: list[int]) -> Features:
    assert features.tokens is not None
    assert features.prompts is not None
    return Features(features.maps[rows], features.tokens[rows], features.prompts[rows])
