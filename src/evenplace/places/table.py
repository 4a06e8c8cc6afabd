"""Places: the map cut into classes, with what each later step asks of them.

# N photos · C places · k columns of an id · V corners of an outline
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenplace.errors import PhotoError, PlaceError
from evenplace.photos.files import whole_file
from evenplace.photos.table import Photos
from evenplace.places.imbalance import gini, imbalance_ratio
from evenplace.places.tiers import TIERS, tiers

METADATA = b"evenplace.places"
VERSION = 1
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rule(Protocol):
    """How a map was cut, enough to find the place of a photo it was not made from.

    `settings` is plain data (JSON) from which `places.rules.make_rule` makes the rule again.
    """

    @property
    def name(self) -> str: ...

    def settings(self) -> dict[str, Any]: ...

    def find(self, ids: Ints, positions: Floats, heading: NDArray[np.float32]) -> Ints:
        """Which row of `ids` each position lies in, -1 for none: (N, 2) -> (N,)."""

    def outlines(self, ids: Ints, zone: int) -> Floats:
        """The corners of each place, east and north: (C, k) -> (C, V, 2)."""


@dataclass(frozen=True)
class Places:
    """A map cut into places.

    Places are sorted by id, and an id depends on the rule and on where the photos lie, never on
    their order.  `labels` are of the photos the places were made from; ask `locate` for others.
    """

    labels: Ints  # (N,) place of each photo, -1 outside every place
    ids: Ints  # (C, k)
    centres: Floats  # (C, 2) east, north
    counts: Ints  # (C,) photos in each place
    groups: NDArray[np.int32]  # (C,) softmax group; grid cells of one group are never adjacent
    tiers: NDArray[np.int8]  # (C,) 0 head, 1 middle, 2 tail
    areas: Floats  # (C,) square metres
    zone: int
    rule: Rule
    extra: dict[str, Ints] = field(default_factory=dict)  # (C,) more of a place: parents, focal …

    def __post_init__(self) -> None:
        lengths = {len(self.ids), len(self.centres), len(self.counts), len(self.groups)}
        if lengths != {len(self.tiers)} or len(self.areas) != len(self.tiers):
            raise PlaceError(
                f"the columns of the places have {sorted(lengths)} rows; give one each"
            )

    @classmethod
    def build(
        cls,
        rule: Rule,
        *,
        labels: Ints,
        ids: Ints,
        counts: Ints,
        zone: int,
        groups: NDArray[np.int32] | None = None,
        extra: dict[str, Ints] | None = None,
    ) -> Self:
        """Complete places from their ids and counts: outlines give centres and areas."""
        corners = rule.outlines(ids, zone)  # (C, V, 2)
        return cls(
            labels=labels,
            ids=ids,
            centres=corners.mean(axis=1) if len(ids) else np.empty((0, 2)),
            counts=counts,
            groups=np.zeros(len(ids), np.int32) if groups is None else groups,
            tiers=tiers(counts),
            areas=_areas(corners),
            zone=zone,
            rule=rule,
            extra=extra or {},
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def outside(self) -> int:
        """How many of the photos lie in no place."""
        return int(np.sum(self.labels < 0))

    @property
    def outlines(self) -> Floats:
        """The corners of each place: (C, V, 2)."""
        return self.rule.outlines(self.ids, self.zone)

    def locate(
        self, where: Photos | Floats, heading: NDArray[np.float32] | None = None
    ) -> NDArray[np.int64]:
        """The place of each photo or position, -1 where there is none: (N,)."""
        if isinstance(where, Photos):
            self._check_zone(where)
            return self.rule.find(self.ids, where.positions, where.heading)
        positions = np.atleast_2d(np.asarray(where, np.float64))
        if positions.shape[1] != 2:
            raise PlaceError(f"positions have shape {positions.shape}; give (N, 2), east and north")
        if heading is None:
            heading = np.full(len(positions), np.nan, np.float32)
        known = np.isfinite(positions.sum(axis=1))
        found = self.rule.find(
            self.ids, np.where(known[:, None], positions, 0.0), np.asarray(heading, np.float32)
        )
        return np.where(known, found, -1)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What identifies the places, for a checkpoint: ids, centres, counts, groups."""
        return {name: getattr(self, name) for name in ("ids", "centres", "counts", "groups")}

    def members(self) -> tuple[Ints, Ints]:
        """Photos sorted by place: rows, and where each place's rows start (C + 1).

        The photos of place c are rows[starts[c]:starts[c + 1]], in ascending order.
        """
        order = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[order], np.arange(len(self) + 1))
        return order, starts

    def summary(self) -> str:
        """What a person asks first: how many places, how uneven, and where the tiers begin."""
        if not len(self):
            return f"no places: all {len(self.labels):,} photos lie outside"
        lines = [
            f"{len(self.labels):,} photos in {len(self):,} places ({self.rule.name}), "
            f"{self.outside:,} outside every place",
            f"imbalance {imbalance_ratio(self.counts):,.0f}:1 "
            f"({self.counts.max():,} to {self.counts.min():,} photos), "
            f"Gini {gini(self.counts):.2f}, {self.groups.max() + 1} group(s)",
        ]
        for tier, name in enumerate(TIERS):
            mine = self.counts[self.tiers == tier]
            if len(mine):
                lines.append(
                    f"{name:>6}: {len(mine):,} places of {mine.min():,}-{mine.max():,} photos, "
                    f"{mine.sum() / self.counts.sum():.0%} of all"
                )
        return "\n".join(lines)

    def write(self, path: str | Path) -> None:
        """Write a Parquet file, one row a place, with the row numbers of its photos."""
        rows, starts = self.members()
        photos = pa.LargeListArray.from_arrays(starts, pa.array(rows))
        columns = {f"id_{at}": pa.array(column) for at, column in enumerate(self.ids.T)}
        columns |= {"east": pa.array(self.centres[:, 0]), "north": pa.array(self.centres[:, 1])}
        for name in ("counts", "groups", "tiers", "areas"):
            columns[name] = pa.array(getattr(self, name))
        columns |= {f"extra_{name}": pa.array(values) for name, values in self.extra.items()}
        about = {
            "version": VERSION,
            "zone": self.zone,
            "photos": len(self.labels),
            "rule": {"name": self.rule.name, **self.rule.settings()},
        }
        table = pa.table(columns | {"photos": photos})
        table = table.replace_schema_metadata({METADATA: json.dumps(about).encode()})
        with whole_file(path, PlaceError) as draft:
            pq.write_table(table, draft, compression="zstd")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read what `write` wrote."""
        from evenplace.places.rules import make_rule  # the rules build Places

        try:
            table = pq.read_table(path)
            about = json.loads((table.schema.metadata or {})[METADATA])
        except (OSError, pa.ArrowException, KeyError) as cause:
            raise PlaceError(f"{path} is no file of places ({cause}); check the path") from cause
        if about["version"] != VERSION:
            raise PlaceError(
                f"{path} is of version {about['version']} and this EvenPlace reads {VERSION}; "
                "cut the places again"
            )
        columns = {
            name: table.column(name).to_numpy() for name in table.column_names if name != "photos"
        }
        members = table.column("photos").combine_chunks()
        labels = np.full(about["photos"], -1, np.int64)
        labels[members.flatten().to_numpy()] = np.repeat(
            np.arange(len(table)), np.diff(members.offsets.to_numpy())
        )
        return cls(
            labels=labels,
            ids=np.stack([columns[name] for name in columns if name.startswith("id_")], axis=1),
            centres=np.stack([columns["east"], columns["north"]], axis=1),
            **{name: columns[name] for name in ("counts", "groups", "tiers", "areas")},
            zone=about["zone"],
            rule=make_rule(about["rule"]),
            extra={n.removeprefix("extra_"): columns[n] for n in columns if n.startswith("extra_")},
        )

    def to_plain(self) -> dict[str, Any]:
        """The places without their photos as lists and numbers, for JSON."""
        return {
            "rule": {"name": self.rule.name, **self.rule.settings()},
            "zone": self.zone,
            "ids": self.ids.tolist(),
            "counts": self.counts.tolist(),
            "groups": self.groups.tolist(),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """What `to_plain` gave, as places again; they know of no photos."""
        from evenplace.places.rules import make_rule  # the rules build Places

        return cls.build(
            make_rule(plain["rule"]),
            labels=np.empty(0, np.int64),
            ids=np.array(plain["ids"], np.int64),
            counts=np.array(plain["counts"], np.int64),
            groups=np.array(plain["groups"], np.int32),
            zone=plain["zone"],
        )

    def _check_zone(self, photos: Photos) -> None:
        if photos.zones not in ([], [self.zone]):
            raise PhotoError(
                f"the photos are in UTM zone {', '.join(map(str, photos.zones))} and the places in "
                f"{self.zone}; read them with zone={self.zone}"
            )


def one_zone(photos: Photos) -> int:
    """The zone of the photos, refusing none and several: a map is cut in one zone's metres."""
    if not len(photos):
        raise PhotoError("there are no photos to make places of; check what was skipped")
    if len(photos.zones) > 1:
        zones = ", ".join(map(str, photos.zones))
        raise PhotoError(
            f"the photos are in UTM zones {zones}; cut one city at a time: photos.only(city=…)"
        )
    return photos.zones[0]


def _areas(corners: Floats) -> Floats:
    """Shoelace areas of outlines, about their own centre so that UTM's millions cost no digits."""
    if not len(corners):
        return np.empty(0)
    x, y = np.moveaxis(corners - corners.mean(axis=1, keepdims=True), 2, 0)  # (C, V)
    area: Floats = np.abs(np.sum(x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1), axis=1)) / 2
    return area
