"""Positions written back into photos, read by others, and taken back."""

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from evenplace.errors import PhotoError
from evenplace.photos.files import whole_file
from evenplace.photos.geotags import exif_of, place_exif, with_exif, xmp
from evenplace.photos.layouts.exif import read_shot
from tests.cli.test_many import fill_the_disk, here, rows_of, town, typed

__all__ = ["here", "town"]  # fixtures
ASK = "locate run trip --min-precision 0.4 --out a.csv"


def answered() -> dict[str, tuple[float, float, float]]:
    return {
        Path(row["photo"]).name: (
            float(row["latitude"]), float(row["longitude"]), float(row["uncertainty_m"])
        )
        for row in rows_of("a.csv")
        if row["status"] == "answered"
    }  # fmt: skip


def bytes_of(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def gps_of(path: Path) -> dict[int, object]:
    with Image.open(path) as image:
        return dict(image.getexif().get_ifd(ExifTags.IFD.GPSInfo))


def test_copies_carry_what_was_answered_and_nothing_else(here: Path) -> None:
    before = bytes_of("trip")
    said = typed(f"{ASK} --write-exif")
    wanted = answered()
    assert 0 < len(wanted) < 12, "some are answered, and some are not"
    assert f"positions written: {len(wanted)}; listed in located/written.jsonl" in said
    assert f"left as they were: {12 - len(wanted)} were not answered" in said
    assert bytes_of("trip") == before
    copies = {path.name: path for path in Path("located").glob("*.jpg")}
    assert set(copies) == set(wanted)
    for name, (latitude, longitude, metres) in wanted.items():
        shot, gps = read_shot(str(copies[name])), gps_of(copies[name])
        assert shot.latitude == pytest.approx(latitude, abs=1e-7)
        assert shot.longitude == pytest.approx(longitude, abs=1e-7)
        assert float(gps[31]) == pytest.approx(metres, abs=0.06)  # type: ignore[arg-type]
        mine, theirs = (np.asarray(Image.open(one)) for one in (copies[name], f"trip/{name}"))
        assert np.array_equal(mine, theirs)


def test_undo_takes_copies_back_unless_they_were_changed(here: Path) -> None:
    typed(f"{ASK} --write-exif")
    copies = sorted(Path("located").glob("*.jpg"))
    copies[0].write_bytes(copies[0].read_bytes() + b"mine")
    said = typed("locate run --undo located/written.jsonl", code=2)
    assert f"undone: {len(copies) - 1}" in said
    assert "1 files were changed after they were written" in said
    assert list(Path("located").glob("*.jpg")) == copies[:1]


def test_a_copy_of_before_is_replaced_only_when_told_and_undone_to_what_it_was(here: Path) -> None:
    typed(f"{ASK} --write-exif")
    before = bytes_of("located")
    copies = sorted(Path("located").glob("*.jpg"))
    again = "locate run trip --min-precision 0.4 --write-exif"
    assert f"{len(copies)} have a copy there already" in typed(again)
    assert bytes_of("located") == before
    placed = place_exif(exif_of(copies[0].read_bytes()), 1.0, 2.0, 3.0)
    copies[0].write_bytes(with_exif(copies[0].read_bytes(), placed))
    shutil.copy(copies[2], copies[1])  # somebody's other picture
    before = bytes_of("located")
    said = typed(f"{again} --replace")
    assert "1 have another picture of their name there already" in said
    assert copies[1].read_bytes() == before[copies[1].name]
    assert read_shot(str(copies[0])).latitude != 1.0
    typed("locate run --undo located/written-2.jsonl")
    after = bytes_of("located")
    assert {name: after[name] for name in before} == before


def test_in_place_is_undone_byte_for_byte(here: Path) -> None:
    exif = Image.Exif()
    exif[271] = "A camera"
    with Image.open("trip/img_00.jpg") as image:
        image.save("trip/img_00.jpg", exif=exif)
    before = bytes_of("trip")
    typed(f"{ASK} --write-exif --in-place")
    after = bytes_of("trip")
    assert {name for name in before if before[name] != after[name]} == set(answered())
    assert Path("written.jsonl").exists()
    typed("locate run --undo written.jsonl")
    assert bytes_of("trip") == before


def test_what_was_undone_may_be_undone_again(here: Path) -> None:
    before = bytes_of("trip")
    for words in ("--sidecar xmp", "--write-exif --in-place", "--write-exif --in-place --replace"):
        typed(f"locate run trip --min-precision 0.4 {words}")
    lists = ("written-3.jsonl", "written-2.jsonl", "written.jsonl")
    Path("written.jsonl").write_text(Path("written.jsonl").read_text() + '{"photo": "cut o')
    for listed in lists:
        assert "nothing was left" not in typed(f"locate run --undo {listed}")
        again = typed(f"locate run --undo {listed}")
        assert f"undone: 0 of {listed}; nothing was left to undo" in again
    assert bytes_of("trip") == before
    Path("notes.jsonl").write_text("buy milk")
    assert "no list of written positions" in typed("locate run --undo notes.jsonl", code=2)


def test_a_photo_that_is_written_under_two_names_is_undone_to_what_it_was(here: Path) -> None:
    shutil.move("trip", "real")
    Path("trip").mkdir()
    Path("trip/a.jpg").symlink_to(here / "real/img_00.jpg")
    Path("trip/b.jpg").symlink_to(here / "real/img_00.jpg")
    Path("real/img_00.jpg").chmod(0o640)
    before = bytes_of("real")
    typed(f"{ASK} --write-exif --in-place")
    assert Path("trip/a.jpg").is_symlink(), "a link stays one, and its photo is written"
    assert read_shot("real/img_00.jpg").latitude == pytest.approx(answered()["a.jpg"][0], abs=1e-7)
    typed("locate run --undo written.jsonl")
    assert bytes_of("real") == before
    assert Path("real/img_00.jpg").stat().st_mode & 0o777 == 0o640


def test_a_photo_that_may_not_be_written_is_left(here: Path) -> None:
    for photo in Path("trip").iterdir():
        photo.chmod(0o444)
    before = bytes_of("trip")
    said = typed(f"{ASK} --write-exif --in-place")
    assert f"{len(answered())} are read-only; change their rights, or write copies" in said
    assert bytes_of("trip") == before


def test_a_full_disk_ends_the_job_which_goes_on_later(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("evenplace.photos.files.sync", fill_the_disk)
        patch.setattr("evenplace.run.journal.whole_file", partial(whole_file, lasting=False))
        said = typed(f"{ASK} --write-exif", code=2)
    assert said.count("the disk is full") == 1
    assert {one.name for one in Path("located").iterdir()} == {"written.jsonl"}
    said = typed(f"{ASK} --write-exif")
    assert "going on after 12 photos" in said
    assert f"positions written: {len(answered())}" in said


def test_a_position_that_is_there_stays_unless_told_otherwise(here: Path) -> None:
    typed(ASK)
    name, (latitude, longitude, _) = next(iter(answered().items()))
    near = place_exif(None, latitude + 0.01, longitude, 3.0)
    own = with_exif(Path(f"trip/{name}").read_bytes(), near)
    shutil.rmtree("trip")
    Path("trip").mkdir()
    Path(f"trip/{name}").write_bytes(own)
    said = typed("locate run trip --min-precision 0.4 --write-exif --in-place")
    assert "1 have a position of their own" in said
    assert Path(f"trip/{name}").read_bytes() == own
    typed("locate run trip --min-precision 0.4 --write-exif --in-place --replace")
    assert read_shot(f"trip/{name}").latitude == pytest.approx(latitude, abs=1e-7)
    listed = [json.loads(line) for line in Path("written.jsonl").read_text().splitlines()]
    assert [Path(one["photo"]).name for one in listed] == [name]


def test_sidecars_lie_beside_the_photos_and_are_taken_away(here: Path) -> None:
    before = bytes_of("trip")
    typed(f"{ASK} --sidecar xmp")
    wanted = answered()
    assert {path.name for path in Path("trip").glob("*.xmp")} == {f"{one}.xmp" for one in wanted}
    name, (latitude, _, _) = next(iter(wanted.items()))
    text = Path(f"trip/{name}.xmp").read_text()
    assert f'exif:GPSLatitude="{int(latitude)},' in text
    assert "have a sidecar there already" in typed(
        "locate run trip --min-precision 0.4 --sidecar xmp"
    )
    typed("locate run --undo written.jsonl")
    assert bytes_of("trip") == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--write-exif", "say how sure with --min-precision"),
        ("--sidecar iptc --min-precision 0.4", "there is xmp"),
        ("--sidecar xmp --write-exif --min-precision 0.4", "choose one"),
        ("--in-place", "give both"),
        ("--undo nowhere.jsonl", "nowhere.jsonl does not exist"),
    ],
)
def test_a_sentence_for_what_cannot_be(here: Path, words: str, sentence: str) -> None:
    assert sentence in typed(f"locate run trip {words}", code=2)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("latitude", "longitude"), [(-33.9, 18.4), (52.2050448, -0.1195771)])
def test_everything_else_in_an_exif_stays(order: str, latitude: float, longitude: float) -> None:
    exif = Image.Exif()
    exif.endian = order
    exif[271] = "A camera with a long name"
    exif.get_ifd(ExifTags.IFD.Exif)[36867] = "2024:05:01 10:00:00"
    exif.get_ifd(ExifTags.IFD.Exif)[37500] = bytes(range(200))  # a maker's note
    exif.get_ifd(ExifTags.IFD.GPSInfo)[17] = 87.5  # a heading
    given = exif.tobytes().removeprefix(b"Exif\0\0")
    placed = place_exif(given, latitude, longitude, 12.34)
    assert placed[8 : len(given)] == given[8:], "nothing moved but the head's pointer"
    read = Image.Exif()
    read.load(b"Exif\0\0" + place_exif(placed, latitude, longitude, 12.34))
    gps = read.get_ifd(ExifTags.IFD.GPSInfo)
    assert read[271] == "A camera with a long name"
    assert read.get_ifd(ExifTags.IFD.Exif)[37500] == bytes(range(200))
    assert float(gps[17]) == 87.5
    for axis, sides, at in ((latitude, "NS", 1), (longitude, "EW", 3)):
        whole, minutes, seconds = map(float, gps[at + 1])
        assert gps[at] == sides[axis < 0]
        assert whole + minutes / 60 + seconds / 3600 == pytest.approx(abs(axis), abs=3e-9)
    assert float(gps[31]) == 12.34


def test_what_takes_no_exif_is_told_to_have_a_sidecar() -> None:
    for data in (b"\x89PNG", b""):
        with pytest.raises(PhotoError, match="--sidecar xmp"):
            exif_of(data)
    with pytest.raises(PhotoError, match="damaged"):
        place_exif(b"XX", 1.0, 2.0, 3.0)
    with pytest.raises(PhotoError, match="no room"):
        with_exif(b"\xff\xd8\xff\xd9", bytes(65_530))
    assert '"0,30.0000000S"' in xmp(-0.5, 1.0, 2.0)
