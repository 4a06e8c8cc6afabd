"""The ways in which a held-out photo asks, so that tomorrow's questions hold no surprise.

as taken     what the photo saw, with everything of its own day, or pass, hidden
other light  the same with night, weather and traffic drawn on it (`relighting.py`)
off the map  everything within 100 m hidden: whatever is answered is wrong

A rehearsal can promise nothing about another day where the photos show one day, or tell no day
at all: `no_other_day` then says so, and the run is uncalibrated.  Passes are guessed then, so that
at least the next frame does not answer.

    V photos that ask
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.photos.nearby import find_nearby, turn
from evenplace.photos.passes import by_day, by_sequence, guess_passes
from evenplace.photos.table import Photos, join_photos
from evenplace.retrieval.array_files import widened
from evenplace.retrieval.confidence import TURN
from evenplace.run.folds import RIGHT, Fold

AWAY = 100.0  # metres around a photo that is asked off the map
LEAST = 0.5  # of the photos must have a match of another day
STRETCH = RIGHT.radius / 2  # metres around a photo where one pass is all there is
_READ = 1024  # descriptors read at a time
ALIKE = 0.5  # of the usual distance of neighbours' descriptors: a frame of the same pass


def no_other_day(photos: Photos) -> str:
    """Why photos show no other day, in a clause; empty where they do."""
    known = ~np.isnat(photos.time)
    if not known.any():
        return "the photos carry no capture times"
    if known.mean() < LEAST:
        return f"only {known.mean():.0%} of the photos carry a capture time"
    days = np.unique(photos.time[known].astype("datetime64[D]"))
    if len(days) == 1:
        return f"all photos were taken on one day ({days[0]})"
    near = find_nearby(photos, photos, RIGHT.radius)
    asked = near.query
    day = photos.time.astype("datetime64[D]")
    another = day[near.rows] != day[asked]
    seen_again = np.unique(asked[another & known[asked] & known[near.rows]])
    if len(seen_again) < LEAST * len(photos):
        return (
            f"only {len(seen_again) / len(photos):.0%} of the photos were taken where "
            "another day's were"
        )
    return ""


def on_other_days(folds: Sequence[Fold]) -> list[Fold]:
    """Hide from each photo its day and its drive; who loses the last match so asks nothing.

    A photo without a time sees those that have one.
    """
    return [_hide_own_day(fold) for fold in folds]


def _hide_own_day(fold: Fold) -> Fold:
    day, drive = (_numbered(fold, by) for by in (by_day, _over_midnight))
    near = RIGHT.positives(fold.queries, fold.index.photos)
    of = near.query
    own = (day.asked[of] == day.taken[near.rows]) | drive.same(of, near.rows)
    matches = np.bincount(of[~own], minlength=len(fold.queries))
    kept = np.flatnonzero((matches > 0) | (near.counts == 0))
    passes = np.column_stack([day.asked, drive.asked])[kept]
    rows = {
        (d, s): np.flatnonzero((day.taken == d) | ((drive.taken == s) & (s >= 0)))
        for d, s in np.unique(passes, axis=0).tolist()
    }
    return fold.only(kept).hiding([rows[d, s] for d, s in passes.tolist()])


def _over_midnight(photos: Photos) -> Ints:
    """Drives that the data set names and that one day does not hold; -1 for all others."""
    drive, day = by_sequence(photos), by_day(photos)
    pairs = np.unique(np.column_stack([drive, day]), axis=0)[:, 0]
    several = np.bincount(pairs[pairs >= 0], minlength=drive.max(initial=-1) + 1) > 1
    return np.where((drive >= 0) & np.append(several, False)[drive], drive, -1)


def on_other_passes(folds: Sequence[Fold]) -> list[Fold]:
    """Hide from each photo its own pass, as far as that can be guessed and leaves a match.

    By sequence, day or names (`photos.passes`), and where nothing tells, what looks like a frame
    of it.  Where a street was passed once, only frames within 12 m are hidden, if others match and
    look the same way.  The next frame stands in for another pass's photo of the very spot, so it
    may be as much farther off (`Fold.gap`): unless that is allowed for, of Cambridge's 500 surest
    rehearsed answers 17 were wrong, all but two by at most 41 m, and of the surest queries none.
    """
    return [_hide_own_pass(fold) for fold in folds]


def _hide_own_pass(fold: Fold) -> Fold:
    passes, photos = _numbered(fold, guess_passes), fold.index.photos
    near = RIGHT.positives(fold.queries, photos)
    of = near.query
    own = passes.same(of, near.rows)
    untold = np.flatnonzero(passes.asked[of] < 0)
    own[untold] = _look_alike(fold, of[untold], near.rows[untold])
    metres = np.linalg.norm(fold.queries.points[of] - photos.points[near.rows], axis=1)
    facing = ~(turn(photos.heading[near.rows], fold.queries.heading[of]) > TURN)
    hidden, gap = [], np.zeros(len(fold.queries))
    for query, (first, last) in enumerate(pairwise(near.starts)):
        here = slice(first, last)
        show = facing[here] if facing[here].any() else ~facing[here]
        mine = _hidden_of(own[here], metres[here], show)
        hidden.append(near.of(query)[mine])
        if mine.any():
            gap[query] = metres[here][show & ~mine].min() - metres[here][show].min()
    return replace(fold.hiding(hidden), gap=gap)


def _hidden_of(own: Bools, metres: Doubles, show: Bools) -> Bools:
    """Of one photo's neighbours those to hide: its pass, else the frames of it beside the photo.

    show: whether each looks the photo's way.  One that does stays in sight: without, nothing could
    be answered, however good.  (P,).
    """
    for mine in (own, own & (metres <= STRETCH)):
        if (show & ~mine).any():
            return mine
    return np.zeros(len(own), bool)


def _look_alike(fold: Fold, of: Ints, rows: Ints) -> Bools:
    """Whether pairs of neighbours are far more alike than neighbours are: (P,)."""
    if not len(of):
        return np.zeros(0, bool)
    asked, first, counts = np.unique(of, return_index=True, return_counts=True)
    off, ends = [], first + counts
    for start in range(0, len(asked), _READ):
        part = slice(start, start + _READ)
        given = widened(fold.source[fold.rows[asked[part]]])
        for query, at, end in zip(
            fold.index.codec.turn(given), first[part], ends[part], strict=True
        ):
            off.append(1 - fold.index.vectors(rows[at:end]) @ query)
    apart = np.concatenate(off)
    return np.asarray(apart < ALIKE * np.median(apart))


@dataclass(frozen=True)
class _Numbered:
    """A number for each photo that asks and each of the index: what they have in common."""

    asked: Ints
    taken: Ints

    def same(self, of: Ints, rows: Ints) -> Bools:
        """Whether pairs have it in common; -1 is nothing."""
        return np.asarray((self.asked[of] == self.taken[rows]) & (self.asked[of] >= 0))


def _numbered(fold: Fold, by: Callable[[Photos], Ints]) -> _Numbered:
    both = by(join_photos([fold.queries, fold.index.photos]))
    return _Numbered(both[: len(fold.queries)], both[len(fold.queries) :])


def in_other_light(fold: Fold) -> Fold | None:
    """The photos that were drawn in another light, asking with that; None where none were."""
    if fold.relit is None:
        return None
    drawn = np.flatnonzero(fold.relit_row >= 0)
    return replace(fold.only(drawn), source=fold.relit, rows=fold.relit_row[drawn])


def off_the_map(fold: Fold) -> Fold:
    """Hide all that is near each photo, and nothing else.

    A stranger meets look-alikes of its own light too: with its own day hidden as well, three
    photos of another town in sixty were surer than all of 363 rehearsed ones.
    """
    near = find_nearby(fold.index.photos, fold.queries, AWAY)
    return replace(fold, hidden=[near.of(query) for query in range(len(fold.queries))])
