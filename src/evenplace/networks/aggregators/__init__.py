"""Feature maps → one vector a photo; one aggregator a file."""

from collections.abc import Callable
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


def _mixvpr(request: Request) -> Aggregator:
    width, rows = mixvpr.VARIANTS.get(request.dim, mixvpr.VARIANTS[4096])
    return MixVPR(request.channels, request.cells, width=width, rows=rows)


def _salad(request: Request) -> Aggregator:
    clusters, width, token = salad.VARIANTS.get(request.dim, salad.VARIANTS[8448])
    return SALAD(request.channels, clusters, width, token)


def _boq(request: Request) -> Aggregator:
    width, rows = boq.VARIANTS.get(request.dim, boq.VARIANTS[12288])
    return BoQ(request.channels, width=width, rows=rows)


AGGREGATORS: Registry[AggregatorEntry] = Registry(
    "aggregator",
    "evenplace.aggregators",
    {
        "gem": AggregatorEntry(lambda r: GeM(r.channels, r.power), projected=True),
        "cosplace": AggregatorEntry(lambda r: GeM(r.channels, r.power, "before"), projected=True),
        "mean": AggregatorEntry(lambda r: Mean(r.channels), projected=True),
        "netvlad": AggregatorEntry(lambda r: NetVLAD(r.channels)),
        "vlad": AggregatorEntry(lambda r: VLAD(r.channels)),
        "mixvpr": AggregatorEntry(_mixvpr),
        "salad": AggregatorEntry(_salad),
        "megaloc": AggregatorEntry(lambda r: SALAD(r.channels, width=256), projected=True),
        "boq": AggregatorEntry(_boq),
        "cricavpr": AggregatorEntry(lambda r: CricaVPR(r.channels)),
        "image": AggregatorEntry(lambda r: ImAge(r.channels)),
        "image-blocks": AggregatorEntry(lambda r: ImAge(r.channels, depth=2)),
    },
)
