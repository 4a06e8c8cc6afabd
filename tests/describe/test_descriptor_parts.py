"""A database described in parts: ranks share them, and what is there is not done again."""

from pathlib import Path

import numpy as np
import pytest

from evenplace.describe.describer import Described, Describer
from evenplace.describe.descriptor_parts import Parts, describe_parts
from evenplace.errors import PhotoError
from tests.training.town import draw_town, small_network


def test_parts_of_two_ranks_are_the_whole_and_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = list(draw_town(tmp_path / "p", 22, 60).paths)
    broken = Path(paths[9])
    broken.write_bytes(b"no picture")
    describer = Describer(small_network(), small_network(), batch=5)
    whole = describer.describe(paths)

    def rank(number: int, ranks: int) -> Parts:
        return describe_parts(describer, paths, tmp_path / "p2", rank=number, ranks=ranks, part=5)

    with pytest.raises(PhotoError, match="photos from 5 on"):
        _ = rank(0, 2).rows
    found = rank(1, 2)
    np.testing.assert_array_equal(found.rows, whole.rows)
    assert [one.path for one in found.skipped] == [str(broken)]
    assert found.skipped == whole.skipped
    np.testing.assert_array_equal(found.descriptors[:], whole.descriptors)  # the same batches
    np.testing.assert_array_equal(np.concatenate(list(found)), found.descriptors[:])

    found.about(3).unlink()
    made: list[int] = []
    plain = Describer.describe

    def counted(self: Describer, paths: list[str]) -> Described:
        made.append(len(paths))
        return plain(self, paths)

    monkeypatch.setattr(Describer, "describe", counted)
    rank(0, 1)
    assert made == [5]


def test_every_rank_has_work_and_batches_stay_whole(tmp_path: Path) -> None:
    paths = list(draw_town(tmp_path / "p", 22, 60).paths)
    describer = Describer(small_network(), batch=4)
    parts = [describe_parts(describer, paths, tmp_path, rank=n, ranks=3) for n in range(3)]
    assert [(one.count, one.part) for one in parts] == [(3, 8)] * 3
    np.testing.assert_array_equal(parts[0].descriptors[:], describer.describe(paths).descriptors)


def test_rows_of_parts_are_read_as_of_an_array(tmp_path: Path) -> None:
    paths = list(draw_town(tmp_path / "p", 13, 60).paths)
    Path(paths[2]).write_bytes(b"no picture")
    describer = Describer(small_network(), small_network(), batch=4)
    parts = describe_parts(describer, paths, tmp_path / "parts", part=4)
    whole, dim = parts.descriptors[:], describer.dims[0]
    assert whole.shape == parts.descriptors.shape == (12, 2 * dim)
    for rows in ([11, 0, 5, 5], slice(3, 9), np.array([], int), np.arange(12)[::-1]):
        np.testing.assert_array_equal(parts.descriptors[rows], whole[rows])
        for half, found in zip(np.split(whole, 2, axis=1), parts.split(), strict=True):
            np.testing.assert_array_equal(found[rows], half[rows])
