"""Updates: what is added is found, what is removed is not, and nothing else changes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, PhotoError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, open_index, verify_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.manifest import writing
from evenplace.retrieval.rerank import Fused
from evenplace.retrieval.update import (
    add_photos,
    remove_photos,
    renew_prototypes,
    replace_photos,
)
from tests.drawn import EAST, NORTH, ZONE, unit

Floats = NDArray[np.float32]


def named(spots: NDArray[np.float64], names: list[str], zone: int = ZONE) -> Photos:
    return Photos.from_arrays(
        east=EAST + spots[:, 0], north=NORTH + spots[:, 1], zone=zone, path=names
    )


def drawn(count: int, seed: int) -> tuple[Floats, Photos]:
    """Photos in a square of 300 m, alike within a cell."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform(0, 300, (count, 2))
    cells = (spots // 20).astype(int)
    rows = np.stack([np.random.default_rng(tuple(cell)).normal(size=24) for cell in cells])
    rows += 0.5 * rng.normal(size=rows.shape)
    vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors.astype(np.float32), named(spots, [f"{seed}-{i}.jpg" for i in range(count)])


def queries(count: int = 30) -> Floats:
    return unit(count, 24, 99)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vectors, photos = drawn(120, 1)
    index_descriptors(vectors, photos, Grid(20).partition(photos), tmp_path / "i", scale=30.0)
    return tmp_path / "i"


def answers(index: Index, **settings: object) -> list[list[str]]:
    engine = Search(index, **settings)  # type: ignore[arg-type]
    found = engine.search(queries(), 8)
    return [[hit.path for hit in engine.hits(found, q)] for q in range(len(found))]


def rebuilt(parts: list[tuple[Floats, Photos]], gone: set[str], out: Path) -> Index:
    """The same photos indexed from scratch."""
    from evenplace.photos.table import join_photos

    photos, vectors = join_photos([p for _, p in parts]), np.concatenate([v for v, _ in parts])
    keep = np.array([path not in gone for path in photos.paths])
    photos, vectors = photos[keep], vectors[keep]
    return index_descriptors(vectors, photos, Grid(20).partition(photos), out, scale=30.0)


@pytest.mark.parametrize("settings", [{}, {"exact": True}, {"rerank": "kde"}, {"rerank": "cfd"}])
def test_an_updated_index_answers_like_one_built_from_scratch(
    folder: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    more, again = drawn(60, 2), drawn(120, 1)
    add_photos(folder, *more)
    gone = {f"1-{i}.jpg" for i in range(0, 120, 3)} | {"2-5.jpg"}
    updated = remove_photos(folder, gone)
    scratch = rebuilt([again, more], gone, tmp_path / "scratch")
    assert len(updated) == len(scratch) == 120 + 60 - len(gone)
    expected = answers(scratch, shortlist=10_000, **settings)
    assert answers(updated, shortlist=10_000, **settings) == expected


def test_an_update_gives_the_files_of_a_fresh_index(folder: Path, tmp_path: Path) -> None:
    more = drawn(60, 2)
    updated = add_photos(folder, *more)
    scratch = rebuilt([drawn(120, 1), more], set(), tmp_path / "scratch")
    assert updated.photos.paths == scratch.photos.paths
    np.testing.assert_array_equal(updated.descriptors, scratch.descriptors)
    np.testing.assert_array_equal(updated.starts, scratch.starts)
    np.testing.assert_array_equal(updated.labels, scratch.labels)
    np.testing.assert_array_equal(updated.places.ids, scratch.places.ids)
    np.testing.assert_allclose(updated.prototypes, scratch.prototypes, atol=1e-3)
    renewed = np.isin(updated.labels, updated.places.locate(more[1]))
    np.testing.assert_allclose(updated.impostors[renewed], scratch.impostors[renewed], atol=2e-3)


def test_many_updates_leave_one_generation_and_little_that_is_gone(folder: Path) -> None:
    kept = {f"1-{number}.jpg" for number in range(120)}
    vectors = dict(zip(drawn(120, 1)[1].paths, drawn(120, 1)[0], strict=True))
    for seed in range(100, 106):
        more, photos = drawn(20, seed)
        add_photos(folder, more, photos)
        index = remove_photos(folder, photos.paths[:10])
        kept |= set(photos.paths[10:])
        vectors |= dict(zip(photos.paths, more, strict=True))
        rows = (folder / index.manifest.part / "rows-descriptors.npy").stat().st_size // 48
        assert len(index) <= rows <= 2 * len(index) + 3
        rows = (folder / index.manifest.part / "rows-descriptors.npy").stat().st_size // 48
        assert len(index) <= rows <= 2 * len(index) + 3
    assert set(index.photos.paths) == kept
    expected = np.stack([vectors[path] for path in index.photos.paths]).astype(np.float16)
    np.testing.assert_array_equal(index.descriptors, expected)
    here = {path.parent.name + "/" + path.name for path in folder.glob("*/*")}
    assert here == set(index.manifest.files), "nothing is left that no manifest names"
    assert {path.parent.name for path in folder.glob("*/*")} == {"000013"}
    verify_index(folder)


def test_what_else_is_kept_of_a_photo_follows_it(folder: Path, tmp_path: Path) -> None:
    vectors, photos = drawn(30, 1)
    marks = np.arange(60, dtype=np.uint8).reshape(30, 2)
    index_descriptors(
        vectors, photos, Grid(20).partition(photos), tmp_path / "e", extra={"marks": marks}
    )
    more, others = drawn(5, 2)
    add_photos(tmp_path / "e", more, others, extra={"marks": np.full((5, 2), 200, np.uint8)})
    index = remove_photos(tmp_path / "e", ["1-3.jpg"])
    for path, mark in zip(index.photos.paths, index.columns["marks"][:], strict=True):
        number = int(path[2:-4])
        assert mark.tolist() == ([2 * number, 2 * number + 1] if path[0] == "1" else [200, 200])
    with pytest.raises(IndexFileError, match="keeps descriptors, marks of each photo"):
        add_photos(tmp_path / "e", *drawn(3, 4))


def test_photos_that_came_twice_bring_what_else_is_kept_twice(tmp_path: Path) -> None:
    vectors, photos = drawn(30, 1)
    rows = np.append(np.arange(30), [4, 7])
    marks = np.arange(30, dtype=np.uint8)[rows, None]
    places = Grid(20).partition(photos[rows])
    blocks = (part for part in np.split(marks, 4))  # as points of photos come
    index = index_descriptors(
        vectors[rows], photos[rows], places, tmp_path / "t", extra={"marks": blocks}
    )
    assert len(index) == 30
    kept = dict(zip(index.photos.paths, index.columns["marks"][:].ravel().tolist(), strict=True))
    assert kept == {path: number for number, path in enumerate(photos.paths)}


def test_a_new_cell_is_a_place_at_once(folder: Path) -> None:
    vector = unit(1, 24, 7)
    updated = add_photos(folder, vector, named(np.array([[-510.0, 410.0]]), ["new.jpg"]))
    engine = Search(updated, shortlist=3)
    hit = engine.hits(engine.search(vector, 1), 0)[0]
    assert hit.path == "new.jpg"
    assert updated.places.centres[hit.place].tolist() == [EAST - 510, NORTH + 410]
    assert updated.sizes[hit.place] == 1
    assert (updated.places.extra["means"] == 1).all(), "its prototype is a mean, and counted so"
    np.testing.assert_allclose(updated.prototypes[hit.place], vector[0], atol=1e-3)
    where = updated.places.locate(named(np.array([[-510.0, 410.0], [5.0, 5.0]]), ["a", "b"]))
    assert where[0] == hit.place
    np.testing.assert_array_equal(updated.labels, updated.places.locate(updated.photos))


def test_a_replaced_photo_is_found_by_its_new_looks_only(folder: Path) -> None:
    before = open_index(folder)
    path = before.photos.paths[17]
    vector = unit(1, 24, 8)
    updated = replace_photos(folder, vector, named(np.array([[10.0, 10.0]]), [path]))
    assert len(updated) == len(before)
    assert updated.photos.paths.count(path) == 1
    found = Search(updated, exact=True).search(vector, 1)
    assert updated.paths(found.rows[0]) == [path]
    assert found.distances[0, 0] < 0.05


def test_readers_keep_their_generation(folder: Path) -> None:
    reader = Search(open_index(folder), shortlist=10_000)
    before = reader.search(queries(), 8)
    add_photos(folder, *drawn(60, 2))
    remove_photos(folder, [f"1-{i}.jpg" for i in range(50)])
    after = reader.search(queries(), 8)
    np.testing.assert_array_equal(before.rows, after.rows)
    newer = reader.reopen()
    assert newer is not reader
    assert len(newer.index) == 130
    assert newer.reopen() is newer


def test_a_rule_may_be_chosen_for_an_index_that_was_replaced(folder: Path, tmp_path: Path) -> None:
    vectors, photos = drawn(120, 1)
    places = Grid(20).partition(photos)
    index = index_descriptors(vectors, photos, places, tmp_path / "s", spectra=["paper"])
    expected = answers(index, rerank="cfd")
    remove_photos(tmp_path / "s", photos.paths[:100])
    remove_photos(tmp_path / "s", photos.paths[100:119])
    assert answers(index, rerank="cfd") == expected


def test_opening_and_verifying_beside_a_writer_never_fails(folder: Path) -> None:
    """A reader takes one generation whole, or the next."""
    stop, seen, wrong = threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            try:
                index = open_index(folder)
                seen.add(verify_index(folder).generation)
                assert len(index) == len(index.impostors) == len(index.descriptors)
                assert index.starts[-1] <= len(index)
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for seed in range(200, 215):
        vectors, photos = drawn(10, seed)
        add_photos(folder, vectors, photos)
        remove_photos(folder, photos.paths)
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(seen) > 5


def test_a_reopened_engine_does_not_change_the_rule_of_the_old_one(folder: Path) -> None:
    reader = Search(open_index(folder), rerank=Fused(), shortlist=10_000)
    before = reader.search(queries(), 8)
    remove_photos(folder, [f"1-{i}.jpg" for i in range(60)])
    newer = reader.reopen()
    assert newer.rule is not reader.rule
    after = reader.search(queries(), 8)
    np.testing.assert_array_equal(before.distances, after.distances)


def test_a_place_can_be_emptied_and_filled_again(folder: Path) -> None:
    index = open_index(folder)
    place = int(index.sizes.argmax())
    rows, _ = index.rows_of(np.array([place]))
    emptied = remove_photos(folder, index.paths(rows))
    assert emptied.sizes[place] == 0
    assert place not in Search(emptied, shortlist=10_000).places.reachable
    filled = add_photos(folder, index.vectors(rows[:1]), index.photos[rows[:1]])
    assert filled.sizes[place] == 1
    assert place in Search(filled, shortlist=10_000).places.reachable


def test_mistakes_change_nothing(folder: Path) -> None:
    vectors, photos = drawn(120, 1)
    with pytest.raises(PhotoError, match=r"1-0\.jpg is in the index already"):
        add_photos(folder, vectors[:3], photos[:3])
    with pytest.raises(PhotoError, match=r"nobody\.jpg is not in"):
        remove_photos(folder, ["nobody.jpg"])
    with pytest.raises(IndexFileError, match="written by model foreign"):
        add_photos(folder, *drawn(3, 5), model="another")
    with pytest.raises(IndexFileError, match="24 numbers"):
        add_photos(folder, unit(3, 8, 0), drawn(3, 5)[1])
    with pytest.raises(IndexFileError, match="unit length"):
        add_photos(folder, np.full((3, 24), np.nan, np.float32), drawn(3, 5)[1])
    with pytest.raises(PhotoError, match="occurs twice"):
        add_photos(folder, unit(2, 24, 0), named(np.zeros((2, 2)), ["a.jpg", "a.jpg"]))
    assert open_index(folder).manifest.generation == 1
    verify_index(folder)


def test_two_writers_are_refused(folder: Path) -> None:
    with writing(folder), pytest.raises(IndexFileError, match=rf"process {os.getpid()}"):
        add_photos(folder, *drawn(3, 5))
    assert len(add_photos(folder, *drawn(3, 5))) == 123


def _update_for_ever(folder: str, ready: str) -> None:
    Path(ready).touch()
    for seed in range(10, 10_000):
        vectors, photos = drawn(40, seed)
        add_photos(folder, vectors, photos)
        remove_photos(folder, photos.paths)


def test_a_killed_writer_leaves_the_last_good_index(folder: Path, tmp_path: Path) -> None:
    """kill -9 at twelve moments of updates."""
    context = multiprocessing.get_context("fork")
    for moment in range(12):
        ready = tmp_path / f"ready-{moment}"
        writer = context.Process(target=_update_for_ever, args=(str(folder), str(ready)))
        writer.start()
        while not ready.exists():
            time.sleep(0.001)
        time.sleep(0.011 * moment + 0.004)
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
        verify_index(folder)
        index = open_index(folder)
        assert {f"1-{i}.jpg" for i in range(120)} <= set(index.photos.paths)
        assert len(index) in (120, 160)
        assert all(len(hits) == 8 for hits in answers(index, shortlist=10_000))
        extra = [path for path in index.photos.paths if not path.startswith("1-")]
        if extra:
            remove_photos(folder, extra)  # the next writer starts from what it finds


def _build_and_die(folder: str, moment: int) -> None:
    """Build an index and kill -9 this very process when it touches the folder's files again.

    moment: how many times it may.  Python reports every open, rename, removal and new folder.
    """
    left = [moment]

    def touched(event: str, args: tuple[object, ...]) -> None:
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "shutil.rmtree"):
            left[0] -= str(args[0]).startswith(folder)
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    vectors, photos = drawn(200, 1)
    places = Grid(20).partition(photos)
    sys.addaudithook(touched)
    index_descriptors(vectors, photos, places, folder)
    os._exit(0)


def test_a_build_killed_at_any_moment_leaves_no_index_or_a_whole_one(tmp_path: Path) -> None:
    """kill -9 at every single touch of the disk, of a first build and of one over it."""
    context = multiprocessing.get_context("fork")
    folder, moments, seen = tmp_path / "i", 0, []
    while True:
        builder = context.Process(target=_build_and_die, args=(str(folder), moments))
        builder.start()
        builder.join()
        if (folder / "manifest.json").exists():
            verify_index(folder)
            assert len(open_index(folder)) == 200
            seen.append(open_index(folder).manifest.generation)
        else:
            seen.append(0)
        if builder.exitcode == 0:
            break
        assert builder.exitcode == -signal.SIGKILL
        moments += 1
    assert moments > 20, "the build must touch its files, or nothing was tested"
    assert seen[0] == 0, "killed before its manifest, a build leaves no index"
    assert seen == sorted(seen)
    assert seen[-1] >= 2, "killed after its manifest, a build has replaced the old index"


@pytest.mark.slow
def test_no_space_left_is_a_sentence(folder: Path) -> None:
    """A file-size limit stands for the full disk: a write fails half way."""
    script = textwrap.dedent("""
        import resource, sys
        from tests.retrieval.test_update import drawn
        from evenplace.errors import IndexFileError
        from evenplace.retrieval.update import add_photos
        vectors, photos = drawn(4000, 3)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            add_photos(sys.argv[1], vectors, photos)
        except IndexFileError as error:
            print(error)
    """)
    said = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True,
    )  # fmt: skip
    assert "last good index is untouched" in said.stdout
    assert "Traceback" not in said.stderr
    verify_index(folder)
    assert len(open_index(folder)) == 120
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["000001"]


def test_a_read_only_disk_is_read_and_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(
        IndexFileError, match="untouched: writing there is not allowed; choose another"
    ):
        add_photos(folder, *drawn(3, 5))
    assert all(len(hits) == 8 for hits in answers(open_index(folder)))


def test_one_file_is_one_photo_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vectors, photos = drawn(4, 1)
    spots = photos.positions - [EAST, NORTH]
    again = named(spots, ["a.jpg", "./a.jpg", str(tmp_path / "b.jpg"), "x/../b.jpg"])
    index = index_descriptors(vectors, again, Grid(20).partition(again), tmp_path / "i")
    assert sorted(index.photos.paths) == [str(tmp_path / "b.jpg"), "a.jpg"]
    assert [one.path for one in index.photos.skipped] == ["./a.jpg", "x/../b.jpg"]
    rows = index.descriptors[np.argsort(index.photos.paths)]
    np.testing.assert_allclose(rows, vectors[[2, 0]], atol=1e-3)
    with pytest.raises(PhotoError, match="already"):
        add_photos(tmp_path / "i", vectors[:1], named(spots[:1], [str(tmp_path / "a.jpg")]))
    assert remove_photos(tmp_path / "i", ["b.jpg"]).photos.paths == ["a.jpg"]


def test_other_prototypes_are_a_generation_that_copies_no_rows(folder: Path) -> None:
    before = open_index(folder)
    told, rows = answers(before), before.columns["descriptors"].path.stat().st_ino
    renewed = renew_prototypes(folder, "low-visit-bias")
    assert renewed.manifest.prototypes == "low-visit-bias"
    assert renewed.manifest.generation == before.manifest.generation + 1
    assert renewed.columns["descriptors"].path.stat().st_ino == rows
    assert np.abs(renewed.prototypes - before.prototypes).max() > 1e-3
    assert answers(before) == told  # whoever has it open keeps it
    verify_index(folder)
    built = index_descriptors(
        *drawn(120, 1), before.places, folder.parent / "built", learn="low-visit-bias"
    )
    np.testing.assert_allclose(built.prototypes, renewed.prototypes, atol=2e-3)
    assert built.scale == renewed.scale
    grown = add_photos(folder, unit(1, 24, 7), named(np.array([[-510.0, 410.0]]), ["new.jpg"]))
    assert len(grown.places) == len(renewed.places) + 1
    known = {row.tobytes() for row in renewed.prototypes}
    assert known < {row.tobytes() for row in grown.prototypes}  # and the new place's mean
    back = renew_prototypes(folder, "means")
    assert back.manifest.prototypes == "means"
    old = [back.places.locate(before.photos)[0], before.labels[0]]
    np.testing.assert_allclose(back.prototypes[old[0]], before.prototypes[old[1]], atol=1e-3)


def test_an_index_that_grew_says_the_bytes_it_has(folder: Path) -> None:
    before = open_index(folder).bytes
    grown = add_photos(folder, *drawn(60, 2))
    there = sum((folder / name).stat().st_size for name in grown.manifest.files)
    assert grown.bytes == there > before
