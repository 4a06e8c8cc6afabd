"""The frozen trunk's output, computed once, kept on disk, never stale.

A file's name tells everything its maps depend on: a digest of the trunk's weights and the size,
one of the photo files, then the view and its seed.  Change one and another file is made.  Photos
as they are (the plain view) are found in the cache of any set that holds them all, so the splits
of one city share one pass.

    V views · N photos · B batch · D channels · h, w cells of the feature map
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.arrays import Bools, Ints
from evenplace.describe.decoding import load_batches
from evenplace.describe.describer import Described, Progress
from evenplace.describe.torch_engine import carry
from evenplace.errors import PhotoError, RunError
from evenplace.networks.fingerprint import digest_weights
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.files import only_writer, stamp_file, write_json
from evenplace.photos.table import Skipped
from evenplace.training.augment import Augmentation, augmented

_BATCH = 8
_CHUNK = 64
_USUAL = Augmentation()
_KEEP = 1024  # photos between two notes of how far a view has come


@dataclass(frozen=True)
class ViewSettings:
    """Which views of each photo are kept.  View 0 is the photo as it is."""

    count: int = 1
    seed: int = 0
    how: Augmentation | None = _USUAL  # None: all of them are the photo as it is

    def name(self, view: int) -> str:
        """Tell one view's file from another's; the plain photo is the same under all settings."""
        return f"{self.how.name()}-{self.seed}-{view}" if view and self.how else "plain"


@dataclass(frozen=True)
class TrunkCache:
    """Maps of every view of every readable photo, memory-mapped."""

    maps: tuple[NDArray[np.float16], ...]  # V of (N, D, h, w)
    readable: Bools  # (N,)
    skipped: tuple[Skipped, ...]
    plain_rows: Ints  # (N,) where each photo is in maps[0], which may hold more

    def batch(self, rows: Ints, views: Ints) -> Tensor:
        """The maps of photo `rows[i]` seen through view `views[i]`.  -> (B, D, h, w)."""
        at = np.where(views == 0, self.plain_rows[rows], rows)
        chosen = np.stack([self.maps[view][row] for row, view in zip(at, views, strict=True)])
        return torch.from_numpy(chosen).float().contiguous(memory_format=torch.channels_last)

    def plain(self, rows: Ints) -> Tensor:
        """The maps of photos as they are, without any crop."""
        return self.batch(rows, np.zeros(len(rows), dtype=np.int64))


def cache_trunk(
    network: PlaceNetwork,
    paths: Sequence[str],
    views: ViewSettings,
    folder: Path,
    progress: Progress | None = None,
) -> TrunkCache:
    """Open the cache of these photos under this trunk, running the trunk where it is missing.

    An interrupted run goes on within a thousand photos of where it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trunk, stamps = _digest_trunk(network), [stamp_file(path) for path in paths]
    listed = "\n".join(stamps)
    key = f"{trunk}-{hashlib.sha256(listed.encode()).hexdigest()[:16]}"
    files = [folder / f"{key}-{views.name(view)}.npy" for view in range(views.count)]
    rows = np.arange(len(paths))
    if not files[0].exists() and (larger := _find_larger(folder, trunk, stamps)):
        files[0], rows = larger
    skipped: dict[str, str] = {}
    for view, file in enumerate(files):
        if not file.exists():
            with only_writer(folder / ".lock", RunError, wait=True):
                if not file.exists():  # another run that shares the folder may have made it
                    _run_view(network, paths, views, view, file, progress)
            if view == 0:
                file.with_suffix(".photos").write_text(listed)
        skipped |= json.loads(file.with_suffix(".json").read_text())
    maps = tuple(np.load(file, mmap_mode="r") for file in files)
    left_out = tuple(Skipped(path, skipped[path]) for path in paths if path in skipped)
    readable = np.array([path not in skipped for path in paths], bool)
    return TrunkCache(maps, readable, left_out, rows)


def describe_cached(
    network: PlaceNetwork, paths: Sequence[str], folder: Path, progress: Progress | None = None
) -> Described:
    """Descriptors from the trunk's output, running the trunk only over photos it does not have."""
    cache = cache_trunk(network, paths, ViewSettings(), folder, progress)
    rows = np.flatnonzero(cache.readable)
    found = [np.empty((0, network.dim), np.float32)]
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), _CHUNK):
            maps = cache.plain(rows[start : start + _CHUNK]).to(network.device)
            found.append(network.describe(maps).cpu().numpy())
    return Described(np.concatenate(found), rows, cache.skipped, (network.dim,))


def holds_trunk(network: PlaceNetwork, paths: Sequence[str], folder: Path) -> bool:
    """Whether a cache here has these photos, as they are, under this trunk."""
    return bool(_find_larger(folder, _digest_trunk(network), [stamp_file(path) for path in paths]))


def _find_larger(folder: Path, trunk: str, stamps: list[str]) -> tuple[Path, Ints] | None:
    """A plain view of more photos that has these, and where in it each of them is."""
    for listed in sorted(folder.glob(f"{trunk}-*-plain.photos")):
        place = {stamp: row for row, stamp in enumerate(listed.read_text().split("\n"))}
        rows = [place.get(stamp, -1) for stamp in stamps]
        if min(rows, default=-1) >= 0:
            return listed.with_suffix(".npy"), np.array(rows, np.int64)
    return None


def _run_view(
    network: PlaceNetwork,
    paths: Sequence[str],
    views: ViewSettings,
    view: int,
    file: Path,
    progress: Progress | None,
) -> None:
    """Write one view to a partial file, which goes on where it was, and rename it when whole."""
    work = _PartialView(file, len(paths), views.seed * 1009 + view)
    rows = range(work.done, len(paths))
    for batch in load_batches(paths, network.image_size, batch=_BATCH, rows=rows):
        work.skipped |= {item.path: item.reason for item in batch.skipped}
        if batch.rows:
            pixels = carry(torch.from_numpy(batch.pixels), network.anchor)
            if view and views.how:
                pixels = augmented(pixels, work.generator, views.how)
            work.put(batch.rows, network.backbone.trunk(pixels).half().cpu().numpy())
        work.advance(len(batch.rows) + len(batch.skipped))
        if progress:
            progress(view * len(paths) + work.done, views.count * len(paths))
    work.finish()


class _PartialView:
    """A view on its way: the maps so far, how many photos they are of, and the dice."""

    def __init__(self, file: Path, photos: int, seed: int) -> None:
        self.file, self.photos, self.done, self.kept = file, photos, 0, 0
        self.partial, self.note = file.with_suffix(".partial"), file.with_suffix(".note")
        self.generator = torch.Generator().manual_seed(seed)
        self.skipped: dict[str, str] = {}
        self.maps: NDArray[np.float16] | None = None
        if self.note.exists() and self.partial.exists():
            note = json.loads(self.note.read_text())
            self.done = self.kept = note["done"]
            self.skipped = note["skipped"]
            state = np.frombuffer(bytes.fromhex(note["dice"]), np.uint8).copy()
            self.generator.set_state(torch.from_numpy(state))
            self.maps = np.lib.format.open_memmap(self.partial, "r+")

    def put(self, rows: list[int], maps: NDArray[np.float16]) -> None:
        if self.maps is None:
            shape = (self.photos, *maps.shape[1:])
            self.maps = np.lib.format.open_memmap(self.partial, "w+", np.float16, shape)
        self.maps[rows] = maps

    def advance(self, photos: int) -> None:
        """Count photos; now and then make sure that what is counted is on disk."""
        self.done += photos
        if self.done - self.kept < _KEEP or not isinstance(self.maps, np.memmap):
            return
        self.maps.flush()
        dice = self.generator.get_state().numpy().tobytes().hex()
        note = {"done": self.done, "skipped": self.skipped, "dice": dice}
        write_json(self.note, note)
        self.kept = self.done

    def finish(self) -> None:
        if not isinstance(self.maps, np.memmap):
            why = next(iter(self.skipped.values()), "there are no photos")
            raise PhotoError(f"none of the {self.photos} photos could be decoded: {why}")
        self.maps.flush()
        self.file.with_suffix(".json").write_text(json.dumps(self.skipped))
        self.partial.replace(self.file)
        self.note.unlink(missing_ok=True)


def _digest_trunk(network: PlaceNetwork) -> str:
    frozen = [stage.state_dict() for stage in network.backbone.stages[: network.backbone.cut]]
    weights = ((n, t.cpu().contiguous().numpy()) for stage in frozen for n, t in stage.items())
    return digest_weights(weights, f"{network.image_size}|{network.backbone.spec}")
