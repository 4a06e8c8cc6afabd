"""What `evaluate` says found the places: whoever it was."""

from pathlib import Path

import numpy as np
import pytest

from tests.documents.typist import in_this_process
from tests.drawn import photos_at


def typed(*words: object) -> str:
    said, ended = in_this_process(["evenplace", *map(str, words)])
    assert ended == 0, said
    return said


def test_prototypes_that_were_learned_are_named_by_their_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    spots = draw.uniform(0, 200, (120, 2))
    looks = np.cos(spots @ draw.normal(0, 0.04, (2, 16)) + draw.uniform(0, 6, 16))
    np.save("looks.npy", (looks / np.linalg.norm(looks, axis=1, keepdims=True)).astype(np.float32))
    photos = photos_at(spots)
    rows = [f"{name},{east},{north},34" for name, (east, north)
            in zip(photos.paths, photos.positions, strict=True)]  # fmt: skip
    Path("photos.csv").write_text("\n".join(["path,east,north,zone", *rows]))
    given = ("--descriptors", "looks.npy")
    typed("index", "run", "--database", "photos.csv", *given)
    asked = ("evaluate", "run", "--queries", "photos.csv", *given)
    assert "places found by means of the database's own places" in typed(*asked)
    for kind in ("softmax", "low-visit-bias"):
        typed("tune", "run", "--set", f"prototypes={kind}")
        assert f"places found by prototypes learned by {kind}" in typed(*asked)
