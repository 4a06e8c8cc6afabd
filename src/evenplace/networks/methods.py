"""Which parts a network is made of, and the named systems, one a recipe.

`build` makes their networks, `training.recipe` reads the rest.
"""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated, Any

from evenplace.errors import SettingError, unknown_name
from evenplace.networks.registry import Registry
from evenplace.photos.files import shipped_tables
from evenplace.photos.pictures import Size


@dataclass(frozen=True)
class NetworkSpec:
    """Which parts a network is made of; enough to build it again.

    cut: stages frozen and cached; layer, facet: where to stop in the backbone and what to read
    there (`build_backbone`); power: GeM's first.  image_size: at which photos are asked, a side or
    height and width; training may see them at another (`TrainingSpec.train_size`).  projection:
    whether a linear layer may follow the aggregator; without one what is pooled is the descriptor.
    """

    backbone: str = "efficientnet-lite0"
    dim: Annotated[int, (1, 2**17)] = 512  # AnyLoc's giant has 49,152
    cut: Annotated[int | None, (0, 100)] = None
    image_size: Annotated[Size | None, (8, 4096)] = None
    power: Annotated[float, (0.01, 1000)] = 3.0
    aggregator: str = "gem"
    layer: Annotated[int | None, (0, 100)] = None
    facet: str = "token"
    projection: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_size", as_size(self.image_size))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def as_size(given: Any) -> Size | None:
    """A size as a recipe writes it: nothing, a side, or [height, width]."""
    sides = given if isinstance(given, (list, tuple)) else (given,)
    if given is None:
        return None
    if len(sides) > 2 or not all(type(side) is int and side > 0 for side in sides):
        raise SettingError(
            f"image_size={given!r} is no size; use a side such as 224, or [height, width]"
        )
    return tuple(sides) if len(sides) == 2 else sides[0]


@dataclass(frozen=True)
class Facts:
    """What is known of a system beside its recipe (`facts.toml`).

    data: what the published weights saw.  paper: backbone, R@1 on SF-XL v1 and on v2, in percent.
    system: whose weight files fit (`published_keys`); release: where the file is; published: what
    its network has other than the recipe's; licence: of the repository it is in.  variants: what
    else changes with a backbone other than the recipe's.
    """

    data: str = ""
    paper: Sequence[tuple[str, float, float]] = ()
    system: str | None = None
    release: str | None = None
    published: Mapping[str, Any] = field(default_factory=dict)
    formats: str = ""
    licence: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Method:
    """A named system: its recipe, a TOML file, and what is known of it that no recipe says."""

    recipe: Traversable
    facts: Facts = Facts()

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The recipe as it is written."""
        return tomllib.loads(self.recipe.read_text(encoding="utf-8"))

    @property
    def network(self) -> NetworkSpec:
        return _changed(NetworkSpec(), self.tables.get("network", {}))

    @property
    def describer(self) -> str | None:
        """The method whose network ranks the shortlist, where it is not the one that made it."""
        found: str | None = self.tables.get("search", {}).get("describer")
        return found


def _shipped() -> dict[str, Method]:
    folder, facts = resources.files("evenplace") / "recipes", shipped_tables("networks/facts.toml")
    names = sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml"))
    return {n: Method(folder / f"{n}.toml", Facts(**facts.get(n, {}))) for n in names}


METHODS: Registry[Method] = Registry("method", "evenplace.methods", _shipped())


def network_spec(name: str, backbone: str | None = None, **changes: Any) -> NetworkSpec:
    """The network of a method's recipe, with another backbone or other settings where asked."""
    method = METHODS.find(name)
    spec = method.network
    if backbone is not None and backbone != spec.backbone:
        own = method.facts.variants.get(backbone, {"layer": None, "cut": None})
        spec = dataclasses.replace(spec, backbone=backbone, **own)
    return _changed(spec, changes)


def _changed(spec: NetworkSpec, changes: dict[str, Any]) -> NetworkSpec:
    known = {field.name for field in dataclasses.fields(NetworkSpec)}
    for setting in changes:
        if setting not in known:
            raise unknown_name("network setting", setting, known - {"backbone"})
    return dataclasses.replace(spec, **changes)
