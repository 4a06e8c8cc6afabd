"""The audit: how uneven is a set of photos, and where?  Needs no model.

# N photos · C places
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PlaceError
from evenplace.evaluation.uncertainty import Interval
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
from evenplace.retrieval.sources import read_descriptors


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
    """Everything the page shows, as numbers."""

    photos: Photos
    places: Places
    coverage: Coverage
    needs: list[Need]
    tiers: list[TierRow]
    imbalance: float
    gini: float
    half: float  # the smallest share of the places that holds half of the photos
    against: Places | None = None
    diversity: Diversity | None = None
    answers: Answers | None = None
    recall: list[tuple[str, int, Interval]] = field(default_factory=list)

    def sentence(self) -> str:
        """The one thing to know."""
        tail = self.tiers[-1]
        inside = max(int(self.places.counts.sum()), 1)
        return (
            f"Half of the photos are in {self.half:.0%} of the places, and the least photographed "
            f"30 % of the places hold {tail.photos / inside:.1%} of the photos."
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
            [name, f"{photos[name]:,}", *_uneven(self.places.counts[city == at])]
            for at, name in enumerate(names)
        ]
        return columns, [*rows, ["all", f"{len(self.photos):,}", *_uneven(self.places.counts)]]

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


def audit_photos(
    photos: Photos,
    places: Places,
    *,
    against: Places | None = None,
    descriptors: NDArray[np.floating] | None = None,
    answers: Answers | None = None,
) -> Audit:
    """Measure how uneven photos are over places; `against` is another cut of the same photos."""
    coverage = cover(photos, places)
    diversity = None if descriptors is None else measure_diversity(descriptors, places)
    return Audit(
        photos=photos,
        places=places,
        coverage=coverage,
        needs=find_needs(places),
        tiers=[_tier(places, number, coverage, diversity) for number in range(len(TIERS))],
        imbalance=imbalance_ratio(places.counts),
        gini=gini(places.counts),
        half=share_with_half(places.counts),
        against=against,
        diversity=diversity,
        answers=answers,
        recall=[] if answers is None else recall_by_tier(answers, places),
    )


def _uneven(counts: NDArray[np.int64]) -> list[str]:
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
    layout: str | None = None,
    choice: Mapping[str, Any] | None = None,
    descriptors: str | Path | None = None,
    predictions: str | Path | None = None,
) -> Audit:
    """Audit a folder: what the command does.  `against` names a partition, or is "none".

    choice: which of its photos, as `read_photos` takes it (`city`, `zone`, `bbox`).
    """
    photos, places = cut_path(
        path, cell=cell, min_photos=min_photos, layout=layout, **(choice or {})
    )
    return audit_photos(
        photos,
        places,
        against=None if against == "none" else _rival(against, photos, places),
        descriptors=None if descriptors is None else read_descriptors(descriptors, photos),
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


def write_audit(
    audit: Audit,
    path: str | Path,
    title: str = "Audit",
    pictures: int = 300,
    tiles: str | None = None,
) -> Path:
    """Write the page: one file, with up to `pictures` small photos inside.

    tiles: the address of a base map, which the page then asks of the network.
    """
    from evenplace.report.audit_page import audit_page
    from evenplace.report.page import write_page

    return write_page(audit_page(audit, title, Path(path).parent, pictures, tiles), path)


def _tier(places: Places, number: int, coverage: Coverage, diversity: Diversity | None) -> TierRow:
    mine = places.tiers == number
    counts = places.counts[mine]
    alike = np.array([np.nan]) if diversity is None else diversity.mean[mine]
    alike = alike[np.isfinite(alike)]
    return TierRow(
        name=TIERS[number],
        places=int(mine.sum()),
        photos=int(counts.sum()),
        least=int(counts.min(initial=counts.max(initial=0))),
        most=int(counts.max(initial=0)),
        sides=float(coverage.sides[mine].mean()) if mine.any() else float("nan"),
        similarity=float(alike.mean()) if len(alike) else float("nan"),
    )
