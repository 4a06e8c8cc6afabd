"""A study, declared: which systems are compared, and what is printed of them.

The named ones, every table and figure of the paper and what we set beside it, are files:
studies/NAME.toml has a row in `systems` for each system, in [all] what rows have that say nothing
else (its `changes` come before a row's own), in [paper] the paper's numbers of a row.  `methods`
adds every recipe of such a name, but for those `without`.  `dapr-m-paper-small` is the paper's loss
and distance to the letter on the embedded network, `dapr-m-paper` with its DINOv2.

Knows nothing of photos or folders: `runs` makes the runs, `tables` and `figures` the pages.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from evenplace.errors import SettingError, unknown_name
from evenplace.photos.files import shipped_tables
from evenplace.training.recipe import Recipe, find_recipe, recipe_names
from evenplace.training.recipe_variants import with_loss
from evenplace.training.specs import LossSpec


@dataclass(frozen=True)
class System:
    """One row of a table: a recipe, what is changed in it, and how it is asked.

    changes: `key=value` for the recipe; loss: a whole [loss] table in its place; bias: the preset
    of low-visit bias that its own loss gets.  search: settings of the engine (`rerank`,
    `shortlist`, `exact`, `confidence`); every other key is the reranker's.  paper: the paper's own
    numbers for this row, by column.  against: the system this one is paired with; the study's first
    if empty.  at: a line of a figure and the place on it.  kind: "classification" where a place's
    photos are the answer.
    """

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    loss: Mapping[str, Any] | None = None
    bias: str = ""
    search: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, str] = field(default_factory=dict)
    against: str = ""
    at: tuple[str, float] | None = None
    kind: str = ""

    def build_recipe(self, settings: Sequence[str], seed: int) -> Recipe:
        """The recipe of one training; what the study varies wins over `settings`."""
        recipe = find_recipe(self.recipe)
        if self.loss is not None:
            rest = {key: value for key, value in self.loss.items() if key != "name"}
            recipe = replace(recipe, loss=LossSpec(self.loss["name"], rest))
        if self.bias:
            biased = with_loss(recipe, "low-visit-bias", self.bias)
            recipe = replace(recipe, loss=biased.loss)
        return recipe.changed([*settings, *self.changes, f"seed={seed}"])


@dataclass(frozen=True)
class Study:
    """Systems that differ in one thing, the first of them the baseline.

    tables and figures name what `tables.TABLES` and `figures.FIGURES` know.
    """

    name: str
    question: str  # what it asks, in one sentence
    systems: tuple[System, ...]
    tables: tuple[str, ...] = ("recall", "tiers", "gains")
    figures: tuple[str, ...] = ("tiers",)
    note: str = ""  # what the paper has on this, and where it cannot be compared
    timed: int = 0  # queries asked one by one for the times
    pairs: tuple[tuple[str, str], ...] = ()  # further comparisons: a system, and against whom
    development: bool = False  # chooses settings, so it must not see a test's queries

    def __post_init__(self) -> None:
        names = [system.name for system in self.systems]
        if not names:
            raise SettingError(f"the study {self.name!r} compares nothing; give it systems")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SettingError(f"the study {self.name!r} has two systems called {twice!r}")
        for system in self.systems:
            if system.against and system.against not in names:
                raise SettingError(
                    f"{system.name!r} is compared with {system.against!r}, which the study "
                    f"{self.name!r} does not have"
                )
        for pair in self.pairs:
            for name in pair:
                if name not in names:
                    raise SettingError(f"the study {self.name!r} pairs {name!r}, which it lacks")

    def only(self, names: Sequence[str]) -> "Study":
        """The study of some of its systems, with those compared with them; all if none is named."""
        if not names:
            return self
        hosts = [one.against or one.name for one in self.systems]
        for name in names:
            if name not in (*hosts, *(one.name for one in self.systems)):
                raise unknown_name(f"system of {self.name}", name, dict.fromkeys(hosts))
        return self.exactly(
            [
                one.name
                for one, host in zip(self.systems, hosts, strict=True)
                if one.name in names or host in names
            ]
        )

    def exactly(self, names: Sequence[str]) -> "Study":
        """The study of these systems; one whose baseline is left out is paired with the first."""
        kept = [one for name in names for one in self.systems if one.name == name]
        alone = [one if one.against in names else replace(one, against="") for one in kept]
        pairs = tuple(pair for pair in self.pairs if set(pair) <= set(names))
        return replace(self, systems=tuple(alone), pairs=pairs)

    def baseline(self, system: System) -> str:
        """Whom a system is compared with."""
        return system.against or self.systems[0].name


_FILES = (resources.files("evenplace.study") / "studies").iterdir()
STUDIES = sorted(file.name.removesuffix(".toml") for file in _FILES)


def find_study(name: str) -> Study:
    """A study by its name, as its file declares it."""
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    told = shipped_tables(f"study/studies/{name}.toml")
    shared, paper = told.pop("all", {}), told.pop("paper", {})
    changes = shared.pop("changes", [])
    rows = [
        {**shared, **row, "changes": (*changes, *row.get("changes", ())),
         "paper": paper.get(row["name"], {})}
        for row in told.pop("systems")
    ]  # fmt: skip
    without = told.pop("without", ())
    for pattern in told.pop("methods", ()):
        found = fnmatch.filter(recipe_names(), pattern)
        left = [one for one in found if not any(fnmatch.fnmatch(one, no) for no in without)]
        rows += [{"name": method, "recipe": method} for method in left]
    systems = tuple(System(**row) for row in rows)
    return Study(name, systems=systems, **told)
