"""Photos that are not on the map: how many of them are answered at each requested precision.

They are those of the data sets beside the one that is studied, and of a town drawn for it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.evaluation import Truth
from evenplace.photos import Photos, read_photos
from evenplace.report.tables import markdown
from evenplace.run.run import Run
from evenplace.study.data import find_folder, sets_at_hand
from evenplace.study.runs import Findings, engine_settings
from evenplace.study.spec import Study, System

MANY = 100  # photos of each other city
WANTED = (0.9, 0.95)
_SEED = 1000  # a town that no study draws


def second_look() -> Study:
    """The recommended system with a second look at its first 50 candidates, and without."""
    return Study(
        "second-look",
        "What does a second look at the pictures add, by tier, and is it sure of what it says?",
        (*_systems(), System("at 20 of 20 places", "dapr-m", ("verify=20", "shortlist=20"))),
        tables=("recall", "gains", "abstention", "confidence", "elsewhere"),
        figures=("precision-recall", "reliability"),
        note="The first two are one training; `inliers` is the number of matching points alone.",
    )


def elsewhere() -> Study:
    """The same systems asked for what they cannot know."""
    return Study(
        "elsewhere",
        "Does it know what is not on its map?",
        _systems(),
        tables=("abstention", "elsewhere"),
        figures=("reliability",),
    )


def _systems() -> tuple[System, ...]:
    return (
        System("one look", "dapr-m", search={"verify": 0}),
        System("second look", "dapr-m"),
    )


def elsewhere_table(found: Findings) -> str:
    """A row for each system and other city: how sure the middle answer is, and how many given.

    A run that is uncalibrated answers none of them at a precision; shown is what insisting gives.
    """
    truth, folder = found.splits[0].truth, found.outcomes[0].runs[0].parents[1] / "data"
    rows = []
    for one in found.outcomes:
        search = tuple(sorted(one.system.search.items()))
        names = _other_cities(found.splits[0].name)
        asked = [_asked(one.runs, search, truth, name, folder) for name in names]
        every = (np.concatenate([part[at] for part in asked], axis=-1) for at in (0, 1))
        for name, (sure, given) in zip([*names, "all"], [*asked, tuple(every)], strict=True):
            answered = [f"{100 * np.mean(part):.1f} %" for part in given]
            rows.append(
                [one.system.name, name, str(len(sure)), f"{np.median(sure):.3f}", *answered]
            )
    columns = ["system", "photos of", "asked", "median confidence",
               *(f"answered at {wanted:.0%}" for wanted in WANTED)]  # fmt: skip
    return markdown(columns, rows)


def _other_cities(data: str) -> list[str]:
    return ["a drawn town", *(name for name in sets_at_hand() if name != Path(data).name)]


def _photos(name: str, folder: Path) -> Photos:
    """Some photos of another city."""
    if name == "a drawn town":
        town = folder / f"town-{MANY}-1-{_SEED}"
        if not town.exists():
            draw_city(town, photos=MANY, queries=1, seed=_SEED)
        return read_photos(town / "database")
    photos = read_photos(find_folder(name))
    return photos[np.sort(np.random.default_rng(0).permutation(len(photos))[:MANY])]


@cache  # a table is written and printed
def _asked(
    runs: tuple[Path, ...],
    search: tuple[tuple[str, Any], ...],
    truth: Truth,
    name: str,
    folder: Path,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """How sure each run is of each photo, and which would be answered.  (Q,), (wanted, Q)."""
    photos, sure, given = _photos(name, folder), [], []
    for run in runs:
        settings: Mapping[str, Any] = engine_settings(dict(search))
        engine = Run(run).search(radius=truth.radius, heading=truth.heading, **settings)
        assert engine.describer is not None
        described = engine.describer.describe(photos.paths)
        paths = [photos.paths[row] for row in described.rows]
        found = engine.search(described.descriptors, 1, pictures=paths).confidence
        sure.append(found)
        learned = engine.calibration
        bars = [np.inf if learned is None else learned.threshold(one) for one in WANTED]
        given.append(found >= np.array(bars)[:, None])
    return np.concatenate(sure), np.concatenate(given, axis=1)
