"""A reader that goes away and names of other encodings end without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

from evenplace.cli.locate import _zone_marks
from tests.photos.drawn import SFXL, picture


def run(*words: str | bytes, closed: bool = False) -> subprocess.CompletedProcess[bytes]:
    """The program in a process of its own; closed: nobody reads what it prints."""
    command = [sys.executable, "-m", "evenplace", *words]
    if not closed:
        return subprocess.run(command, capture_output=True, check=False)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)


def test_a_closed_output_ends_quietly() -> None:
    done = run("methods", "dapr-m", closed=True)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


def test_help_into_a_closed_output_ends_quietly() -> None:
    assert run("--help", closed=True).stderr == b""


def test_a_photo_whose_name_is_not_utf8_is_named_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    picture(tmp_path / os.fsdecode(b"caf\xe9") / SFXL)
    done = run("audit", str(tmp_path))
    assert done.returncode == 2
    assert rb"caf\xe9/" in done.stderr
    assert b"not UTF-8; rename it" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_output_whose_name_is_not_utf8_is_printed_with_its_bytes(tmp_path: Path) -> None:
    photos = picture(tmp_path / "photos" / SFXL).parent
    page = os.path.join(os.fsencode(tmp_path), b"caf\xe9.html")  # noqa: PTH118, bytes
    done = run("audit", str(photos), "--out", page)
    assert done.returncode == 0, done.stderr
    assert rb"caf\udce9.html" in done.stdout


def test_a_drawn_town_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = run("city", str(tmp_path / "town"), "--photos", "2", "--queries", "1", "--size", "32")
    assert done.stdout.startswith(f"{tmp_path}/town: 2 photos in ".encode())
    assert b"CityReport" not in done.stdout


def test_looking_at_photos_leaves_nothing_behind(tmp_path: Path) -> None:
    photos = picture(tmp_path / "photos" / SFXL).parent
    (tmp_path / "here").mkdir()
    for words in (("photos", "check"), ("audit",)):
        done = subprocess.run(
            [sys.executable, "-m", "evenplace", *words, photos], cwd=tmp_path / "here",
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "wrote" not in done.stdout
    assert list((tmp_path / "here").iterdir()) == []


def test_metres_of_hits_say_their_zone_where_there_are_several() -> None:
    assert _zone_marks([34, -56]) == ["34N ", "56S "]
    assert _zone_marks([34, 34]) == ["", ""]
