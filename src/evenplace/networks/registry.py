"""Names → parts, ours and those that other packages bring by entry point.

A package adds a part without our knowing it:

    [project.entry-points."evenplace.aggregators"]
    my-pooling = "my_package.pooling:ENTRY"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from evenplace.errors import SettingError, unknown_name

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Our own parts by name, then the plug-ins of an entry-point group, loaded when asked for.

    A plug-in cannot take the name of one of ours: the same name must mean the same network
    on every machine.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, T]) -> None:
        self.kind, self.group, self.own = kind, group, dict(own)

    @cached_property
    def plugins(self) -> dict[str, EntryPoint]:
        found = {point.name: point for point in entry_points(group=self.group)}
        for name in sorted(found.keys() & self.own.keys()):
            raise SettingError(
                f"the {self.kind} {name!r} of {found[name].value} has the name of one of ours; "
                "rename the plug-in's entry point"
            )
        return found

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        if name in self.plugins:
            part: T = self.plugins[name].load()
            return part
        raise KeyError(name)

    def find(self, name: str) -> T:
        """The part of that name, or a sentence with the nearest name and all known ones."""
        if name not in self:
            raise unknown_name(self.kind, name, self)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self.plugins])

    def __len__(self) -> int:
        return len(self.own) + len(self.plugins)
