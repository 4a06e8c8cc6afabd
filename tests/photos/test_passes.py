"""Which photos were taken in one go, by what the data set, the clock or the names say."""

from typing import Any

import numpy as np
import pytest

from evenplace.photos import Photos
from evenplace.photos.passes import by_name, by_sequence, guess_passes


def walk(names: list[str], spots: list[float], **columns: Any) -> Photos:
    at = np.array(spots)
    return Photos.from_arrays(east=at, north=at * 0, path=names, **columns)


def test_frames_that_follow_one_another_are_a_pass() -> None:
    names = [f"a/IMG_{number:04d}.jpg" for number in (3, 1, 2, 40, 41, 42)]
    found = by_name(walk(names, [20.0, 0.0, 10.0, 15.0, 5.0, 25.0]))
    assert found[0] == found[1] == found[2] >= 0
    assert found[3] == found[4] == found[5] >= 0
    assert found[0] != found[3], "37 numbers lie between them"


@pytest.mark.parametrize(
    ("names", "spots"),
    [
        (["a1.jpg", "a2.jpg", "a3.jpg"], [0.0, 500.0, 1000.0]),  # a collection, not a walk
        (["a1.jpg", "b2.jpg", "c3.jpg"], [0.0, 5.0, 10.0]),
        (["a/1.jpg", "b/2.jpg", "c/3.jpg"], [0.0, 5.0, 10.0]),
        (["one.jpg", "two.jpg", "six.jpg"], [0.0, 5.0, 10.0]),
        (["a1.jpg", "a2.jpg"], [0.0, 5.0]),  # two may be chance
    ],
)
def test_names_that_tell_nothing_make_no_pass(names: list[str], spots: list[float]) -> None:
    assert by_name(walk(names, spots)).tolist() == [-1] * len(names)


def test_crops_of_one_panorama_are_one_frame() -> None:
    photos = walk(["x.jpg"] * 4, [0.0, 0.0, 5.0, 5.0], pano=["7", "7", "8", "8"])
    assert by_name(photos).tolist() == [-1] * 4
    photos = walk(["x.jpg"] * 6, [0.0, 0.0, 5.0, 5.0, 9.0, 9.0], pano=[*"778899"])
    assert len(set(by_name(photos).tolist())) == 1


def test_a_sequence_tells_before_the_day_and_the_day_before_the_name() -> None:
    names = [f"{number}.jpg" for number in range(6)]
    days = np.array(["2024-05-06", "2024-05-06", "2024-05-07", "2024-05-07", "NaT", "NaT"])
    drives = ["x", "y", None, None, None, None]
    photos = walk(names, [0.0] * 6, time=days.astype("datetime64[s]"), sequence=drives)
    assert by_sequence(photos).tolist() == [0, 1, -1, -1, -1, -1]
    found = guess_passes(photos)
    assert found[2] == found[3]
    assert len({found[0], found[1], found[2]}) == 3
    assert found[4] == found[5] == -1, "all six stand on one spot"


def test_one_day_is_no_pass_where_names_say_more() -> None:
    names = [*(f"out{number}.jpg" for number in range(3)), *(f"back{n}.jpg" for n in range(3))]
    day = np.array(["2024-05-06"] * 6, "datetime64[s]")
    found = guess_passes(walk(names, [0.0, 9.0, 18.0, 19.0, 10.0, 1.0], time=day))
    assert found[0] == found[1] == found[2]
    assert found[3] == found[4] == found[5]
    assert found[0] != found[3]
    assert guess_passes(photos=walk([], [])).tolist() == []
