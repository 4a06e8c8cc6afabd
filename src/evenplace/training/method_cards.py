"""What is known of each named system, in words and numbers, for tables and pages.

All of it is read from the system's recipe and from the network built of it, except what no recipe
says (`networks/facts.toml`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from evenplace.losses import loss_takes
from evenplace.networks.methods import METHODS
from evenplace.networks.network import build_network
from evenplace.photos.pictures import Size
from evenplace.training.recipe import Recipe, read_recipe
from evenplace.training.specs import PlacesSpec, TrainingSpec


@dataclass(frozen=True)
class Card:
    """One system: its parts, its size, where it learnt, how well the paper says it does."""

    name: str
    kind: str
    backbone: str
    aggregator: str
    places: str
    classifier: str
    loss: str
    training: str
    rerank: str
    confidence: str
    parameters: int
    dim: int
    image_size: Size
    train_size: Size
    data: str
    paper: str  # R@1 on SF-XL v1 / v2
    formats: str
    licence: str
    note: str

    def rows(self) -> list[tuple[str, str]]:
        """Every field as a line for people."""
        values = dict(vars(self), parameters=f"{self.parameters / 1e6:.1f} M")
        return [(key.replace("_", " "), str(value)) for key, value in values.items() if value]


def card(name: str) -> Card:
    """Everything about one system."""
    method, recipe = METHODS.find(name), read_recipe(name)
    facts, spec = method.facts, recipe.network
    other = METHODS[method.describer].network if method.describer else None
    with torch.device("meta"):
        built = [build_network(one, weights=None) for one in (spec, other) if one]
    height, width = built[0].image_size
    size: Size = height if height == width else (height, width)
    return Card(
        name=name,
        kind=kind(recipe),
        backbone=spec.backbone + (f" + {other.backbone}" if other else ""),
        aggregator=spec.aggregator + (f" + {other.aggregator}" if other else ""),
        places=part(recipe.places.rule, _of_the_rule(recipe.places)),
        classifier=classifier(recipe),
        loss=part(recipe.loss.name, recipe.loss.settings) if recipe.training.epochs else "none",
        training=_schedule(recipe.training),
        rerank=recipe.search.rerank,
        confidence=recipe.search.confidence,
        parameters=sum(one.numel() for network in built for one in network.parameters()),
        dim=other.dim if other else spec.dim,
        image_size=size,
        train_size=recipe.training.train_size or size,
        data=facts.data,
        paper=", ".join(f"{v1} / {v2} ({name})" for name, v1, v2 in facts.paper),
        formats=facts.formats,
        licence=facts.licence,
        note=facts.note,
    )


def cards(names: Iterable[str] | None = None) -> list[Card]:
    """Every named system, ours and those of plug-ins."""
    return [card(name) for name in (METHODS if names is None else names)]


def kind(recipe: Recipe) -> str:
    """Who decides: the descriptors of the whole database, the classifier alone, or both in turn."""
    if recipe.search.exact:
        return "retrieval"
    alone = recipe.search.shortlist == 1 and recipe.search.describer is None
    return "classification" if alone else "mixed"


def classifier(recipe: Recipe) -> str:
    """What scores places: what was trained to, or the means of their photos."""
    if loss_takes(recipe.loss.name) == "descriptors" or recipe.places.rule == "focal-grid":
        return "means of the places' photos"
    combined = {"hierarchy": "product", "intersection": "sum"}.get(recipe.places.rule)
    if combined:
        return part("levels", {"combine": combined})
    return part("groups", {"prototypes": recipe.search.prototypes})


def part(name: str, settings: Mapping[str, Any]) -> str:
    """A part and its settings, as a recipe names them: low-visit-bias(beta=0.01, kappa=0.05)."""
    inside = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}({inside})" if inside else name


def _of_the_rule(spec: PlacesSpec) -> dict[str, Any]:
    """The settings of [places] that are not the usual ones, and the size of a cell."""
    usual = asdict(PlacesSpec(rule=spec.rule))
    own = {key: value for key, value in asdict(spec).items() if value != usual[key]}
    cell = {} if spec.rule in ("kd-tree", "quadtree", "hierarchy") else {"cell": spec.cell}
    return cell | own


def _schedule(spec: TrainingSpec) -> str:
    if not spec.epochs:
        return "none"
    told = ("epochs", "steps", "batch", "lr", "lr_classifier", "schedule", "sampler")
    return part(spec.optimiser, {key: getattr(spec, key) for key in told if getattr(spec, key)})
