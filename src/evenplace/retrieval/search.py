"""Query → hits: the classifier keeps a few places, a rule ranks their photos.

Q queries · C places · D descriptor · P candidates · T candidates of a batch · n shortlisted places
"""

import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenplace.arrays import Floats
from evenplace.describe.describer import Described, Describer, Progress
from evenplace.errors import IndexFileError, PhotoError, SettingError
from evenplace.retrieval.answers import (
    Answer,
    Batch,
    Hit,
    Hits,
    explain,
    join_hits,
    no_hits,
    read_hits,
    stage_times,
)
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.calibration import Calibration, Way, least_confidence
from evenplace.retrieval.confidence import Confidence, build_confidence, judge
from evenplace.retrieval.index import Index, open_index
from evenplace.retrieval.index_pair import Pair
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.positions import Around
from evenplace.retrieval.rerank import Reranker, build_reranker, rank_batch
from evenplace.retrieval.second_look import Picture, SecondLook
from evenplace.retrieval.shortlist import Shortlist, collect, refined
from evenplace.retrieval.stores import EmbeddedStore, Nearest, Store

_BATCH = 64  # queries answered together
_SCAN = 1024  # queries compared with the whole database in one pass over it
_ALIKE = 256  # photos most like a query whose places an exact search ranks


@dataclass(frozen=True)
class _Asked:
    """Queries, and for each what it must not see, its picture, and the photos most like it."""

    queries: Floats  # (Q, D)
    without: Sequence[Rows] | None
    pictures: Sequence[Picture] | None
    nearest: Nearest | None = None

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, some: slice) -> "_Asked":
        parts: list[Any] = [one if one is None else one[some] for one in vars(self).values()]
        return _Asked(*parts)


class Search:
    """An index opened for questions; several threads may ask at once.

    shortlist: places the classifier keeps; all of them when there are fewer.  exact: compare the
    whole database instead and rank the places of the 256 photos most like the query; photos in no
    place are found too.
    centre: queries that come together are moved to where the database is (`together`).
    facing: an answer must also look the query's way, so only candidates that do count towards its
    confidence.  Without a describer it answers descriptors.  calibration: makes probabilities of
    confidences; one that was learned for another way of asking is refused.  min_precision: abstain
    from answers less sure than the calibration asks for that share of right ones; insist: also by
    one that promises nothing.  store: who compares descriptors, the index's own files unless told.
    look: looks a second time at the best candidates of queries that come with their pictures.
    ranked_by: an index of the same photos by another network, whose descriptors rank instead; a
    query is then both descriptors side by side, as a `Describer` of two networks makes them.
    """

    def __init__(
        self,
        index: Index,
        describer: Describer | None = None,
        *,
        ranked_by: Index | None = None,
        shortlist: int = 20,
        rerank: str | Reranker = "l2",
        confidence: str | Confidence = "mass",
        exact: bool = False,
        centre: bool = False,
        facing: bool = False,
        min_precision: float | None = None,
        insist: bool = False,
        calibration: Calibration | None = None,
        store: Store | None = None,
        look: SecondLook | None = None,
    ) -> None:
        if shortlist < 1:
            raise SettingError(f"shortlist={shortlist} keeps no place; use 1 or more")
        self.describer, self.exact, self.look, self.centre = describer, exact, look, centre
        self.rule = build_reranker(rerank) if isinstance(rerank, str) else rerank
        self.confidence: Confidence = (
            build_confidence(confidence) if isinstance(confidence, str) else confidence
        )
        self.facing, self.calibration, self.min_precision = facing, calibration, min_precision
        self.least = least_confidence(min_precision, calibration, insist)
        if calibration is not None:
            source = confidence if isinstance(confidence, str) else repr(confidence)
            seen = "" if look is None else str(look)
            calibration.check(Way(repr(self.rule), source, shortlist, exact, facing, seen))
        self.places = Shortlist(index, shortlist)
        self._open(Pair(index, index if ranked_by is None else ranked_by))
        self.store: Store = store or self.embedded

    def _open(self, pair: Pair) -> None:
        """Answer from these indexes from now on."""
        if self.describer is not None:
            pair.check_models(self.describer)
        self.pair, self.index, self.ranking = pair, pair.index, pair.ranking
        self.rule = copy(self.rule).fit(self.ranking)
        self.places = replace(self.places, index=self.index)
        if not self.exact and not len(self.places.reachable):
            raise IndexFileError(
                f"{self.index.folder} holds no photo in a place the model knows; "
                "check that database and training photos are of one city, or pass exact=True"
            )
        self.store = self.embedded = EmbeddedStore(self.ranking, mapped=not self.exact)

    @property
    def index_bytes(self) -> int:
        """Bytes of all files it answers from."""
        return sum(index.bytes for index in self.pair.indexes)

    def reopen(self) -> "Search":
        """This engine on the newest generation of its index; itself when that is the one it has.

        Ask the new one from now on; questions under way end on the old.
        """
        if Manifest.read(self.index.folder).generation == self.index.manifest.generation:
            return self
        if self.store is not self.embedded:
            raise SettingError(
                "this engine asks a store of one generation of its index; fill the store with the "
                "newest and make a new Search"
            )
        newest, renewed = copy(self), [open_index(index.folder) for index in self.pair.indexes]
        newest._open(Pair(renewed[0], renewed[-1]))
        newest.look = None if self.look is None else self.look.on(newest.index)
        return newest

    def together(self, descriptors: Floats) -> "Search":
        """This engine for queries that come as a set, by their descriptors; itself if they do not.

        What sets all of them apart from the database, season, light or camera, is taken out.
        """
        if not self.centre:
            return self
        ours = copy(self)
        ours.pair = self.pair.moved(self._checked(descriptors, 1))
        return ours

    @property
    def moved(self) -> float:
        """How far queries are moved before they find their places, of their length of 1."""
        return float(np.linalg.norm(self.pair.shifts[0])) if self.pair.shifts else 0.0

    def answer(self, photo: str | bytes, k: int = 5) -> Answer:
        """Say where a photo was taken, how sure that is, and what else it might be."""
        described = self.describe(photo)
        answer = self.answers(described.descriptors, k, pictures=[photo])[0]
        answer.elapsed_ms["extract"] = described.decode_ms + described.network_ms
        return answer

    def answers(
        self,
        descriptors: Floats,
        k: int = 5,
        *,
        pictures: Sequence[Picture] | None = None,
        matches: int = 0,
        guesses: bool = True,
    ) -> list[Answer]:
        """The same for queries that are already descriptors.  descriptors: (Q, D) unit.

        matches: hits of each whose points are given too, where pictures are looked at.
        guesses: the places of each shortlist too; a table of answers does without.
        """
        most = min(k, max(1, len(self.index)))  # whatever is asked for, memory is not taken by k
        found = self.search(descriptors, most, pictures=pictures)
        explained = []
        for query in range(len(found)):
            hits, picture = self.hits(found, query), None if pictures is None else pictures[query]
            if self.look is not None and picture is not None and matches:
                hits = self.look.with_pairs(hits, picture, matches)
            sure = self.least, self.min_precision, self.calibration
            explained.append(explain(self.index, found, query, hits, *sure, guesses))
        return explained

    def describe(self, photo: str | bytes) -> Described:
        """The descriptor of one photo, or the reason why it has none."""
        if self.describer is None:
            raise SettingError("this engine has no describer; ask it with descriptors: search()")
        described = self.describer.describe([photo])
        if described.skipped:
            raise PhotoError(described.skipped[0].reason)
        return described

    def hits(self, found: Hits, query: int) -> list[Hit]:
        """The answers to one of several queries, as a person reads them."""
        return read_hits(self.index, found, query)

    def search(
        self,
        descriptors: Floats,
        k: int = 20,
        *,
        without: Sequence[Rows] | None = None,
        pictures: Sequence[Picture] | None = None,
        progress: Progress | None = None,
    ) -> Hits:
        """Answer queries that are already descriptors.

        descriptors: (Q, D) unit.  without: for each query, rows of the index it must not see.
        pictures: the photos they are of, for a second look.
        """
        parts = []
        for batch in self.batches(descriptors, k, without=without, pictures=pictures):
            parts.append(batch.hits)
            if progress:
                progress(batch.first + len(batch.hits), len(descriptors))
        if not parts:
            return no_hits(k, min(self.places.n, len(self.places.reachable)))
        return join_hits(parts)

    def batches(
        self,
        descriptors: Floats,
        k: int = 20,
        *,
        without: Sequence[Rows] | None = None,
        pictures: Sequence[Picture] | None = None,
    ) -> Iterator[Batch]:
        """The same a few queries at a time, with the candidates they were chosen from."""
        asked = _Asked(self._checked(descriptors, k), without, pictures)
        if without is not None and len(without) != len(asked):
            raise SettingError(
                f"without= hides rows of {len(without)} queries, {len(asked)} are asked; "
                "give an array of rows for each"
            )
        step = _SCAN if self.exact else _BATCH
        for first in range(0, len(asked), step):
            part, began = asked[first : first + step], time.perf_counter()
            if self.exact:
                ranked = self.pair.turn(part.queries)[1]
                nearest = self.store.nearest(ranked, max(_ALIKE, k), part.without)
                part = replace(part, nearest=nearest)
            scan_ms = (time.perf_counter() - began) * 1e3 / len(part)
            for at in range(0, len(part), _BATCH):
                yield self._batch(part[at : at + _BATCH], k, first + at, scan_ms)

    def best_places(self, descriptors: Floats, n: int) -> Rows:
        """The n best places of each query, whatever the shortlist keeps.  (Q, D) -> (Q, n)."""
        queries, every = self.pair.turn(self._checked(descriptors, n))[0], replace(self.places, n=n)
        parts = [every.find(queries[i : i + _BATCH]).places for i in range(0, len(queries), _BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, n), np.int64)

    def _batch(self, asked: _Asked, k: int, first: int, scan_ms: float) -> Batch:
        """Shortlist → candidates → ranking → second look → confidence → hits."""
        clock, queries = [time.perf_counter()], asked.queries
        sought, ranked = self.pair.turn(queries)
        found = self.places.find(sought)
        clock.append(time.perf_counter())
        pools = collect(self.places, self.store, sought, ranked, found, asked.nearest)
        if self.ranking.codec.refines:
            pools = refined(pools, self.pair.given(queries), self.ranking.columns["exact"])
        pools = pools if asked.without is None else pools.hiding(asked.without)
        clock.append(time.perf_counter())
        rankings, look_ms = rank_batch(self.rule, pools), np.zeros(len(queries))
        if self.look is not None and asked.pictures is not None:
            rankings, look_ms = self.look.rank_batch(pools, rankings, asked.pictures)
        best = np.append(rankings.order, 0)[pools.cuts[:-1]]  # of an empty pool, anything
        around = Around(pools, self.index.spots(pools.rows), best)
        headings = self.index.headings if self.facing else None
        confidence = judge(self.confidence, around, rankings, headings, self.calibration)
        positions = around.positions()
        clock.append(time.perf_counter())
        hits = Hits(
            **rankings.best(pools, k)._asdict(),
            looked=rankings.looked,
            shortlist=found.places,
            posterior=np.exp(self.index.scale * found.scores - found.log_total[:, None]),
            confidence=confidence,
            positions=tuple(positions),
            elapsed_ms=stage_times(np.diff(clock) * 1e3, scan_ms, look_ms),
        )
        return Batch(first=first, pools=pools, rankings=rankings, spots=around.spots, hits=hits)

    def _checked(self, descriptors: Floats, k: int) -> Floats:
        if not isinstance(k, int | np.integer) or k < 1:
            raise SettingError(f"k={k!r} asks for no hit; use a whole number, 1 or more")
        return self.pair.checked(descriptors)
