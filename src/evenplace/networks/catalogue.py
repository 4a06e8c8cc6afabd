"""What is known of each named system, in words and numbers, for tables and pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from evenplace.networks.methods import METHODS, count_parameters, network_spec
from evenplace.photos.pictures import Size


@dataclass(frozen=True)
class Card:
    """One system: its parts, its size, where it learnt, how well the paper says it does."""

    name: str
    kind: str
    backbone: str
    aggregator: str
    partition: str
    classifier: str
    loss: str
    rerank: str
    parameters: int
    dim: int
    image_size: Size
    data: str
    paper: str  # R@1 on SF-XL v1 / v2
    formats: str
    note: str

    def rows(self) -> list[tuple[str, str]]:
        """Every field as a line for people."""
        values = dict(vars(self), parameters=f"{self.parameters / 1e6:.1f} M")
        return [(key.replace("_", " "), str(value)) for key, value in values.items() if value]


def card(name: str) -> Card:
    """Everything about one system."""
    method, spec = METHODS.find(name), network_spec(name)
    describer = METHODS[method.describer] if method.describer else None
    scores = [f"{s.v1} / {s.v2} ({s.backbone})" for s in method.paper]
    extra = count_parameters(method.describer) if method.describer else 0
    return Card(
        name=name,
        kind=method.kind,
        backbone=spec.backbone + (f" + {describer.network.backbone}" if describer else ""),
        aggregator=spec.aggregator + (f" + {describer.network.aggregator}" if describer else ""),
        partition=str(method.partition or ""),
        classifier=str(method.classifier or ""),
        loss=str(method.loss),
        rerank=str(method.rerank or ""),
        parameters=count_parameters(name) + extra,
        dim=describer.network.dim if describer else spec.dim,
        image_size=spec.image_size or 224,
        data=method.data,
        paper=", ".join(scores),
        formats=method.formats,
        note=method.note,
    )


def cards(names: Iterable[str] | None = None) -> list[Card]:
    """Every named system, ours and those of plug-ins."""
    return [card(name) for name in (METHODS if names is None else names)]
