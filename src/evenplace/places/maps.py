"""One city's map: the photos it is cut from, how it was cut, and every way to cut one, by name.

# N photos · C places · V corners of an outline · k columns of an id
"""

from dataclasses import dataclass
from typing import Any, Protocol

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.errors import PlaceError, unknown_name
from evenplace.photos.table import Photos

RULES: dict[str, type] = {}  # filled by the package: a rule knows maps, and no map a rule


class Rule(Protocol):
    """How a map was cut, enough to find the place of a photo it was not made from.

    `settings` is plain data (JSON) from which `make_rule` makes the rule again.
    """

    @property
    def name(self) -> str: ...

    def settings(self) -> dict[str, Any]: ...

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which row of `ids` each position lies in, -1 for none: (N, 2) -> (N,)."""

    def outlines(self, ids: Ints) -> Doubles:
        """The corners of each place, east and north: (C, k) -> (C, V, 2)."""


@dataclass(frozen=True)
class Sheet:
    """The photos of one map: a city, or the part of it that lies in one zone."""

    photos: Photos
    city: str
    zone: int


@dataclass(frozen=True)
class Map:
    """One city's map: a zone whose metres mean something, and how it was cut."""

    city: str
    zone: int
    rule: Rule
    width: int  # columns of an id; what a longer row of ids has beyond them is another map's

    def to_plain(self) -> dict[str, Any]:
        rule = {"name": self.rule.name, **self.rule.settings()}
        return {"city": self.city, "zone": self.zone, "width": self.width, "rule": rule}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Map":
        return cls(plain["city"], plain["zone"], make_rule(plain["rule"]), plain["width"])


def make_rule(about: dict[str, Any]) -> Rule:
    """Make a rule again from what `Places.write` wrote about it."""
    settings = {key: value for key, value in about.items() if key != "name"}
    try:
        rule: Rule = make_partition(about["name"], **settings)
    except TypeError:
        raise PlaceError(
            f"the places were cut by another version's {about['name']}; cut them again"
        ) from None
    return rule


def make_partition(name: str, **settings: Any) -> Any:
    """A partition by name, for the command line: `make_partition("kd-tree", max_photos=100)`."""
    if name not in RULES:
        raise unknown_name("partition", name, RULES)
    return RULES[name](**settings)
