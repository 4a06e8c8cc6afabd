"""The index being served, and its replacement by a newer one while questions are answered.

A question keeps the index it was let in with, so a reload fails none.  The index before
the last is kept for the photos that pages already show.

N photos · C places · V corners
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.arrays import Doubles, Ints
from evenplace.errors import EvenPlaceError, IndexFileError, RunError
from evenplace.photos.geodesy import degrees
from evenplace.places.tiers import TIERS
from evenplace.report.map import pack
from evenplace.retrieval import Search
from evenplace.retrieval.answer_json import index_name
from evenplace.run.run import Run
from evenplace.serve.schema import Tier
from evenplace.serve.settings import Settings

log = logging.getLogger("evenplace.serve")


@dataclass(frozen=True)
class ServedIndex:
    """An engine and a name for what it answers from.  What is derived is made once."""

    engine: Search
    version: str  # 8 hex digits
    photos: Path = Path()  # where relative paths start

    @cached_property
    def sizes(self) -> Ints:
        """Database photos of each place: (C,)."""
        return np.asarray(self.engine.index.sizes)

    @cached_property
    def outlines(self) -> Doubles:
        """(C, V, 2)."""
        return self.engine.index.places.outlines

    @cached_property
    def packed(self) -> dict[str, Any]:
        """Every place that has photos, as arrays a page decodes at once.

        Corners in metres from `origin`, four bytes each: exact to a centimetre within 100 km; in
        degrees too where the database is tied to the globe.
        """
        index, shown = self.engine.index, np.flatnonzero(self.sizes)
        corners = self.outlines[shown]
        origin = corners.min(axis=(0, 1)) if len(shown) else np.zeros(2)
        zones = index.places.zones[shown]
        tied = len(shown) and zones.all()
        globe = degrees(corners, zones[:, None]) if tied else np.empty(0)
        return {
            "index": self.version,
            "origin": origin.tolist(),
            "sides": int(corners.shape[1]) if len(shown) else 4,
            "places": pack(shown, "<u4"),
            "corners": pack(corners - origin, "<f4"),
            "degrees": pack(globe, "<f8"),
            "tiers": pack(index.places.tiers[shown], "<u1"),
            "photos": pack(self.sizes[shown], "<u4"),
        }

    def path_of(self, row: int) -> str:
        return str(self.photos / self.engine.index.paths(np.array([row]))[0])

    def ranked(self, tier: Tier | None = None) -> Ints:
        """Places that have photos, most photographed first."""
        shown = self.sizes > 0
        if tier is not None:
            shown = shown & (self.engine.index.places.tiers == TIERS.index(tier))
        places = np.flatnonzero(shown)
        return places[np.argsort(-self.sizes[places], kind="stable")]


class IndexWatch:
    """Holds the index that questions are answered from, and opens a newer one."""

    def __init__(
        self, settings: Settings, on_reload: Callable[[str], None] = lambda outcome: None
    ) -> None:
        self._settings, self._on_reload = settings, on_reload
        self._lock = threading.Lock()
        self.current = self._open()
        self._seen = self.current.version  # of the newest index that was opened, or refused
        self._previous: ServedIndex | None = None
        self.problem = ""  # why the newest index on disk could not be opened

    def find(self, version: str) -> ServedIndex | None:
        """The index of that name, if it is the current one or the one before."""
        for served in (self.current, self._previous):
            if served is not None and served.version == version:
                return served
        return None

    def refresh(self) -> bool:
        """Open the index on disk if it is another one; keep the current one if it is broken."""
        with self._lock:
            version = self._version()
            if version in ("", self._seen):
                return False
            try:
                fresh = self._open()
            except (EvenPlaceError, OSError, ValueError) as error:
                self._failed(version, error)
                return False
            self._seen, self.problem = fresh.version, ""
            self._previous, self.current = self.current, fresh
        self._on_reload("opened")
        log.info("answering from index %s, %d photos", fresh.version, len(fresh.engine.index))
        return True

    async def watch(self, seconds: float) -> None:
        """Look for a new index for as long as the service runs."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.refresh)
            except Exception:
                log.exception("looking for a new index failed; still answering from the old one")

    def _failed(self, version: str, error: Exception) -> None:
        # An index being replaced is broken for a moment; say so only if it stays that way.
        if self.problem == str(error):
            self._seen = version
            self._on_reload("refused")
            log.error("the new index cannot be opened: %s; answering from the old one", error)
        self.problem = str(error)

    def _open(self) -> ServedIndex:
        """Open on a thread that ends then, and its OpenMP threads with it.

        Each thread that has run torch keeps a pool of them.  When the pools of all are more than
        the cores, OpenMP sleeps where it would spin, and describing a photo takes longer.
        """
        with ThreadPoolExecutor(1) as loader:
            return loader.submit(self._load).result()

    def _load(self) -> ServedIndex:
        version, told = self._version(), self._settings
        run = Run.open(
            told.run, device=told.device, engine=told.engine, precision=told.precision,
            batch=told.batching.photos,
        )  # fmt: skip
        engine = run.search(
            min_precision=told.min_precision, insist=told.insist, verify=told.verify
        )
        if engine.describer is None:
            raise RunError(
                f"{told.run} was made of descriptors and has no network for photos, which a "
                "service needs; index the database with one: evenplace index RUN --method NAME"
            )
        if self._version() != version:
            raise IndexFileError(f"{told.run / 'index'} changed while it was opened; wait a moment")
        served = ServedIndex(engine, version, told.photos or Path())
        if len(engine.index) and not Path(served.path_of(0)).is_file():
            log.warning(  # at once, rather than picture by picture
                "%s is not there, so pages show no photos; start where the database was indexed, "
                "or name the folder its paths start from: --photos FOLDER",
                served.path_of(0),
            )
        return served

    def _version(self) -> str:
        try:
            return index_name(self._settings.run / "index")
        except OSError:
            return ""  # opening will say what is missing
