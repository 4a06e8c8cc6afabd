"""A recipe: every choice that makes a model and its search, as a TOML file a person can read.

    [network] which network    [places] how the map is cut    [loss] what training rewards
    [training] how long, with which photos    [mining] which of them meet in a batch
    [search] how a query is answered

Tables and frozen dataclasses mirror each other; a key nobody knows is an error that names the
nearest one.
"""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from evenplace.errors import SettingError, unknown_name
from evenplace.losses import loss_takes
from evenplace.networks.methods import METHODS, NetworkSpec
from evenplace.photos.table import Photos
from evenplace.places import Given, Grid, Intersection, KdTree, Places, Quadtree
from evenplace.training.specs import (
    EVENING,
    TRIPLET_LOSSES,
    LossSpec,
    MiningSpec,
    PlacesSpec,
    SearchSpec,
    TrainingSpec,
    check_settings,
)

PRESETS = ("recommended", "paper")
_LEVELS = (5, 2, 1)  # HGE: at most 5000, 2000 and 1000 photos a cell


@dataclass(frozen=True)
class Recipe:
    """Everything that makes a run; `name` is how tables and reports call it."""

    name: str = "cross-entropy"
    network: NetworkSpec = field(default_factory=NetworkSpec)
    places: PlacesSpec = field(default_factory=PlacesSpec)
    loss: LossSpec = field(default_factory=LossSpec)
    training: TrainingSpec = field(default_factory=TrainingSpec)
    mining: MiningSpec = field(default_factory=MiningSpec)
    search: SearchSpec = field(default_factory=SearchSpec)

    def changed(self, settings: Iterable[str]) -> "Recipe":
        """Apply `key=value` settings; a key is a leaf (`epochs`) or dotted (`training.epochs`)."""
        tree = self.as_dict()
        for key, value in parse_settings(settings).items():
            _put(tree, key, value)
        return Recipe.from_dict(tree)

    def __post_init__(self) -> None:
        compares = loss_takes(self.loss.name) == "descriptors"
        if self.training.sampler not in EVENING and not compares:
            raise SettingError(
                f"sampler={self.training.sampler} chooses photos to compare, and {self.loss.name} "
                f"classifies them; use one of {', '.join(EVENING)}, or a loss on descriptors"
            )
        mined = self.training.sampler in ("triplets", "generations")
        if mined and self.loss.name not in TRIPLET_LOSSES:
            raise SettingError(
                f"sampler={self.training.sampler} hands out triplets, which {self.loss.name} "
                f"does not take; use one of {', '.join(TRIPLET_LOSSES)}"
            )

    def cautions(self) -> list[str]:
        """What a reader of the results should know: settings that work against each other."""
        compares = loss_takes(self.loss.name) == "descriptors"
        names = ("beta", "kappa") if compares else ("beta", "kappa", "tau")
        prior = [name for name in names if self.loss.settings.get(name)]
        if self.training.sampler in ("place", "sqrt", "cliques") and prior:
            return [
                f"the sampler {self.training.sampler!r} already evens out how often places are met "
                f"and {self.loss.name} corrects for it again ({', '.join(prior)}); "
                "use sampler=photo, or switch these off"
            ]
        return []

    def as_dict(self) -> dict[str, Any]:
        tree = dataclasses.asdict(self)
        loss = tree["loss"]
        tree["loss"] = {"name": loss["name"], **loss["settings"]}
        return tree

    def to_toml(self) -> str:
        tree = self.as_dict()
        tables = {
            name: {key: value for key, value in values.items() if value is not None}
            for name, values in tree.items()
            if name != "name"
        }
        return tomli_w.dumps({"name": tree["name"], **tables})

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> "Recipe":
        parts: dict[str, Any] = {}
        for key, value in tree.items():
            if key == "name":
                parts[key] = str(value)
            elif not isinstance(value, Mapping):
                raise SettingError(f"{key}={value!r} must be a table; write [{key}] above its keys")
            elif key == "loss":
                rest = {k: v for k, v in value.items() if k != "name"}
                parts[key] = LossSpec(value.get("name", LossSpec.name), rest)
            elif key in _TABLES:
                parts[key] = _fill(_TABLES[key], value, key)
            else:
                raise unknown_name("recipe table", key, ["name", "loss", *_TABLES])
        return cls(**parts)


_TABLES: dict[str, Any] = {
    f.name: f.type for f in dataclasses.fields(Recipe) if f.name not in ("name", "loss")
}


def parse_settings(settings: str | Iterable[str]) -> dict[str, Any]:
    """Read `key=value` words, or one; values are TOML, or text as it stands."""
    found: dict[str, Any] = {}
    for setting in [settings] if isinstance(settings, str) else settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise SettingError(f"--set {setting!r} has no value; write key=value")
        found[key.strip()] = _value(text.strip())
    return found


def recipe_names() -> list[str]:
    """The recipes that come with the package and its plug-ins."""
    return sorted(METHODS)


def read_recipe(name_or_path: str | Path) -> Recipe:
    """Read a recipe by its name in the package, or from a TOML file."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        return Recipe.from_dict(METHODS.find(str(name_or_path)).tables)
    try:
        return Recipe.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise SettingError(f"{path} does not exist; name a recipe or a .toml file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is not TOML ({error}); correct that line") from None


def find_recipe(method: str, preset: str = "recommended") -> Recipe:
    """The recipe of a method under a preset: `recommended` is NAME.toml, `paper` NAME-paper.toml.

    A method that has no recipe of the paper's own (a baseline) has the same one under both.
    """
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    paper = f"{method}-paper"
    return read_recipe(paper if preset == "paper" and paper in recipe_names() else method)


def cut_places(spec: PlacesSpec, photos: Photos) -> Places:
    """Cut the map where the photos are, as the recipe says.

    hierarchy: HGE's nested quadtrees; the places are the finest cells, and `extra["level_0"]` …
    say which coarser ones hold each.  intersection: CPlaNet's; places are where the cells of a
    kd-tree, a quadtree and a grid meet.  focal-grid: EigenPlaces' cells; its two views are cut
    while training.  given: the data set's own places; squares where it has none.
    """
    if spec.rule == "given" and spec.column in photos.table.column_names:
        return Given(spec.column, spec.min_photos).partition(photos)
    if spec.rule == "kd-tree":
        return KdTree(spec.max_photos, spec.min_photos).partition(photos)
    if spec.rule == "quadtree":
        return Quadtree(spec.max_photos, spec.min_photos).partition(photos)
    if spec.rule == "hierarchy":
        rule = Quadtree(spec.max_photos, spec.min_photos)
        return rule.hierarchy(photos, [times * spec.max_photos for times in _LEVELS])
    if spec.rule == "intersection":
        coarse = (KdTree(spec.max_photos), Quadtree(spec.max_photos), Grid(spec.cell))
        return Intersection(coarse, spec.min_photos).partition(photos)
    grid = Grid(
        spec.cell,
        spec.min_photos,
        spec.groups,
        heading_bins=spec.heading_bins,
        heading_groups=spec.heading_groups,
        groups_in_use=spec.groups_in_use or None,
    )
    return grid.partition(photos)


def spec_of(places: Places) -> PlacesSpec:
    """The [places] of a recipe for places that were cut without one."""
    about = {"rule": places.rule.name, **places.rule.settings()}
    known = [one.name for one in dataclasses.fields(PlacesSpec) if about.get(one.name) is not None]
    return PlacesSpec(**{name: type(getattr(PlacesSpec, name))(about[name]) for name in known})


def _fill(kind: type[Any], values: Mapping[str, Any], table: str) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for key in values:
        if key not in fields:
            raise unknown_name(f"key in [{table}]", key, fields)
    check_settings(table, kind, values)
    return kind(**values)


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    if key == "name":
        tree["name"] = value
        return
    table, _, leaf = key.rpartition(".")
    homes = [t for t, v in tree.items() if isinstance(v, dict) and leaf in v and table in ("", t)]
    if not homes and table in tree and table == "loss":
        homes = ["loss"]
    if not homes or (table and homes != [table]):
        leaves = {leaf for values in tree.values() if isinstance(values, dict) for leaf in values}
        raise unknown_name("setting", key, leaves)
    tree[homes[0]][leaf] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text
