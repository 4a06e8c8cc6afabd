"""What is never said, written or kept: paths, EXIF, photos, the inside of a mistake."""

import io
import logging
import tempfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from evenplace.photos import Photos
from tests.serve.conftest import Town, jpeg, serving
from tests.serve.test_api import ask, problem_of


@pytest.mark.parametrize(
    "escape",
    [
        "../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd",
        "....//....//etc/passwd", "/etc/passwd", "00000000-0/../../etc/passwd", "00000000--1",
        "file:///etc/passwd", "00000000-0%00.jpg", "C:\\windows\\win.ini", "-1", "9" * 5000,
        "00000000-99999999999999999999", "٠٠٠٠٠٠٠٠-٠",
    ],
)  # fmt: skip
def test_an_id_never_reaches_the_file_system(client: TestClient, escape: str) -> None:
    for room in ("photos", "places", "assets"):
        said = client.get(f"/{room}/{escape}")
        assert said.status_code in (404, 422)
        assert "root:" not in said.text
        assert "<!doctype" not in said.text.lower()


def test_no_exif_leaves_the_service(town: Town, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "secret-description"
    path = tmp_path / "tagged.jpg"
    path.write_bytes(jpeg(exif=exif, comment=b"secret-comment"))
    with serving(town.run) as client:
        said = ask(client, path.read_bytes())
        assert said.status_code == 200
        assert b"secret" not in said.content
        served = client.app.state.service.index_watch.current  # type: ignore[attr-defined]
        object.__setattr__(served, "path_of", lambda row: str(path))
        picture = client.get(f"/photos/{served.version}-0").content
    assert b"secret" not in picture
    assert not Image.open(io.BytesIO(picture)).getexif()


def test_no_path_of_the_database_is_said(client: TestClient, town: Town) -> None:
    photos: Photos = client.app.state.service.index_watch.current.engine.index.photos  # type: ignore[attr-defined]
    folder = str(Path(photos.paths[0]).parent)
    answers = [
        ask(client, town.photo()).text,
        client.get("/places/0").text,
        client.get("/about").text,
    ]
    assert all(folder not in text and ".jpg" not in text for text in answers)


def test_no_photo_touches_the_disk(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, town: Town
) -> None:
    def refuse(*words: object, **options: object) -> None:
        raise AssertionError("a photo was written to disk")

    large = jpeg(1600, 1600, quality=95)
    assert len(large) > 1 << 20, "more than what Starlette would keep in memory"
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert ask(client, large, town.photo()).status_code == 200


def test_logs_hold_nothing_of_a_photo(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(client, b"secret-pixels" * 100)
        ask(client, jpeg(comment=b"secret-comment"))
    assert "secret" not in caplog.text


def test_a_mistake_of_ours_tells_no_details(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(town.run) as client:
        service = client.app.state.service  # type: ignore[attr-defined]

        def fail(*words: object, **more: object) -> None:
            raise RuntimeError("secret-inside")

        monkeypatch.setattr(type(service.index_watch.current.engine), "answers", fail)
        said = ask(client, town.photo())
        assert problem_of(said).type.endswith("failed")
        assert "secret" not in said.text
        assert "default-src 'none'" in said.headers["content-security-policy"]
        assert "secret-inside" in caplog.text, "but the log has it"
        monkeypatch.undo()
        assert ask(client, town.photo()).status_code == 200, "the next batch is answered"
