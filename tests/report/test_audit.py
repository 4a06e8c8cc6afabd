"""The audit: its numbers, and a page that needs no network."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenplace.errors import IndexFileError, PlaceError, RunError
from evenplace.photos import Photos
from evenplace.places import Grid, KdTree
from evenplace.report.audit import Audit, audit_path, uneven
from evenplace.report.audit_answers import read_answers, recall_by_tier
from evenplace.report.audit_figures import choose_windows, write_figures
from evenplace.report.audit_page import write_audit
from evenplace.report.map import Cells, Points, map_html
from evenplace.report.page import Figure, Section, page, part
from tests.photos import drawn


def survey(folder: Path) -> Path:
    """Ten cells with 10, 9, … 1 photos; the files of the last are broken."""
    for place in range(10):
        for shot in range(10 - place):
            name = drawn.sfxl_name(
                545010.0 + 100 * place, 4184010.0 + shot / 10, heading=f"{36 * shot:03d}",
                time=f"20{10 + place:02d}01",
            )  # fmt: skip
            file = drawn.picture(folder / name)
            if place == 9:
                file.write_bytes(b"")
    return folder


def test_the_numbers_are_those_of_the_survey(tmp_path: Path) -> None:
    found = audit_path(survey(tmp_path))
    assert len(found.photos) == 55
    # 10 + 9 + 8 are 27 of 55, a fourth place is needed for half
    assert uneven(found.places.counts) == ["10", "10 : 1", "0.30", "40%", "10.9%"]
    assert [(row.places, row.photos) for row in found.tiers] == [(3, 27), (4, 22), (3, 6)]
    assert "hold 10.9% of the photos" in found.sentence()
    assert found.against is not None
    assert found.against.rule.name == "kd-tree"


def written(tmp_path: Path, **more: object) -> str:
    found = audit_path(survey(tmp_path / "photos"), **more)  # type: ignore[arg-type]
    return write_audit(found, tmp_path / "audit.html", title="<A&B>").read_text(encoding="utf-8")


def test_the_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="http', text)
    assert "url(http" not in text
    assert "@import" not in text


def test_the_page_tells_titles_apart_from_markup(tmp_path: Path) -> None:
    assert "<h1>&lt;A&amp;B&gt;</h1>" in written(tmp_path)


def test_the_page_lists_what_could_not_be_opened(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "Left out" in text
    assert "it cannot be decoded" in text


def test_every_place_is_on_the_map_with_its_count_and_photos(tmp_path: Path) -> None:
    data = re.findall(r'<script type="application/json">(.*?)</script>', written(tmp_path))[0]
    drawn_map = json.loads(data)
    assert drawn_map["facts"]["photos"] == list(range(10, 0, -1))
    assert set(drawn_map["pictures"]) == {str(place) for place in range(9)}
    assert drawn_map["pictures"]["0"][0].startswith("data:image/jpeg;base64,")


def test_photos_beyond_the_budget_are_links_relative_to_the_page(tmp_path: Path) -> None:
    found = audit_path(survey(tmp_path / "photos"))
    text = write_audit(found, tmp_path / "audit.html", pictures=0).read_text(encoding="utf-8")
    assert "data:image/jpeg" not in text
    assert '"photos/%40' in text


def test_descriptors_add_similarity_by_tier(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "d.npy", rng.normal(size=(55, 8)).astype(np.float32))
    text = written(tmp_path, descriptors=tmp_path / "d.npy")
    assert "similarity within a place" in text
    (tmp_path / "bad.npy").write_bytes(b"no")
    with pytest.raises(IndexFileError, match=r"bad\.npy cannot be read"):
        audit_path(tmp_path / "photos", descriptors=tmp_path / "bad.npy")


def answer(folder: Path, number: int, query: str, best: str, positives: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    lines = ["Query path:", query, "", "Predictions paths:", best, "other.jpg", ""]
    lines += ["Positives paths:", *positives] if positives else []
    (folder / f"{number:03d}.txt").write_text("\n".join(lines))


def test_text_predictions_give_recall_by_tier(tmp_path: Path) -> None:
    photos = survey(tmp_path / "photos")
    head, tail = (drawn.sfxl_name(545011.0 + 100 * place, 4184012.0) for place in (0, 8))
    near, far = (drawn.sfxl_name(545020.0 + away, 4184012.0) for away in (0, 500))
    answer(tmp_path / "preds", 0, f"q/{head}", f"db/{near}", [])
    answer(tmp_path / "preds", 1, f"q/{head}", f"db/{far}", [])
    answer(tmp_path / "preds", 2, f"q/{tail}", f"db/{far}", [])
    answer(tmp_path / "preds", 3, f"q/{tail}", f"db/{far}", [f"db/{far}"])
    found = audit_path(photos, predictions=tmp_path / "preds")
    rows = {name: (count, recall.mean) for name, count, recall in found.recall}
    assert rows == {"all": (4, 50.0), "head": (2, 50.0), "tail": (2, 50.0)}
    assert "Recall by tier" in write_audit(found, tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_text_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    photos = Photos.from_arrays(east=[0.0], north=[0.0], path=["a.jpg"])
    with pytest.raises(RunError, match=r"a\.txt has no 'Query path:'"):
        read_answers(tmp_path / "a.txt", photos)
    with pytest.raises(RunError, match=r"holds no \.txt predictions"):
        read_answers(tmp_path / "gone", photos)


def test_our_own_predictions_are_read(tmp_path: Path) -> None:
    rows = {  # the last two were taken where there is no place
        "path": ["q.jpg", "r.jpg", "s.jpg"],
        "east": [1.0, 900.0, 990.0],
        "north": [1.0, 1.0, 1.0],
        "zone": [0, 0, 0],
        "hit_right": [[True, False], [True, True], [False, True]],
    }
    pq.write_table(pa.table(rows), tmp_path / "predictions.parquet")
    photos = Photos.from_arrays(east=[1.0], north=[1.0])
    answers = read_answers(tmp_path / "predictions.parquet", photos)
    recalls = recall_by_tier(answers, Grid().partition(photos))
    assert [(name, count, recall.mean) for name, count, recall in recalls] == [
        ("all", 3, pytest.approx(200 / 3)),
        ("middle", 1, 100.0),
        ("no place", 2, 50.0),
    ]


def test_photos_made_from_arrays_have_an_audit_without_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    photos = Photos.from_arrays(east=rng.normal(0, 90, 500), north=rng.normal(0, 90, 500))
    places = Grid().partition(photos)
    found = Audit(photos, places, against=KdTree(max_photos=9).partition(photos))
    text = write_audit(found, tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "These photos tell no headings and no years." in text
    assert "openstreetmap" not in text  # local metres have no latitude


def test_a_cell_size_that_leaves_no_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="no cell of 20 m has 99 photos"):
        audit_path(survey(tmp_path), min_photos=99)


def test_a_page_without_a_map_carries_no_map_code() -> None:
    text = page("t", [Section("one", part("tiles", [Figure("1", "photo")]), "see")])
    assert "Leaflet" not in text
    cells = Cells(np.zeros((1, 4, 2)), np.array([0]), facts={"name": ["</script>"]})
    with_map = page("t", [Section("map", map_html(cells, Points(np.zeros((1, 2)))))])
    assert "Leaflet" in with_map
    assert '</script>"' not in with_map


def test_windows_are_where_most_photos_are_and_where_tiers_mix() -> None:
    dice = np.random.default_rng(0)
    centres = np.unique(dice.integers(0, 40, (120, 2)) * 20.0, axis=0)
    counts, tiers = dice.integers(1, 30, len(centres)), dice.integers(0, 3, len(centres))
    side, windows = choose_windows(centres, tiers, counts)
    assert side == np.ptp(centres, axis=0).max() / 8

    def inside(middle: list[float]) -> list[int]:
        reach = side / 2
        return [row for row, (x, y) in enumerate(centres.tolist())
                if abs(x - middle[0]) <= reach and abs(y - middle[1]) <= reach]  # fmt: skip

    def mixed(middle: list[float]) -> float:
        found = [int(tiers[row]) for row in inside(middle)]
        shares = [found.count(tier) / len(found) for tier in set(found)]
        return -sum(p * math.log(p) for p in shares) if len(found) >= 4 else 0.0

    def dense(middle: list[float]) -> float:
        return float(sum(counts[row] for row in inside(middle)))

    free = centres.tolist()
    for window, worth in zip(windows.tolist(), (dense, dense, mixed, mixed), strict=True):
        assert worth(window) == pytest.approx(max(map(worth, free)))
        free = [one for one in free
                if max(abs(one[0] - window[0]), abs(one[1] - window[1])) >= side]  # fmt: skip


def test_a_window_is_called_mixed_only_where_tiers_mix() -> None:
    centres = np.array([[x, y] for x in range(0, 800, 100) for y in range(0, 800, 100)], float)
    tiers, counts = np.arange(64) % 3, np.full(64, 5)
    side, windows = choose_windows(centres, tiers, counts)
    assert side == 700 / 2  # an eighth and a quarter of the map hold one place
    for middle in windows[2:]:
        inside = tiers[np.abs(centres - middle).max(axis=1) <= side / 2]
        assert len(np.unique(inside)) > 1
    assert len(choose_windows(centres, np.zeros(64, int), counts)[1]) == 2  # nothing is mixed


def test_a_large_map_is_looked_over_in_seconds() -> None:
    dice = np.random.default_rng(0)
    centres = dice.uniform(0, 20_000, (40_000, 2))
    counts, tiers = dice.integers(1, 30, len(centres)), dice.integers(0, 3, len(centres))
    began = time.process_time()
    assert len(choose_windows(centres, tiers, counts)[1]) == 4
    assert time.process_time() - began < 8


def test_the_tails_of_several_sets_lie_in_one_figure(tmp_path: Path) -> None:
    few = Grid(20).partition(Photos.from_arrays(east=[1.0, 2.0, 50.0], north=[1.0, 2.0, 1.0]))
    many = audit_path(survey(tmp_path / "photos")).places
    drawn = write_figures({"many": many, "few": few}, tmp_path)
    assert [file.name for file in drawn] == ["map.svg", "distribution.svg"]
    rows = (tmp_path / "distribution.csv").read_text().splitlines()[1:]
    told = [row.split('"')[1::2][-1].split(":")[0] + row[row.rindex('"') + 1 :] for row in rows]
    assert told[-2:] == ["few,25.0,2.0", "few,75.0,1.0"]
    assert [row.split(",")[2] for row in told[:10]] == [f"{n:.1f}" for n in range(10, 0, -1)]
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_a_base_map_lies_under_one_city(tmp_path: Path) -> None:
    url = "https://tiles.example/{z}/{x}/{y}.png"
    found = audit_path(survey(tmp_path / "photos"))
    assert url in write_audit(found, tmp_path / "audit.html", tiles=url).read_text()
    assert url not in write_audit(found, tmp_path / "audit.html").read_text()
