"""A zip of photos is read like the folder that it was made of."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from evenplace.cli.options import Which
from evenplace.errors import PhotoError
from evenplace.photos import read_photos
from evenplace.photos.asked import find_asked
from tests.documents.typist import in_this_process
from tests.photos import drawn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place in range(3):
        drawn.picture(tmp_path / "trip" / drawn.sfxl_name(545010.0 + 100 * place, 4184010.0))
    return tmp_path / "trip"


@pytest.fixture
def archive(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "zip", folder))


def names(paths: list[str] | tuple[str, ...]) -> list[str]:
    return sorted(Path(path).name for path in paths)


def test_photos_and_positions_are_those_of_the_folder(folder: Path, archive: Path) -> None:
    plain, zipped = read_photos(folder), read_photos(archive)
    assert names(zipped.paths) == names(plain.paths)
    assert sorted(zipped.positions.tolist()) == sorted(plain.positions.tolist())
    assert all(Path(path).is_file() for path in zipped.paths)
    assert names(find_asked([archive]).paths) == names(plain.paths)


def test_the_command_line_takes_it_too(archive: Path) -> None:
    said, ended = in_this_process(["evenplace", "photos", "check", str(archive)])
    assert ended == 0, said
    assert "layout sf-xl: 3 photos at 3 different positions" in said
    assert len(Which().read(archive)) == 3  # as train, index and evaluate read


def test_one_that_a_file_manager_made_of_a_folder_is_read_like_the_folder(folder: Path) -> None:
    spots = [f"{one.name},{52.5 + n / 1e4},13.2" for n, one in enumerate(folder.iterdir())]
    (folder / "photos.csv").write_text("\n".join(["file,lat,lon", *spots]))
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as files:
        for one in folder.iterdir():
            files.write(one, f"My trip/{one.name}")
        files.writestr("__MACOSX/My trip/plain.jpg", b"what macOS keeps beside")
    photos = read_photos(archive)
    assert photos.zones == [33], "its table is read, not the names of its photos"
    assert len(photos) == 3
    assert not photos.skipped
    assert len(find_asked([archive]).paths) == 3


def test_it_is_unpacked_once_and_again_when_it_changes(folder: Path, archive: Path) -> None:
    first = Path(read_photos(archive).paths[0]).stat().st_ino
    assert Path(read_photos(archive).paths[0]).stat().st_ino == first
    drawn.picture(folder / drawn.sfxl_name(546010.0, 4184010.0))
    shutil.make_archive(str(folder), "zip", folder)
    assert len(read_photos(archive)) == 4
    os.utime(archive, (1e9, 1e9))
    note = archive.with_suffix(".unzipped") / "a.xmp"
    note.touch()
    assert len(read_photos(archive)) == 4
    assert note.exists(), "files are the same, whenever they were packed"


def test_an_older_archive_of_the_same_name_is_another(folder: Path, archive: Path) -> None:
    read_photos(archive)
    next(folder.iterdir()).unlink()
    shutil.make_archive(str(folder), "zip", folder)
    os.utime(archive, (1e9, 1e9))
    assert len(read_photos(archive)) == 2


def test_a_folder_that_is_somebody_else_s_is_left_alone(archive: Path) -> None:
    own = archive.with_suffix(".unzipped")
    own.mkdir()
    (own / "diary.txt").write_text("mine")
    os.utime(own, (0, 0))
    with pytest.raises(PhotoError, match="is in the way of"):
        read_photos(archive)
    assert (own / "diary.txt").read_text() == "mine"


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_a_damaged_one_leaves_a_sentence_and_nothing_else(archive: Path, damage: str) -> None:
    data = bytearray(archive.read_bytes())
    if damage == "flipped":
        data[len(data) // 3] ^= 0xFF
    damaged = {"cut": bytes(data[: len(data) // 2]), "text": b"no zip", "flipped": bytes(data)}
    archive.write_bytes(damaged[damage])
    with pytest.raises(PhotoError, match="cannot be unpacked"):
        read_photos(archive)
    assert sorted(one.name for one in archive.parent.iterdir()) == ["trip", "trip.zip"]


def test_what_climbs_out_of_the_archive_stays_inside(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "sly.zip", "w") as files:
        files.writestr("../../outside.txt", "no")
        picture = drawn.picture(tmp_path / "a" / drawn.sfxl_name(545010.0, 4184010.0))
        files.write(picture, picture.name)
    assert len(read_photos(tmp_path / "sly.zip")) == 1
    assert not (tmp_path.parent / "outside.txt").exists()
    assert not (tmp_path / "outside.txt").exists()


def test_one_that_the_disk_cannot_hold_is_refused(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(PhotoError, match="make room"):
        read_photos(archive)
