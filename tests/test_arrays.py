"""The moves on rows that every room makes, against plain loops."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenplace import arrays
from evenplace.arrays import blocks, draw_pairs, evenly, ranges, renumber, starts_of, unit

SOURCE = Path(arrays.__file__).parent


def test_an_alias_means_one_kind_of_number_in_the_whole_package() -> None:
    kinds = dict(re.findall(r"^(\w+) = NDArray\[(.+)\]$", Path(arrays.__file__).read_text(), re.M))
    assert kinds["Floats"] == "np.float32"
    for file in SOURCE.rglob("*.py"):
        for name, kind in re.findall(r"^(\w+) = NDArray\[(.+)\]", file.read_text(), re.M):
            assert kinds.get(name, kind) == kind, file


@given(st.integers(0, 40), st.integers(1, 9))
def test_blocks_are_all_rows_in_order(rows: int, size: int) -> None:
    parts = [np.arange(rows)[part] for part in blocks(rows, size)]
    assert [int(row) for part in parts for row in part] == list(range(rows))
    assert all(0 < len(part) <= size for part in parts)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges_list_their_numbers_and_whose_they_are(given_ranges: list[tuple[int, int]]) -> None:
    first = np.array([start for start, _ in given_ranges], np.int64)
    last = first + np.array([length for _, length in given_ranges], np.int64)
    numbers, of = ranges(first, last)
    expected = [
        (start + step, at) for at, (start, length) in enumerate(given_ranges)
        for step in range(length)
    ]  # fmt: skip
    assert list(zip(numbers.tolist(), of.tolist(), strict=True)) == expected
    starts = starts_of(last - first)
    assert [of[begin:end].tolist() for begin, end in pairwise(starts)] == [
        [at] * length for at, (_, length) in enumerate(given_ranges)
    ]


@given(st.lists(st.booleans(), max_size=12))
def test_rows_are_numbered_among_those_that_are_kept(kept: list[bool]) -> None:
    number = renumber(np.array(kept, bool))
    assert number.tolist() == [sum(kept[:row]) if one else -1 for row, one in enumerate(kept)] + [
        -1
    ]


@given(st.integers(0, 300), st.integers(1, 40))
def test_rows_evenly_chosen_are_spread_from_end_to_end(count: int, most: int) -> None:
    rows = evenly(count, most)
    assert len(rows) == min(count, most)
    if most > 1 and count:
        assert (rows[0], rows[-1]) == (0, count - 1)
    gaps = np.diff(rows)
    assert not len(gaps) or gaps.max() - gaps.min() <= 1


def test_a_vector_without_a_length_stays_as_it_is() -> None:
    made = unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(made, [[0.6, 0.8], [0.0, 0.0]])


def test_pairs_are_two_rows_of_one_group_and_groups_alike_often() -> None:
    starts = np.array([0, 2, 3, 3, 103])  # of two, of one, of none, of a hundred
    pairs = draw_pairs(starts, 4000, np.random.default_rng(0))
    group = np.searchsorted(starts, pairs, "right") - 1
    assert (group[0] == group[1]).all()
    assert (pairs[0] != pairs[1]).all()
    share = (group[0] == 0).mean()
    assert set(group[0].tolist()) == {0, 3}
    assert abs(share - 0.5) < 0.03  # four deviations of 4,000 fair coins
    assert not draw_pairs(np.array([0, 1, 2]), 9, np.random.default_rng(0)).size
