"""Places: the map cut into classes, with what each later step asks of them.

# N photos · C places · M maps · k columns of an id · V corners of an outline
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from evenplace.arrays import Array, Bools, Doubles, Floats, Ints
from evenplace.errors import PlaceError
from evenplace.photos.files import whole_file
from evenplace.photos.table import Photos
from evenplace.places.maps import Map, Rule, Sheet
from evenplace.places.tiers import TIERS, gini, imbalance_ratio, tiers

METADATA = b"evenplace.places"
VERSION = 2


@dataclass(frozen=True)
class Places:
    """The maps of one city or several, cut into places; a place belongs to one map.

    Places are sorted by map and id, and an id depends on the rule and on where the photos lie,
    never on their order.  `labels` are of the photos the places were made from; ask `locate` for
    others.
    """

    labels: Ints  # (N,) place of each photo, -1 outside every place
    ids: Ints  # (C, k)
    centres: Doubles  # (C, 2) east, north
    counts: Ints  # (C,) photos in each place
    groups: NDArray[np.int32]  # (C,) softmax group; grid cells of one group are never adjacent
    tiers: NDArray[np.int8]  # (C,) 0 head, 1 middle, 2 tail
    areas: Doubles  # (C,) square metres
    maps: tuple[Map, ...]
    home: NDArray[np.int32]  # (C,) the map of each place, ascending
    extra: dict[str, Ints] = field(default_factory=dict)  # (C,) more of a place: parents, focal …

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, name)) for name in ("ids", *_COLUMNS, "centres")}
        if len(lengths) > 1:
            raise PlaceError(
                f"the columns of the places have {sorted(lengths)} rows; give one each"
            )

    @classmethod
    def build(
        cls,
        rule: Rule,
        where: Sheet | Map,
        *,
        labels: Ints,
        ids: Ints,
        counts: Ints,
        groups: NDArray[np.int32] | None = None,
    ) -> Self:
        """Complete the places of one map: outlines give centres and areas."""
        corners = rule.outlines(ids)  # (C, V, 2)
        return cls(
            labels=labels,
            ids=ids,
            centres=corners.mean(axis=1) if len(ids) else np.empty((0, 2)),
            counts=counts,
            groups=np.zeros(len(ids), np.int32) if groups is None else groups,
            tiers=tiers(counts),
            areas=_areas(corners),
            maps=(Map(where.city, where.zone, rule, ids.shape[1]),),
            home=np.zeros(len(ids), np.int32),
        )

    @property
    def rule(self) -> Rule:
        """How the first map was cut; the others are cut alike."""
        return self.maps[0].rule

    @property
    def zones(self) -> NDArray[np.int8]:
        """The UTM zone of each place: (C,)."""
        return np.array([one.zone for one in self.maps], np.int8)[self.home]

    @property
    def cities(self) -> list[str]:
        """The names of the cities, in the order of their places."""
        return list(dict.fromkeys(one.city for one in self.maps))

    @property
    def city(self) -> NDArray[np.int32]:
        """The city of each place, a row of `cities`: (C,)."""
        number = {name: at for at, name in enumerate(self.cities)}
        return np.array([number[one.city] for one in self.maps], np.int32)[self.home]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def outside(self) -> int:
        """How many of the photos lie in no place."""
        return int(np.sum(self.labels < 0))

    @property
    def outlines(self) -> Doubles:
        """The corners of each place: (C, V, 2)."""
        parts = [
            one.rule.outlines(self.ids[self.home == number, : one.width])
            for number, one in enumerate(self.maps)
        ]
        return np.concatenate([part for part in parts if len(part)] or parts[:1])

    def locate(
        self,
        where: Photos | Doubles,
        heading: Floats | None = None,
        *,
        zone: ArrayLike | None = None,
        home: NDArray[np.integer] | None = None,
    ) -> Ints:
        """The place of each photo or position, -1 where there is none: (N,).

        Positions are in the places' zone, or in the one given.  home: look in these maps only.
        """
        if isinstance(where, Photos):
            return self.locate(where.positions, where.heading, zone=where.zone, home=home)
        positions = np.atleast_2d(np.asarray(where, np.float64))
        if positions.shape[1] != 2:
            raise PlaceError(f"positions have shape {positions.shape}; give (N, 2), east and north")
        if heading is None:
            heading = np.full(len(positions), np.nan, np.float32)
        zones = np.broadcast_to(self._own_zone() if zone is None else zone, len(positions))
        known = np.isfinite(positions.sum(axis=1))
        found = np.full(len(positions), -1, np.int64)
        for number, one in enumerate(self.maps):
            rows = (found < 0) & known & (zones == one.zone)
            if home is not None:
                rows &= home == number
            if rows.any():
                first, last = np.searchsorted(self.home, [number, number + 1])
                ids = self.ids[first:last, : one.width]
                at = one.rule.find(ids, positions[rows], heading[rows])
                found[rows] = np.where(at >= 0, at + first, -1)
        return found

    def _own_zone(self) -> int:
        zones = {one.zone for one in self.maps}
        if len(zones) > 1:
            raise PlaceError(
                f"the places are in UTM zones {', '.join(map(str, sorted(zones)))}; "
                "say which one positions are in: zone="
            )
        return zones.pop()

    def take(self, which: Ints | Bools) -> Self:
        """Some of the places, or all in another order; labels stay as they are."""
        columns = {name: getattr(self, name)[which] for name in ("ids", "centres", *_COLUMNS)}
        extra = {name: values[which] for name, values in self.extra.items()}
        return replace(self, **columns, extra=extra)

    def columns(self) -> dict[str, Array]:
        """What identifies the places, for a checkpoint."""
        names = ("ids", "centres", "counts", "groups", "zones")
        return {name: getattr(self, name) for name in names}

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
        many = f" of {len(self.cities)} cities" if len(self.cities) > 1 else ""
        lines = [
            f"{len(self.labels):,} photos in {len(self):,} places{many} ({self.rule.name}), "
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
        for name in _COLUMNS:
            columns[name] = pa.array(getattr(self, name))
        columns |= {f"extra_{name}": pa.array(values) for name, values in self.extra.items()}
        about = {
            "version": VERSION,
            "photos": len(self.labels),
            "maps": [one.to_plain() for one in self.maps],
        }
        table = pa.table(columns | {"photos": photos})
        table = table.replace_schema_metadata({METADATA: json.dumps(about).encode()})
        with whole_file(path, PlaceError) as draft:
            pq.write_table(table, draft, compression="zstd")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read what `write` wrote."""
        try:
            with pq.ParquetFile(path) as file:  # read_table loads Arrow's data sets, and pandas
                table = file.read()
            about = json.loads((table.schema.metadata or {})[METADATA])
        except FileNotFoundError as cause:
            raise PlaceError(f"{path} does not exist; check the path") from cause
        except (OSError, pa.ArrowException, KeyError, ValueError) as cause:
            raise PlaceError(
                f"{path} is damaged, or no file of places ({cause}); put a copy back, or write it "
                "anew with train or index"
            ) from cause
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
            **{name: columns[name] for name in _COLUMNS},
            maps=tuple(Map.from_plain(one) for one in about["maps"]),
            extra={n.removeprefix("extra_"): columns[n] for n in columns if n.startswith("extra_")},
        )

    def to_plain(self) -> dict[str, Any]:
        """The places of one map without their photos as lists and numbers, for JSON."""
        names = ("ids", "counts", "groups")
        return self.maps[0].to_plain() | {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """What `to_plain` gave, as places again; they know of no photos."""
        own = Map.from_plain(plain)
        return cls.build(
            own.rule,
            own,
            labels=np.empty(0, np.int64),
            ids=np.array(plain["ids"], np.int64),
            counts=np.array(plain["counts"], np.int64),
            groups=np.array(plain["groups"], np.int32),
        )


_COLUMNS = ("counts", "groups", "tiers", "areas", "home")


def box_outlines(boxes: Doubles) -> Doubles:
    """The corners of boxes, west, south, east and north of each: (C, 4) -> (C, 4, 2)."""
    return boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]


def _areas(corners: Doubles) -> Doubles:
    """Shoelace areas of outlines, about their own centre so that UTM's millions cost no digits."""
    if not len(corners):
        return np.empty(0)
    x, y = np.moveaxis(corners - corners.mean(axis=1, keepdims=True), 2, 0)  # (C, V)
    area: Doubles = np.abs(np.sum(x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1), axis=1)) / 2
    return area
