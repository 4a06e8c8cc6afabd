"""What a named system is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenplace.networks.network import NetworkSpec


@dataclass(frozen=True)
class Part:
    """A part by its name in the module that builds it, and its settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({inside})" if inside else self.name


@dataclass(frozen=True)
class PublishedScore:
    """The paper's R@1 on SF-XL, in percent, for one backbone."""

    backbone: str
    v1: float
    v2: float


@dataclass(frozen=True)
class Method:
    """A named combination of parts.

    variants: what else changes with a backbone other than the usual one.  describer: the method
    whose descriptors rank the shortlist, where it is not the network that made the shortlist.
    system: whose published weight files fit (`keys.systems`); release: where the file is.
    """

    kind: str  # classification, retrieval or mixed
    network: NetworkSpec
    data: str
    loss: Part
    partition: Part | None = None
    classifier: Part | None = None
    rerank: Part | None = None
    describer: str | None = None
    system: str | None = None
    release: str | None = None
    formats: str = ""
    paper: tuple[PublishedScore, ...] = ()
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""
