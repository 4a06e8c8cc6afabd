"""SF-XL file names, field by field."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.photos.layouts.sfxl import read_names
from tests.photos.drawn import SFXL, sfxl_name


def names(*texts: str) -> pa.Array:
    return pa.array(texts, pa.large_string())


def test_every_field_of_the_published_example_is_read() -> None:
    columns = read_names(names(f"some@where/{SFXL}")).columns
    assert columns["east"].to_pylist() == [545981.19]
    assert columns["north"].to_pylist() == [4184971.70]
    assert columns["zone"].to_pylist() == [10]
    assert columns["heading"].to_pylist() == [174]
    assert columns["latitude"].to_pylist() == [37.81098]
    assert columns["longitude"].to_pylist() == [-122.47762]
    assert columns["pano"].to_pylist() == ["rtCs5-P_9NGD"]
    assert str(columns["time"][0]) == "2014-09-01 00:00:00"


@pytest.mark.parametrize(
    ("text", "read"),
    [("201409", "2014-09-01T00:00:00"), ("20140903", "2014-09-03T00:00:00"),
     ("20140903_101112", "2014-09-03T10:11:12"), ("yesterday", "NaT")],
)  # fmt: skip
def test_times_of_every_length_are_read(text: str, read: str) -> None:
    both = names(sfxl_name(1, 2, time=text), sfxl_name(1, 2, time="200001"))
    found = np.asarray(read_names(both).columns["time"])[0]
    assert str(found) == read


@pytest.mark.parametrize(
    ("letter", "zone"), [("C", -33), ("M", -33), ("N", 33), ("X", 33), ("", 33)]
)
def test_bands_below_n_are_south_of_the_equator(letter: str, zone: int) -> None:
    read = read_names(names(sfxl_name(1, 2, zone="33", letter=letter)))
    assert read.columns["zone"].to_pylist() == [zone]


def test_a_name_that_does_not_parse_is_skipped_and_the_others_stay_in_order() -> None:
    wrong = ["holiday.jpg", "@x@y" + "@" * 12 + "@.jpg"]
    read = read_names(names(sfxl_name(1, 2), *wrong, sfxl_name(3, 4)))
    assert read.rows.tolist() == [0, 3]
    assert read.columns["east"].to_pylist() == [1, 3]
    assert [one.path for one in read.skipped] == wrong
    assert "0 fields" in read.skipped[0].reason
    assert "east 'x'" in read.skipped[1].reason


def test_an_empty_heading_is_unknown() -> None:
    assert np.isnan(np.asarray(read_names(names(sfxl_name(1, 2, heading=""))).columns["heading"]))[
        0
    ]


@given(
    st.lists(
        st.tuples(st.floats(0, 999999), st.floats(0, 9999999), st.integers(0, 359)), min_size=1
    )
)
def test_any_names_read_back_as_written(photos: list[tuple[float, float, int]]) -> None:
    written = [sfxl_name(east, north, heading=f"{way:03d}") for east, north, way in photos]
    read = read_names(names(*written))
    assert read.skipped == ()
    np.testing.assert_allclose(read.columns["east"], [one[0] for one in photos], atol=0.0051)
    np.testing.assert_allclose(read.columns["north"], [one[1] for one in photos], atol=0.0051)
    assert read.columns["heading"].to_pylist() == [one[2] for one in photos]


def test_blocks_of_names_read_as_one() -> None:
    from evenplace.photos.layouts.sfxl import BLOCK

    count = BLOCK + 5
    written = [sfxl_name(row, 7, note="" if row < BLOCK else "late") for row in range(count)]
    written[3] = "holiday.jpg"
    read = read_names(names(*written))
    assert read.rows.tolist() == [row for row in range(count) if row != 3]
    assert read.columns["east"].to_pylist() == read.rows.tolist()
    assert read.columns["note"].to_pylist()[-6:] == [None, *["late"] * 5]
    assert len(read.skipped) == 1
