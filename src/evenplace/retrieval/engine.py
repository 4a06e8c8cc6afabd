"""Query → hits: the classifier keeps a few places, a rule ranks their photos.

Q queries · C places · D descriptor · P candidates · T candidates of a batch · n shortlisted places
"""

import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Described, Describer, Progress
from evenplace.errors import IndexFileError, PhotoError, SettingError
from evenplace.photos.table import Skipped
from evenplace.retrieval.answers import explain, least_confidence, read_hits
from evenplace.retrieval.calibration import Calibration, Way
from evenplace.retrieval.candidates import Pools, Rankings
from evenplace.retrieval.confidence import Confidence, build_confidence, same_answer
from evenplace.retrieval.hits import STAGES, Answer, Hit, Hits, join_hits, no_hits
from evenplace.retrieval.index import Index, open_index
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.pairing import (
    check_models,
    check_queries,
    check_same_photos,
    split_queries,
)
from evenplace.retrieval.positions import Around
from evenplace.retrieval.rerank import Measure, Reranker, build_reranker
from evenplace.retrieval.second_look import Picture, SecondLook
from evenplace.retrieval.shortlist import Shortlist, collect, collect_around, refined
from evenplace.retrieval.stores import EmbeddedStore, Nearest, Store

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_BATCH = 64  # queries answered together
_SCAN = 1024  # queries compared with the whole database in one pass over it
_ALIKE = 256  # photos most like a query whose places an exact search ranks


@dataclass(frozen=True)
class Batch:
    """Some queries, all that was looked at to answer them, and the answers."""

    first: int  # number of the first query
    pools: Pools
    rankings: Rankings
    spots: NDArray[np.float64]  # (T, 2) where the candidates are
    hits: Hits


class Search:
    """An index opened for questions; several threads may ask at once.

    shortlist: places the classifier keeps; all of them when there are fewer.  neighbours: also
    take the cells within so many metres of the winner.  exact: compare the whole database instead
    and rank the places of the 256 photos most like the query; photos in no place are found too.
    approximate: find the shortlist by the codes of the prototypes where the index has them.
    facing: an answer must also look the query's way, so only candidates that do count towards its
    confidence.  Without a describer it answers descriptors.  calibration: makes probabilities of
    confidences; one that was learned for another way of asking is refused.  min_precision: abstain
    from answers less sure than the calibration asks for that share of right ones; insist: also by
    one that promises nothing.  store: who
    compares descriptors, the index's own files unless told.
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
        approximate: bool = True,
        neighbours: float = 0.0,
        facing: bool = False,
        min_precision: float | None = None,
        insist: bool = False,
        calibration: Calibration | None = None,
        store: Store | None = None,
        look: SecondLook | None = None,
    ) -> None:
        if shortlist < 1:
            raise SettingError(f"shortlist={shortlist} keeps no place; use 1 or more")
        if describer is not None:
            check_models(describer, index, ranked_by)
        if ranked_by is not None:
            check_same_photos(index, ranked_by)
        self.index, self.describer, self.exact = index, describer, exact
        self.ranking = index if ranked_by is None else ranked_by
        self.neighbours, self.calibration, self.min_precision = (
            neighbours,
            calibration,
            min_precision,
        )
        self.least = least_confidence(min_precision, calibration, insist)
        self._settings: dict[str, Any] = {
            "shortlist": shortlist, "rerank": rerank, "confidence": confidence, "exact": exact,
            "approximate": approximate, "neighbours": neighbours, "facing": facing,
            "min_precision": min_precision, "insist": insist, "calibration": calibration,
        }  # fmt: skip
        rule = build_reranker(rerank) if isinstance(rerank, str) else copy(rerank)
        if calibration is not None:
            source = confidence if isinstance(confidence, str) else repr(confidence)
            seen = "" if look is None else str(look)
            calibration.check(Way(repr(rule), source, shortlist, exact, facing, seen))
        self.rule = rule.fit(self.ranking)
        self.facing = facing
        self._mass = confidence == "mass" and not facing
        self.confidence: Confidence = (
            build_confidence(confidence) if isinstance(confidence, str) else confidence
        )
        self.places = Shortlist(index, shortlist, approximate)
        if not exact and not len(self.places.reachable):
            raise IndexFileError(
                f"{index.folder} holds no photo in a place the model knows; "
                "check that database and training photos are of one city, or pass exact=True"
            )
        self.shortlist = min(shortlist, len(self.places.reachable))
        self.embedded = EmbeddedStore(self.ranking, mapped=not exact)
        self.store: Store = store or self.embedded
        self.look = look

    @cached_property
    def headings(self) -> Floats:
        """Where every photo of the index looks, degrees.  (N,)."""
        return self.index.photos.heading

    @property
    def labels(self) -> Rows:
        """Place of every photo of the index, -1 for none.  (N,)."""
        return self.index.labels

    @property
    def reachable(self) -> Rows:
        """Places that a shortlist can name: with photos, and a prototype.  (C',)."""
        return self.places.reachable

    @cached_property
    def prototypes(self) -> Floats:
        """Prototypes of the reachable places; a copy.  (C', D)."""
        return self.index.prototypes[self.reachable]

    @property
    def index_bytes(self) -> int:
        """Bytes of all files it answers from."""
        return self.index.bytes + (self.ranking.bytes if self.ranking is not self.index else 0)

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
        paired = self.ranking is not self.index
        ranked_by = open_index(self.ranking.folder) if paired else None
        index = open_index(self.index.folder)
        look = None if self.look is None else self.look.on(index)
        return Search(index, self.describer, ranked_by=ranked_by, look=look, **self._settings)

    def locate(self, photo: str | bytes, k: int = 5) -> list[Hit]:
        """Say where a photo was taken: the k best database photos, best first."""
        return self.hits(self.search(self.describe(photo).descriptors, k, pictures=[photo]), 0)

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
    ) -> list[Answer]:
        """The same for queries that are already descriptors.  descriptors: (Q, D) unit.

        matches: hits of each whose points are given too, where pictures are looked at.
        """
        most = min(k, max(1, len(self.index)))  # whatever is asked for, memory is not taken by k
        found = self.search(descriptors, most, pictures=pictures)
        return [
            explain(
                self.index,
                found,
                query,
                self._matched(
                    self.hits(found, query),
                    None if pictures is None else pictures[query],
                    matches,
                ),
                self.least,
                self.min_precision,
                self.calibration,
            )
            for query in range(len(found))
        ]

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

    def _matched(self, hits: list[Hit], picture: Picture | None, count: int) -> list[Hit]:
        """The hits, the first of them with the points they share with the picture."""
        if self.look is None or picture is None or not count:
            return hits
        own = self.look.see(picture)
        seen = [replace(hit, pairs=self.look.pairs(own, hit.row)) for hit in hits[:count]]
        return seen + hits[count:]

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
        return join_hits(parts) if parts else no_hits(k, self.shortlist)

    def batches(
        self,
        descriptors: Floats,
        k: int = 20,
        *,
        without: Sequence[Rows] | None = None,
        pictures: Sequence[Picture] | None = None,
    ) -> Iterator[Batch]:
        """The same a few queries at a time, with the candidates they were chosen from."""
        queries = self._checked(descriptors, k)
        if without is not None and len(without) != len(queries):
            raise SettingError(
                f"without= hides rows of {len(without)} queries, {len(queries)} are asked; "
                "give an array of rows for each"
            )
        step = _SCAN if self.exact else _BATCH
        for first in range(0, len(queries), step):
            part = slice(first, min(first + step, len(queries)))
            hidden = None if without is None else without[part]
            began, nearest = time.perf_counter(), None
            if self.exact:
                ranked = self.split(queries[part])[1]
                nearest = self.store.nearest(ranked, max(_ALIKE, k), hidden)
            scan_ms = (time.perf_counter() - began) * 1e3 / (part.stop - first)
            for at in range(0, part.stop - first, _BATCH):
                own = slice(at, at + _BATCH)
                yield self._batch(
                    queries[part][own],
                    k,
                    first=first + at,
                    hidden=None if hidden is None else hidden[own],
                    nearest=None if nearest is None else nearest[own],
                    pictures=None if pictures is None else pictures[part][own],
                    scan_ms=scan_ms,
                )

    def best_places(self, descriptors: Floats, n: int) -> Rows:
        """The n best places of each query, whatever the shortlist keeps.  (Q, D) -> (Q, n)."""
        queries, every = self.split(self._checked(descriptors, n))[0], replace(self.places, n=n)
        parts = [every.find(queries[i : i + _BATCH]).places for i in range(0, len(queries), _BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, n), np.int64)

    def split(self, descriptors: Floats) -> tuple[Floats, Floats]:
        """What finds the places and what ranks the photos; the same without `ranked_by`.

        Both as the index keeps descriptors (`Codec.turn`).
        """
        sought, ranked = split_queries(descriptors, self.index, self.ranking)
        turned = self.index.codec.turn(sought)
        return turned, turned if ranked is sought else self.ranking.codec.turn(ranked)

    def _batch(
        self,
        queries: Floats,
        k: int,
        *,
        first: int,
        hidden: Sequence[Rows] | None,
        nearest: Nearest | None,
        pictures: Sequence[Picture] | None,
        scan_ms: float,
    ) -> Batch:
        """Shortlist → candidates → ranking → second look → confidence → hits."""
        clock = [time.perf_counter()]
        sought, ranked = self.split(queries)
        found = self.places.find(sought)
        clock.append(time.perf_counter())
        if nearest is None:
            pools = collect(self.places, self.store, sought, ranked, found, self.neighbours)
        else:
            pools = collect_around(self.places, self.store, sought, ranked, found, nearest)
        pools = self._seen(pools, queries, hidden)
        clock.append(time.perf_counter())
        rankings = self._rank(pools)
        look_ms = np.zeros(len(queries))
        if self.look is not None and pictures is not None:
            rankings, look_ms = self._look(self.look, pools, rankings, pictures)
        spots = self.index.spots(pools.rows)
        best = np.append(rankings.order, 0)[pools.cuts[:-1]]  # of an empty pool, anything
        around = Around(pools, spots, best)
        confidence = self._confidence(around, rankings)
        clock.append(time.perf_counter())
        spent = np.diff(clock) * 1e3 / len(queries) + [0, scan_ms, -look_ms.mean()]
        elapsed_ms = {
            stage: np.full(len(queries), value)
            for stage, value in zip(STAGES[1:4], spent, strict=True)
        }
        if look_ms.any():
            elapsed_ms["verify"] = look_ms
        hits = Hits(
            **rankings.best(pools, k)._asdict(),
            looked=rankings.looked,
            shortlist=found.places,
            posterior=np.exp(self.index.scale * found.scores - found.log_total[:, None]),
            confidence=confidence,
            positions=tuple(around.positions()),
            elapsed_ms=elapsed_ms,
        )
        return Batch(first=first, pools=pools, rankings=rankings, spots=spots, hits=hits)

    def _seen(self, pools: Pools, queries: Floats, hidden: Sequence[Rows] | None) -> Pools:
        """The candidates by their exact descriptors, where codes found them; some are hidden."""
        if self.ranking.codec.refines:
            given = split_queries(queries, self.index, self.ranking)[1]
            pools = refined(pools, given, self.ranking.columns["exact"])
        if hidden is None:
            return pools
        unseen = [np.isin(pools[q].rows, rows) for q, rows in enumerate(hidden)]
        return pools.without(np.concatenate(unseen))

    def _rank(self, pools: Pools) -> Rankings:
        if isinstance(self.rule, Measure):
            return self.rule.rank_all(pools)
        return Rankings.join([self.rule.rank(pools[q]) for q in range(len(pools))], pools.cuts)

    def _look(
        self, look: SecondLook, pools: Pools, rankings: Rankings, pictures: Sequence[Picture]
    ) -> tuple[Rankings, NDArray[np.float64]]:
        """The rankings after a second look, and the milliseconds it took of each query."""
        looked, clock = [], [time.perf_counter()]
        for query, picture in enumerate(pictures):
            looked.append(look.rank(pools[query].rows, rankings[query], look.see(picture)))
            clock.append(time.perf_counter())
        return Rankings.join(looked, pools.cuts), np.diff(clock) * 1e3

    def _confidence(self, around: Around, rankings: Rankings) -> Floats:
        """Confidence of each query, 0 where its pool is empty.  (Q,)."""
        pools, spots = around.pools, around.spots
        held = pools.sizes > 0
        if self._mass:
            raw = around.masses()
        else:
            raw = np.zeros(len(pools), np.float32)
            for query in np.flatnonzero(held):
                pool, ranking = pools[int(query)], rankings[int(query)]
                where = spots[pools.cuts[query] : pools.cuts[query + 1]]
                turned = self.headings[pool.rows] if self.facing else None
                same = same_answer(int(ranking.order[0]), where, turned)
                raw[query] = self.confidence(pool, ranking, where, same)
        if self.calibration is not None:
            cosines = np.append(pools.cosines, np.float32(0))  # of an empty pool, anything
            raw = self.calibration(raw, cosines[around.best])
        return np.where(held, raw, 0).astype(np.float32)

    def _checked(self, descriptors: Floats, k: int) -> Floats:
        if k < 1:
            raise SettingError(f"k={k} asks for no hit; use 1 or more")
        queries = np.ascontiguousarray(descriptors, np.float32)
        check_queries(queries, self.index, self.ranking)
        return queries


@dataclass(frozen=True)
class Asked:
    """Queries answered from their files: hits, the rows that could be read, and the rest."""

    hits: Hits
    rows: Rows
    skipped: tuple[Skipped, ...]


def ask_photos(
    engine: Search, paths: Sequence[str], k: int = 20, *, progress: Progress | None = None
) -> Asked:
    """Answer photo files one by one, so that each stage's time is what one query costs."""
    if engine.describer is None:
        raise SettingError("this engine has no describer; ask it with descriptors: search()")
    parts: list[Hits] = []
    rows: list[int] = []
    skipped: list[Skipped] = []
    for row, path in enumerate(paths):
        described = engine.describer.describe([path])
        skipped += described.skipped
        if len(described.rows):
            parts.append(engine.search(described.descriptors, k, pictures=[path]))
            spent = described.decode_ms + described.network_ms
            parts[-1].elapsed_ms["extract"] = np.array([spent])
            rows.append(row)
        if progress:
            progress(len(rows) + len(skipped), len(paths))
    found = join_hits(parts)
    return Asked(found, np.array(rows, dtype=np.int64), tuple(skipped))
