"""The audit: how uneven is a set of photos, and where?  Needs no model.

# N photos · C places
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.arrays import Ints
from evenplace.errors import PlaceError
from evenplace.evaluation.intervals import Interval
from evenplace.photos.read import read_photos
from evenplace.photos.table import Photos
from evenplace.places import make_partition
from evenplace.places.coverage import (
    Coverage,
    Diversity,
    Need,
    cover,
    find_needs,
    measure_diversity,
)
from evenplace.places.grid import Grid
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, gini, imbalance_ratio, share_with_half, tiers
from evenplace.report.audit_answers import Answers, read_answers, recall_by_tier
from evenplace.retrieval.descriptor_files import read_descriptors


@dataclass(frozen=True)
class TierRow:
    """One tier of a partition."""

    name: str
    places: int
    photos: int
    least: int
    most: int
    sides: float  # mean number of 30° directions a place was seen from; NaN when unknown
    similarity: float  # mean cosine within its places; NaN without descriptors


@dataclass(frozen=True)
class Audit:
    """How uneven photos are over places: everything the page shows, as numbers."""

    photos: Photos
    places: Places
    against: Places | None = None  # another cut of the same photos
    diversity: Diversity | None = None  # where there are descriptors
    answers: Answers | None = None

    @cached_property
    def coverage(self) -> Coverage:
        return cover(self.photos, self.places)

    @cached_property
    def needs(self) -> list[Need]:
        return find_needs(self.places)

    @cached_property
    def tiers(self) -> list[TierRow]:
        return [_tier(self, number) for number in range(len(TIERS))]

    @cached_property
    def recall(self) -> list[tuple[str, int, Interval]]:
        return [] if self.answers is None else recall_by_tier(self.answers, self.places)

    def sentence(self) -> str:
        """The one thing to know."""
        counts = self.places.counts
        tail = self.tiers[-1].photos / max(int(counts.sum()), 1)
        return (
            f"Half of the photos are in {share_with_half(counts):.0%} of the places, and the least "
            f"photographed 30 % of the places hold {tail:.1%} of the photos."
        )

    def notes(self) -> list[str]:
        """What else the terminal should say: what was left out, and where to photograph next."""
        notes = []
        if self.photos.skipped:
            one = self.photos.skipped[0]
            many = len(self.photos.skipped)
            count = f"{many:,} photo{'s' * (many > 1)} left out"
            notes.append(f"{count}, for example {one.path}: {one.reason}")
        if self.needs:
            need = self.needs[0]
            east, north = need.centre
            city = f" of {need.city}" if len(self.places.cities) > 1 else ""
            notes.append(
                f"new photos would help most around {east:.0f} E, {north:.0f} N{city}: "
                f"{need.below} of {need.places} places there are below the median"
            )
        return notes

    def city_table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and a row a city, then all together; no rows where there is one city."""
        columns = ["city", "photos", "places", "imbalance", "Gini", "places with half", "tail has"]
        names, city = self.places.cities, self.places.city
        if len(names) < 2:
            return columns, []
        taken = np.bincount(self.photos.city)
        photos = dict(zip(self.photos.cities, taken.tolist(), strict=True))
        rows = [
            [name, f"{photos[name]:,}", *uneven(self.places.counts[city == at])]
            for at, name in enumerate(names)
        ]
        return columns, [*rows, ["all", f"{len(self.photos):,}", *uneven(self.places.counts)]]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows by tier, for the terminal and the page alike."""
        inside = max(int(self.places.counts.sum()), 1)
        columns = ["tier", "places", "photos", "share", "photos a place"]
        rows = [
            [t.name, f"{t.places:,}", f"{t.photos:,}", f"{t.photos / inside:.1%}",
             f"{t.least:,}-{t.most:,}"]
            for t in self.tiers
        ]  # fmt: skip
        more: dict[str, list[str]] = {}
        if self.coverage.headings.size:
            more["sides seen, of 12"] = [f"{t.sides:.1f}" for t in self.tiers]
        if self.diversity is not None:
            more["similarity within"] = [f"{t.similarity:.3f}" for t in self.tiers]
        if self.recall:
            by_name = {name: f"{recall} (n={count})" for name, count, recall in self.recall}
            more["recall@1, %"] = [by_name.get(t.name, "no queries") for t in self.tiers]
        return [*columns, *more], [
            [*row, *cells] for row, *cells in zip(rows, *more.values(), strict=True)
        ]


def uneven(counts: Ints) -> list[str]:
    """Places, imbalance, Gini, the share of places with half the photos, the tail's share."""
    if not len(counts):
        return ["0", "–", "–", "–", "–"]
    tail = counts[tiers(counts) == TIERS.index("tail")].sum() / counts.sum()
    return [f"{len(counts):,}", f"{imbalance_ratio(counts):,.0f} : 1", f"{gini(counts):.2f}",
            f"{share_with_half(counts):.0%}", f"{tail:.1%}"]  # fmt: skip


def title_of(path: str | Path) -> str:
    """What to call the photos of a path: a folder called `database` needs its parent."""
    folder = Path(path).absolute()
    generic = folder.name in (
        "database", "queries", "images", "photos", "train", "test", "val", "query",
    )  # fmt: skip
    return f"{folder.parent.name}/{folder.name}" if generic else folder.name


def audit_path(
    path: str | Path,
    *,
    cell: float = 20.0,
    min_photos: int = 1,
    against: str = "kd-tree",
    descriptors: str | Path | None = None,
    predictions: str | Path | None = None,
    **choice: Any,
) -> Audit:
    """Audit a folder: what the command does.  `against` names a partition, or is "none".

    choice: which of its photos, as `read_photos` takes it (`layout`, `city`, `zone`, `bbox`).
    """
    photos, places = cut_path(path, cell=cell, min_photos=min_photos, **choice)
    given = None if descriptors is None else read_descriptors(descriptors, photos)
    return Audit(
        photos,
        places,
        against=None if against == "none" else _rival(against, photos, places),
        diversity=None if given is None else measure_diversity(given, places),
        answers=None if predictions is None else read_answers(predictions, photos),
    )


def cut_path(
    path: str | Path, *, cell: float, min_photos: int, **choice: Any
) -> tuple[Photos, Places]:
    """The photos of a folder, and the map cut into squares."""
    photos = read_photos(path, **choice)
    places = Grid(cell=cell, min_photos=min_photos).partition(photos)
    if not len(places):
        raise PlaceError(
            f"no cell of {cell:g} m has {min_photos} photos; take a larger --cell or fewer "
            "--min-photos"
        )
    return photos, places


def _rival(name: str, photos: Photos, places: Places) -> Places:
    """Another cut of the photos into about as many places: twice the mean is the most photos."""
    settings: dict[str, Any] = {}
    if name in ("kd-tree", "quadtree"):
        settings["max_photos"] = max(2, round(2 * len(photos) / (1.5 * len(places))))
    cut: Places = make_partition(name, **settings).partition(photos)
    return cut


def _tier(audit: Audit, number: int) -> TierRow:
    mine = audit.places.tiers == number
    counts, sides = audit.places.counts[mine], audit.coverage.sides[mine]
    alike = np.array([np.nan]) if audit.diversity is None else audit.diversity.mean[mine]
    alike = alike[np.isfinite(alike)]
    return TierRow(
        name=TIERS[number],
        places=int(mine.sum()),
        photos=int(counts.sum()),
        least=int(counts.min(initial=counts.max(initial=0))),
        most=int(counts.max(initial=0)),
        sides=float(sides.mean()) if mine.any() else float("nan"),
        similarity=float(alike.mean()) if len(alike) else float("nan"),
    )
