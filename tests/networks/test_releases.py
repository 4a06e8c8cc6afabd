"""Published files: fetched once, checked, and where they cannot be had, said where to put them."""

import hashlib
import os
from pathlib import Path

import pytest

from evenplace.errors import SettingError, WeightsError
from evenplace.networks.build_model import build_model
from evenplace.networks.weight_files import (
    RELEASES,
    Release,
    cosplace_release,
    fetch,
    weights_folder,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENPLACE_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "net.pth"
    path.write_bytes(b"x" * 3_000_000)
    return path


def test_a_file_is_fetched_once_with_progress(published: Path, folder: Path) -> None:
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    release = Release(published.as_uri(), digest[:8])
    steps: list[tuple[int, int]] = []
    path = fetch(release, name="net", progress=lambda done, total: steps.append((done, total)))
    assert path == folder / "net" / "net.pth"
    assert path.read_bytes() == published.read_bytes()
    assert steps[-1] == (3_000_000, 3_000_000)
    assert len(steps) == 3
    published.unlink()
    assert fetch(release, name="net") == path


def test_a_wrong_checksum_is_refused(published: Path) -> None:
    with pytest.raises(WeightsError, match=r"has SHA-256 .* not 0123abcd.*fetch it again"):
        fetch(Release(published.as_uri(), "0123abcd"), name="net")


def test_a_file_that_changed_since_it_was_fetched_is_refused(published: Path) -> None:
    release = Release(published.as_uri())
    path = fetch(release, name="net")
    note = path.with_name("net.pth.sha256")
    assert note.read_text().strip() == hashlib.sha256(published.read_bytes()).hexdigest()
    path.write_bytes(b"y")
    later = note.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    with pytest.raises(WeightsError, match="delete it and fetch it again"):
        fetch(release, name="net")


def test_offline_the_sentence_says_where_the_file_goes(folder: Path, tmp_path: Path) -> None:
    url = (tmp_path / "absent.pth").as_uri()
    with pytest.raises(WeightsError, match=r"absent.pth cannot be fetched .*; put the file from"):
        fetch(Release(url), name="net")
    assert not list(folder.rglob("*.pth*"))


def test_a_file_behind_a_page_is_asked_for_at_once() -> None:
    with pytest.raises(WeightsError, match=r"only be fetched through a browser; put the file"):
        build_model("cliquemining", weights="official")


def test_a_file_put_there_by_hand_is_used(folder: Path) -> None:
    path = folder / "cliquemining" / RELEASES["cliquemining"].file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no weights")
    with pytest.raises(WeightsError, match="is no weight file"):
        build_model("cliquemining", weights="official")


def test_cosplace_files_are_named_by_backbone_and_dimension() -> None:
    assert cosplace_release("cosplace", "resnet101", 128).file == "ResNet101_128_cosplace.pth"
    assert "gmberton/EigenPlaces" in cosplace_release("eigenplaces", "vgg16", 512).url
    with pytest.raises(SettingError, match="known: resnet101"):
        cosplace_release("cosplace", "dinov2-base", 512)


def test_unknown_releases_list_the_known() -> None:
    with pytest.raises(SettingError, match="did you mean 'salad'"):
        fetch("salads")


def test_weights_live_under_the_home_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENPLACE_WEIGHTS")
    assert weights_folder() == Path.home() / ".cache" / "evenplace" / "weights"
