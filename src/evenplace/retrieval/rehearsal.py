"""Answers to photos whose place is known, kept so that a curve can be fitted when it is needed.

What is right is for whoever asks to say: within 25 m or 10, looking the same way or not.  So a
run keeps its rehearsal: how sure each answer was, and how far off.

    V rehearsed answers
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.places.tiers import TIERS
from evenplace.retrieval.calibration import Calibration, Way, fit_calibration

KINDS = ("taken", "light", "away")  # ways in which a photo asked: `run.scenarios`
_COLUMNS = ("confidence", "facing", "metres", "degrees", "likeness", "tier", "kind")
_FITTED = [KINDS.index(kind) for kind in ("taken", "light")]  # what the curve is fitted to


@dataclass(frozen=True)
class Rehearsal:
    """Answers to photos held out in turn: how sure each was, and how far off.

    They hold for the way of asking they were made with.
    """

    confidence: tuple[float, ...]  # (V,)
    facing: tuple[float, ...]  # (V,) confidence of an engine to which headings matter
    metres: tuple[float, ...]  # (V,) from the photo to the answer; a million where there is none
    degrees: tuple[float, ...]  # (V,) between the two views, 0 where one is unknown
    likeness: tuple[float, ...]  # (V,) cosine of the photo and the answer
    tier: tuple[int, ...]  # (V,) of the photo's place
    kind: tuple[int, ...]  # (V,) of KINDS: how it was asked
    way: Way
    doubt: str = ""  # why no other day could be rehearsed, in a clause; empty where one was

    @classmethod
    def of(cls, columns: dict[str, NDArray[np.float64]], way: Way, doubt: str = "") -> Self:
        """A rehearsal from its columns, each (V,)."""
        whole = {name: columns[name].astype(int).tolist() for name in ("tier", "kind")}
        plain = {name: column.tolist() for name, column in columns.items()} | whole
        return cls(**{name: tuple(column) for name, column in plain.items()}, way=way, doubt=doubt)

    def fits(self, way: Way) -> bool:
        """Whether answers found in this way are like those rehearsed; both facings were."""
        return replace(way, facing=False) == self.way

    def calibrate(self, radius: float = 25.0, heading: float | None = None) -> Calibration:
        """The curve where an answer is right within `radius` metres, and `heading` degrees.

        Nobody knows whether the next photo is on the map: as many teach that are off it.  Without
        them the middle photo of another city was said to be right 32 times in 100 on Cambridge's
        map, with them 6; and where no rehearsed answer is wrong, all would be as sure.
        """
        right, way = np.array(self.metres) <= radius, self.way
        raw = np.array(self.confidence if heading is None else self.facing)
        if heading is not None:
            right &= np.array(self.degrees) <= heading
            way = replace(way, facing=True)
        kind, tier, alike = map(np.array, (self.kind, self.tier, self.likeness))
        asked = np.flatnonzero(np.isin(kind, _FITTED))
        away = np.flatnonzero(kind == KINDS.index("away"))
        taught = np.append(asked, np.resize(away, len(asked)) if len(away) else away)
        curve = fit_calibration(raw[taught], right[taught], way, likeness=alike[taught])
        return replace(
            curve,
            probabilities=curve.probabilities[: len(asked)],
            right=curve.right[: len(asked)],
            tail=tuple(np.flatnonzero(tier[asked] == TIERS.index("tail")).tolist()),
            away=tuple(curve(raw[away], alike[away]).tolist()),
            likeness=tuple(alike[asked].tolist()),
            doubt=self.doubt,
        )

    def write(self, path: str | Path) -> None:
        with whole_file(Path(path), RunError) as draft:
            draft.write_text(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        answers = {name: tuple(kept[name]) for name in _COLUMNS}
        return cls(**kept | answers | {"way": Way(**kept["way"])})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        try:
            return cls.from_dict(json.loads(Path(path).read_text()))
        except (ValueError, KeyError, TypeError) as cause:
            raise RunError(
                f"{path} is no rehearsal ({cause}); learn it again: evenplace tune RUN"
            ) from cause
