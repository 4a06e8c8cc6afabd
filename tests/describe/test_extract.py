"""A database described in parts: ranks share them, and what is there is not done again."""

from pathlib import Path

import numpy as np
import pytest

from evenplace.describe import extraction
from evenplace.describe.describer import Described, describe_photos
from evenplace.describe.extraction import extract_photos, read_extracted
from evenplace.errors import PhotoError
from evenplace.networks.network import PlaceNetwork
from tests.training.town import draw_town, small_network


def test_parts_of_two_ranks_are_the_whole_and_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = list(draw_town(tmp_path / "p", 22, 60).paths)
    broken = Path(paths[9])
    broken.write_bytes(b"no picture")
    network = small_network().eval()
    whole = describe_photos(network, paths)
    extract_photos(network, paths, tmp_path / "parts", rank=0, ranks=2, part=5)
    with pytest.raises(PhotoError, match="photos from 5 on"):
        read_extracted(network, paths, tmp_path / "parts", part=5)
    extract_photos(network, paths, tmp_path / "parts", rank=1, ranks=2, part=5)
    found = read_extracted(network, paths, tmp_path / "parts", part=5)
    np.testing.assert_array_equal(found.rows, whole.rows)
    np.testing.assert_allclose(found.descriptors, whole.descriptors, atol=1e-5)
    assert [one.path for one in found.skipped] == [str(broken)]

    next((tmp_path / "parts").glob("*/part-000003.npz")).unlink()
    made: list[int] = []

    def counted(network: PlaceNetwork, paths: list[str]) -> Described:
        made.append(len(paths))
        return describe_photos(network, paths)

    monkeypatch.setattr(extraction, "describe_photos", counted)
    extract_photos(network, paths, tmp_path / "parts", part=5)
    assert made == [5]
