"""The whole town on disk: the same bytes again, names that tell the truth, nothing half-written."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import utm
from PIL import Image

from evenplace.city import CityReport, draw, draw_city
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import plan_survey
from evenplace.errors import SettingError

pytestmark = pytest.mark.slow  # draws whole towns

PHOTOS, QUERIES, SIZE = 60, 12, 48


def draw_small(out: Path, workers: int) -> CityReport:
    return draw_city(out, photos=PHOTOS, queries=QUERIES, seed=3, size=SIZE, workers=workers)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CityReport]:
    out = tmp_path_factory.mktemp("town") / "one"
    return out, draw_small(out, workers=1)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.jpg"))
    }


def test_report_counts_what_is_on_disk(town: tuple[Path, CityReport]) -> None:
    out, report = town
    assert report.photos == len(list((out / "database").iterdir())) == PHOTOS
    assert report.queries == len(list((out / "queries").iterdir())) == QUERIES
    assert report.seconds > 0


def test_same_seed_gives_same_bytes_with_any_number_of_workers(
    town: tuple[Path, CityReport], tmp_path: Path
) -> None:
    out, report = town
    again = draw_small(tmp_path / "two", workers=2)
    assert digests(tmp_path / "two") == digests(out)
    assert (again.places, again.imbalance) == (report.places, report.imbalance)


def test_photos_do_not_depend_on_what_was_drawn_before(town: tuple[Path, CityReport]) -> None:
    out, _ = town
    shot = plan_survey(plan_town(3), PHOTOS, 3)[40]
    fresh = Renderer(3, SIZE).take(shot.camera, shot.day)
    path = next(iter((out / "database").glob(f"*{shot.name}*")))
    fresh.save(out.parent / "fresh.jpg", quality=draw.QUALITY)
    assert (out.parent / "fresh.jpg").read_bytes() == path.read_bytes()


def test_another_seed_is_another_town(town: tuple[Path, CityReport], tmp_path: Path) -> None:
    out, _ = town
    draw_city(tmp_path / "other", photos=4, queries=1, size=48, seed=4, workers=1)
    assert not set(digests(tmp_path / "other").values()) & set(digests(out).values())


def test_names_parse_back_to_positions(town: tuple[Path, CityReport]) -> None:
    out, _ = town
    shots = {shot.name: shot for shot in plan_survey(plan_town(3), PHOTOS, 3)}
    for path in (out / "database").iterdir():
        fields = path.name.split("@")
        assert len(fields) == 16
        assert (fields[0], fields[15]) == ("", ".jpg")
        assert [len(field) for field in fields[1:7]] == [10, 10, 2, 1, 9, 10]
        shot = shots[fields[7]]
        east, north = float(fields[1]), float(fields[2])
        assert east == pytest.approx(shot.camera.east + 500_000, abs=1e-6)
        assert north == pytest.approx(shot.camera.north + 55_000, abs=1e-6)
        assert (fields[3], fields[4]) == ("31", "N")
        back = utm.from_latlon(float(fields[5]), float(fields[6]), force_zone_number=31)
        assert back[:2] == pytest.approx((east, north), abs=1.2)  # five decimals of a degree
        assert int(fields[9]) == shot.camera.heading
        assert fields[13] == shot.day.date
        assert fields[14] == "day"


def test_photos_are_square_rgb_jpegs_with_something_in_them(
    town: tuple[Path, CityReport],
) -> None:
    out, _ = town
    for path in out.rglob("*.jpg"):
        with Image.open(path) as photo:
            assert (photo.format, photo.mode, photo.size) == ("JPEG", "RGB", (SIZE, SIZE))
            assert np.ptp(np.asarray(photo.convert("L"))) > 30


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    draw_city(
        tmp_path / "t",
        photos=3,
        queries=2,
        size=32,
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (5, 5)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("photos", 0), ("queries", 0), ("size", 31), ("workers", 0), ("seed", -1)],
)
def test_bad_setting_is_named_with_its_value(tmp_path: Path, setting: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{setting} is {value}; it must be at least"):
        draw_city(tmp_path / "t", **{setting: value})  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_folder_with_something_in_it_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(SettingError, match="not an empty folder"):
        draw_city(tmp_path, photos=1, queries=1, size=32, workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    draw_city(tmp_path / "t", photos=1, queries=1, size=32, workers=1)
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["database", "queries"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_nothing_is_left_when_drawing_stops_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    monkeypatch.setattr(draw, "CHUNK", 2)

    def stop(done: int, total: int) -> None:
        if done >= 4:
            assert len(list(tmp_path.rglob("*.jpg"))) == done
            raise failure

    with pytest.raises(failure):
        draw_city(tmp_path / "t", photos=6, queries=2, size=32, workers=1, progress=stop)
    assert not list(tmp_path.iterdir())


def test_a_script_without_a_guard_may_draw(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import evenplace as ep\n"
        "print(ep.draw_city('town', photos=130, queries=1, size=32, workers=2).photos)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("130\n", "")
