"""Feature maps → one vector a photo; one aggregator a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evenplace.networks.aggregators import boq, mixvpr, salad
from evenplace.networks.aggregators.base import Aggregator
from evenplace.networks.aggregators.boq import BoQ
from evenplace.networks.aggregators.cricavpr import CricaVPR
from evenplace.networks.aggregators.gem import GeM, Mean
from evenplace.networks.aggregators.image import ImAge
from evenplace.networks.aggregators.mixvpr import MixVPR
from evenplace.networks.aggregators.salad import SALAD
from evenplace.networks.aggregators.vlad import VLAD, NetVLAD
from evenplace.networks.registry import Registry

__all__ = [
    "AGGREGATORS",
    "SALAD",
    "VLAD",
    "Aggregator",
    "AggregatorEntry",
    "BoQ",
    "CricaVPR",
    "GeM",
    "ImAge",
    "Mean",
    "MixVPR",
    "NetVLAD",
    "Request",
]


@dataclass(frozen=True)
class Request:
    """What an aggregator is built for.

    dim is a wish: an aggregator that comes in several lengths picks that one, and whatever it
    gives, a linear layer brings to `dim` if need be.  cells: how many the feature map has at the
    network's input size.
    """

    channels: int
    dim: int
    cells: int
    power: float = 3.0


@dataclass(frozen=True)
class AggregatorEntry:
    """How to build an aggregator.  projected: a linear layer always follows it."""

    build: Callable[[Request], Aggregator]
    projected: bool = False


def _sized(variants: Mapping[int, tuple[int, ...]], dim: int) -> tuple[int, ...]:
    """The settings that make a vector of `dim` numbers; the first ones if none do."""
    return variants.get(dim, next(iter(variants.values())))


AGGREGATORS: Registry[AggregatorEntry] = Registry(
    "aggregator",
    "evenplace.aggregators",
    {
        "gem": AggregatorEntry(lambda r: GeM(r.channels, r.power), projected=True),
        "cosplace": AggregatorEntry(lambda r: GeM(r.channels, r.power, "before"), projected=True),
        "mean": AggregatorEntry(lambda r: Mean(r.channels), projected=True),
        "netvlad": AggregatorEntry(lambda r: NetVLAD(r.channels)),
        "vlad": AggregatorEntry(lambda r: VLAD(r.channels)),
        "mixvpr": AggregatorEntry(
            lambda r: MixVPR(r.channels, r.cells, *_sized(mixvpr.VARIANTS, r.dim))
        ),
        "salad": AggregatorEntry(lambda r: SALAD(r.channels, *_sized(salad.VARIANTS, r.dim))),
        "megaloc": AggregatorEntry(lambda r: SALAD(r.channels, width=256), projected=True),
        "boq": AggregatorEntry(lambda r: BoQ(r.channels, *_sized(boq.VARIANTS, r.dim))),
        "cricavpr": AggregatorEntry(lambda r: CricaVPR(r.channels)),
        "image": AggregatorEntry(lambda r: ImAge(r.channels)),
        "image-blocks": AggregatorEntry(lambda r: ImAge(r.channels, depth=2)),
    },
)
