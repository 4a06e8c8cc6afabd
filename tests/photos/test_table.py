"""Photos: what they refuse, what they keep, and that they survive the disk."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.errors import PhotoError
from evenplace.photos import Photos, Skipped, join_photos


def three(**more: object) -> Photos:
    values = {"east": [1.0, 2.0, 3.0], "north": [4.0, 5.0, 6.0], "zone": 10}
    return Photos.from_arrays(**(values | more))  # type: ignore[arg-type]


def test_arrays_of_the_right_type_are_not_copied() -> None:
    east = np.arange(5.0)
    photos = Photos.from_arrays(east=east, north=np.zeros(5))
    assert np.shares_memory(photos.east, east)


def test_unknown_headings_are_nan_and_unknown_times_are_nat() -> None:
    photos = three()
    assert np.isnan(photos.heading).all()
    assert photos.heading.dtype == np.float32
    assert np.isnat(photos.time).all()


def test_headings_wrap_into_a_circle() -> None:
    photos = three(heading=[-90.0, 360.0, 725.0])
    assert photos.heading.tolist() == [270.0, 0.0, 5.0]


@given(st.floats(-1e6, 1e6, width=32))
def test_a_heading_is_below_360_whatever_was_given(degrees: float) -> None:
    photos = Photos.from_arrays(east=[0.0], north=[0.0], heading=[degrees])
    assert 0 <= photos.heading[0] < 360


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_position_that_is_no_number_is_refused_by_name(bad: float) -> None:
    with pytest.raises(PhotoError, match=r"b\.jpg has north = (nan|inf)"):
        three(north=[1.0, bad, 2.0], path=["a.jpg", "b.jpg", "c.jpg"])


def test_columns_of_different_lengths_are_refused_with_both_lengths() -> None:
    with pytest.raises(PhotoError, match="3 values of east but 2 of heading"):
        three(heading=[1.0, 2.0])


def test_every_photo_has_a_city_named_after_its_zone_without_a_better_name() -> None:
    assert three(zone=0).cities == ["local"]
    assert three(zone=10).city.tolist() == [0, 0, 0]
    photos = three(zone=[10, 10, -56])
    assert photos.cities == ["10N", "56S"]
    assert photos.city.tolist() == [0, 0, 1]
    assert photos[1:].city.tolist() == [0, 1]
    joined = join_photos([three(zone=10), three(zone=11), three(zone=10, city=["sf"] * 3)])
    assert joined.cities == ["10N", "11N", "sf"]
    assert join_photos([three(zone=10), three(zone=11)]).cities == ["10N", "11N"]


def test_cities_of_one_zone_in_two_sets_do_not_share_a_name_of_ours() -> None:
    both, far = three(zone=[10, 10, 11]), three(zone=10, north=[9e5, 9e5, 9e5])
    assert both.cities == ["10N", "11N"]
    assert join_photos([both, far]).cities == ["10N", "10N-2", "11N"]


def test_points_of_two_zones_are_never_near() -> None:
    photos = three(east=[5.0, 5.0, 5.0], north=[1.0, 1.0, 1.0], zone=[10, 10, -56])
    gaps = np.linalg.norm(photos.points - photos.points[0], axis=1)
    assert gaps[1] == 0
    assert gaps[2] > 1e6


def test_two_zones_keep_the_names_of_their_cities() -> None:
    photos = three(zone=[10, 10, -56], city=["sf", "sf", "sydney"])
    assert photos.zones == [-56, 10]
    assert photos.cities == ["sf", "sydney"]
    assert len(photos[photos.column("city") == "sf"]) == 2


def test_a_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PhotoError, match="no UTM zone 61"):
        three(zone=61)


def test_slices_masks_and_rows_choose_the_same_photos() -> None:
    photos = three(path=["a", "b", "c"])
    assert photos[1:].paths == ["b", "c"]
    assert photos[np.array([False, True, True])].paths == ["b", "c"]
    assert photos[np.array([2, -2])].paths == ["c", "b"]
    assert photos[::2].paths == ["a", "c"]
    assert len(photos[5:]) == 0


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(IndexError):
        three()[np.array([True, False])]


def test_photos_without_files_say_so() -> None:
    with pytest.raises(PhotoError, match="no files"):
        _ = three().paths


def test_photos_do_not_change() -> None:
    with pytest.raises(AttributeError, match="do not change"):
        three().skipped = ()


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_photos_go_to_another_process_whole(copied: Callable[[Photos], Photos]) -> None:
    skipped = [Skipped("x.jpg", "it has no position")]
    photos = three(path=["a", "b", "c"], heading=[1, 2, 3], skipped=skipped)
    again = copied(photos[1:])
    assert again.table.equals(photos[1:].table)
    assert again.skipped == photos.skipped


def test_photos_survive_the_disk_with_what_was_skipped(tmp_path: Path) -> None:
    skipped = [Skipped("x.jpg", "it has no position")]
    photos = three(
        path=["a", "b", "c"],
        heading=[1, 2, 3],
        time=["2020-01-01", "NaT", "2021-05-06T07:08:09"],
        note=["é", "", "z"],
        skipped=skipped,
    )
    photos.write(tmp_path / "photos.parquet")
    again = Photos.read(tmp_path / "photos.parquet")
    assert again.table.equals(photos.table)
    assert again.skipped == tuple(skipped)
    assert [one.name for one in tmp_path.iterdir()] == ["photos.parquet"]


def test_a_file_that_is_no_table_of_photos_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    with pytest.raises(PhotoError, match="no Parquet file"):
        Photos.read(tmp_path / "no.parquet")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    from evenplace.photos.files import whole_file

    target = tmp_path / "file.txt"
    target.write_text("old")
    full = OSError(28, "No space left on device")

    def write() -> None:
        with whole_file(target) as draft:
            draft.write_text("half")
            raise full

    with pytest.raises(PhotoError, match="the disk is full"):
        write()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]


def test_joined_photos_keep_every_column_and_everything_skipped() -> None:
    one = three(note=["a", "b", "c"], skipped=[Skipped("x", "why")])
    both = join_photos([one, three(skipped=[Skipped("y", "why")])])
    assert len(both) == 6
    assert both.table.column("note").null_count == 3
    assert [skipped.path for skipped in both.skipped] == ["x", "y"]
