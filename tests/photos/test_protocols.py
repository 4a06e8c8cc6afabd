"""Named tests, what is near what, and looking at photos first."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from evenplace.errors import PhotoError, SettingError
from evenplace.photos import Photos
from evenplace.photos.check import check_photos
from evenplace.photos.nearby import find_frames, find_nearby
from evenplace.photos.protocols import PROTOCOLS, read_protocol
from tests.photos import drawn

POINTS = st.lists(st.tuples(st.floats(-90, 90), st.floats(-90, 90)), max_size=40)


def photos_at(positions: list[tuple[float, float]], zones: list[int] | None = None) -> Photos:
    east, north = np.array(positions, float).reshape(-1, 2).T
    zone = zones if zones is not None else 10
    return Photos.from_arrays(east=east, north=north, zone=zone, city=["x"] * len(east))


@given(POINTS, POINTS, st.floats(1, 60))
def test_nearby_is_every_pair_within_the_radius(
    database: list[tuple[float, float]], queries: list[tuple[float, float]], radius: float
) -> None:
    found = find_nearby(photos_at(database), photos_at(queries), radius)
    for query, (east, north) in enumerate(queries):
        expected = [row for row, (e, n) in enumerate(database)
                    if np.hypot(e - east, n - north) <= radius]  # fmt: skip
        assert found.of(query).tolist() == expected
        assert (found.query == query).sum() == len(expected)


def test_a_photo_exactly_at_the_radius_is_near() -> None:
    found = find_nearby(photos_at([(25.0, 0.0), (25.01, 0.0)]), photos_at([(0.0, 0.0)]))
    assert found.rows.tolist() == [0]


def test_photos_of_other_zones_are_never_near() -> None:
    database = photos_at([(0.0, 0.0), (0.0, 0.0)], [10, 33])
    found = find_nearby(database, photos_at([(0.0, 0.0), (1.0, 0.0)], [33, 10]))
    assert [found.of(0).tolist(), found.of(1).tolist()] == [[1], [0]]


def test_frames_are_near_by_number() -> None:
    frames = Photos.from_arrays(east=[0.0] * 4, north=[0.0] * 4, frame=np.array([3, 1, 2, 9]))
    found = find_frames(frames, frames[:1], 1)
    assert found.of(0).tolist() == [0, 2]


def test_every_protocol_refuses_other_numbers_and_says_both(tmp_path: Path) -> None:
    drawn.sfxl(tmp_path)
    root = tmp_path / "copy@home" / "sf_xl"
    with pytest.raises(PhotoError, match=r"2,805,840 .* 1,000 queries, but .* 6 and 1;.*partial"):
        read_protocol("sfxl-v1", root)
    found = read_protocol("sfxl-v2", root, allow_partial=True)
    assert found.describe() == (
        "sfxl-v2: 6 database photos, 1 queries, found within 25 m "
        "(a part of it: no published score compares)"
    )
    assert found.positives().of(0).tolist() != []


def test_msls_740_keeps_queries_with_a_positive_in_their_own_city(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    official = read_protocol("msls-val-740", root, allow_partial=True)
    assert [len(official.database), len(official.queries)] == [6, 4]
    everything = read_protocol("msls-val-all", root, allow_partial=True)
    assert len(everything.queries) == 6
    for query, city in enumerate(official.queries.column("city")):
        rows = official.positives().of(query)
        assert set(official.database.column("city")[rows]) == {city}


def test_msls_740_leaves_out_a_query_without_a_positive(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    far = root / "train_val/sf/query/postprocessed.csv"
    far.write_text(far.read_text().replace("560000.0", "580000.0"))
    assert len(read_protocol("msls-val-740", root, allow_partial=True).queries) == 3


def test_pitts30k_and_nordland_read_their_folders(tmp_path: Path) -> None:
    drawn.pitts30k(tmp_path)
    pitts = read_protocol("pitts30k-test", tmp_path / "pitts30k", allow_partial=True)
    assert pitts.positives().counts.tolist() == [4]
    drawn.nordland(tmp_path, 30)
    ten = read_protocol("nordland-10f", tmp_path / "nordland", allow_partial=True)
    assert ten.positives().counts.tolist() == [min(n, 10) + min(29 - n, 10) + 1 for n in
                                               ten.queries.column("frame")]  # fmt: skip
    two = read_protocol("nordland-2f", tmp_path / "nordland", allow_partial=True)
    assert two.positives().counts.max() == 5


def test_nordland_1f_has_two_or_three_positives_for_every_tenth_frame(tmp_path: Path) -> None:
    drawn.nordland(tmp_path, 30, every=10)
    one = read_protocol("nordland-1f", tmp_path / "nordland", allow_partial=True)
    assert sorted(one.queries.column("frame")) == [0, 10, 20]
    assert sorted(one.positives().counts) == [2, 3, 3]
    for number in range(3):  # queries counted among themselves are still every tenth frame
        drawn.picture(tmp_path / "other/query" / f"nordland_{number}.jpg")
    for number in range(30):
        drawn.picture(tmp_path / "other/ref" / f"nordland_{number}.jpg")
    plain = read_protocol("nordland-1f", tmp_path / "other", allow_partial=True)
    assert plain.queries.column("frame").tolist() == [0, 10, 20]


def test_the_published_numbers_are_the_fields() -> None:
    numbers = {name: (one.database, one.queries[0], one.frames) for name, one in PROTOCOLS.items()}
    assert numbers == {
        "sfxl-v1": (2_805_840, 1000, None),
        "sfxl-v2": (2_805_840, 598, None),
        "msls-val-740": (18_871, 740, None),
        "msls-val-all": (18_871, 11_084, None),
        "pitts30k-test": (10_000, 6816, None),
        "nordland-1f": (27_592, 2760, 1),
        "nordland-2f": (3450, 3450, 2),
        "nordland-10f": (27_592, 27_592, 10),
    }


def test_an_unknown_protocol_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"did you mean 'msls-val-(740|all)'.*nordland-1f"):
        read_protocol("msls-val", tmp_path)


def test_a_check_counts_reasons_and_draws_a_sheet(tmp_path: Path) -> None:
    database = drawn.sfxl(tmp_path) / "database"
    drawn.picture(database / "holiday.jpg")
    (database / drawn.sfxl_name(545100, 4184000)).write_bytes(b"")
    found = check_photos(database, sheet=tmp_path / "sheet.png")
    assert found.lines()[0] == "layout sf-xl: 7 photos at 7 different positions"
    reasons = found.left_out()
    assert [count for _, count, _ in reasons] == [1, 1]
    assert any("fields" in why for why, _, _ in reasons)
    assert any("empty" in why for why, _, _ in reasons)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (960, 160)
    assert found.rows(2)[0]["zone"] == 10
