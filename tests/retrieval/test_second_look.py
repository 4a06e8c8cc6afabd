"""The second look: verified candidates win, and what nobody looked at stays where it was."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from evenplace.errors import IndexFileError, PhotoError, SettingError
from evenplace.photos.table import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, learned_weights, second_look
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.confidence import fit_confidence, witnesses
from evenplace.retrieval.learned_weights import Looked, fit_look
from evenplace.retrieval.local_features import Features
from evenplace.retrieval.packed_features import Packing
from evenplace.retrieval.second_look import LookWeights, SecondLook, refuse_absent

Floats = NDArray[np.float32]
PACKING = Packing(32)


def points(seed: int, count: int = 60) -> Features:
    """The points of a facade that no other seed has."""
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(count, 32)).astype(np.float32)
    where = random.uniform(0.1, 0.9, (count, 2)).astype(np.float32)
    return Features(where, drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Forty photos 30 m apart, each of a facade of its own; descriptors hardly differ."""
    random = np.random.default_rng(0)
    descriptors = 1 + 0.2 * random.normal(size=(40, 16)).astype(np.float32)
    descriptors /= np.linalg.norm(descriptors, axis=1, keepdims=True)
    photos = Photos.from_arrays(
        path=[f"{n}.jpg" for n in range(40)], east=30.0 * np.arange(40), north=np.zeros(40),
        zone=np.full(40, 33),
    )  # fmt: skip
    rows = np.stack([PACKING.pack(points(n)) for n in range(40)])
    places = Grid(20, min_photos=1).partition(photos)
    return index_descriptors(descriptors, photos, places, tmp_path / "index", extra={"xfeat": rows})


def engine(index: Index, count: int = 20, **settings: object) -> Search:
    weights = LookWeights(settled=int(str(settings.pop("settled", 0))))
    return Search(index, shortlist=40, look=SecondLook(index, count, weights=weights), **settings)  # type: ignore[arg-type]


def number(index: Index, row: int) -> int:
    return int(index.paths(np.array([row]))[0].removesuffix(".jpg"))


def test_the_candidate_whose_picture_matches_wins(index: Index) -> None:
    query = index.vectors(np.arange(1))
    plain = Search(index, shortlist=40).search(query, 20)
    fifth = number(index, plain.rows[0, 7])
    found = engine(index).search(query, 20, pictures=[points(fifth)])
    assert number(index, found.rows[0, 0]) == fifth
    assert found.inliers[0, 0] == 60
    assert (found.inliers[0, 1:] < 15).all()
    assert found.looked.tolist() == [20]
    assert sorted(found.rows[0]) == sorted(plain.rows[0])


def test_only_so_many_are_looked_at_and_the_rest_keep_their_order(index: Index) -> None:
    query = index.vectors(np.arange(1))
    plain = Search(index, shortlist=40).search(query, 40)
    last = number(index, plain.rows[0, 12])
    found = engine(index, 10).search(query, 40, pictures=[points(last)])
    assert found.looked.tolist() == [10]
    assert np.isnan(found.inliers[0]).sum() == 30
    assert (found.rows[0, 10:] == plain.rows[0, 10:]).all()
    assert set(found.rows[0, :10]) == set(plain.rows[0, :10])


def test_the_first_few_may_settle_it(index: Index) -> None:
    query = index.vectors(np.arange(1))
    second = number(index, Search(index, shortlist=40).search(query, 2).rows[0, 1])
    found = engine(index, settled=30).search(query, 5, pictures=[points(second)])
    assert found.looked.tolist() == [5]
    assert number(index, found.rows[0, 0]) == second
    unsettled = engine(index, settled=30).search(query, 5, pictures=[points(99)])
    assert unsettled.looked.tolist() == [20]


def test_without_pictures_or_points_answers_stay_as_they_were(index: Index) -> None:
    query = index.vectors(np.arange(3))
    plain = Search(index, shortlist=40).search(query, 5)
    looking = engine(index)
    for found in (looking.search(query, 5), looking.search(query, 5, pictures=["no.jpg"] * 3)):
        np.testing.assert_array_equal(found.rows, plain.rows)
        assert np.isnan(found.inliers).all()
        assert not found.looked.any()


def test_photos_that_are_gone_are_not_refuted(index: Index, tmp_path: Path) -> None:
    query = index.vectors(np.arange(2))
    bare = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "bare"
    )
    plain = Search(bare, shortlist=40).search(query, 5)
    found = engine(bare, settled=30).search(query, 5, pictures=[points(0), points(1)])
    np.testing.assert_array_equal(found.rows, plain.rows)
    assert np.isnan(found.inliers).all()
    assert not found.looked.any()


def test_a_kept_photo_that_could_not_be_read_is_not_refuted_and_a_blank_one_is(
    index: Index, tmp_path: Path
) -> None:
    rows = np.asarray(index.columns["xfeat"]).copy()
    rows[3] = 0  # as `pack_photos` keeps one that nobody could read
    rows[4] = PACKING.pack(Features.nothing(32))
    half = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "half",
        extra={"xfeat": rows},
    )  # fmt: skip
    found = SecondLook(half).count_inliers(points(0), np.array([3, 4, 5]))
    assert np.isnan(found[0])
    assert found[1] == 0
    assert SecondLook(half).pairs(points(0), 3).shape == (0, 4)
    answer = engine(half).answers(half.vectors(np.array([3])), 40, pictures=[points(0)], matches=40)
    told = {hit.row: hit.pairs for hit in answer[0].hits}
    assert [row for row, pairs in told.items() if pairs is None] == [3]
    assert told[4] is not None
    assert len(told[4]) == 0


def wall(seed: int, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """Grey squares nobody else has."""
    drawn = np.random.default_rng(seed).integers(0, 255, (24, 32), np.uint8)
    return Image.fromarray(drawn).resize(size, Image.Resampling.NEAREST).convert("RGB")


def encoded(picture: Image.Image, kind: str = "png") -> bytes:
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no picture", id="text"),
        pytest.param(encoded(wall(0), "jpeg")[:150], id="cut short"),
        pytest.param(encoded(Image.new("RGB", (1, 1))), id="one pixel"),
        pytest.param(encoded(Image.new("RGB", (9000, 2))), id="a line"),
        pytest.param(Image.new("RGB", (640, 480), "white"), id="blank"),
    ],
)
def test_a_query_that_shows_nothing_is_answered_as_without_a_look(
    index: Index, picture: bytes | Image.Image
) -> None:
    query = index.vectors(np.arange(1))
    plain = Search(index, shortlist=40).search(query, 5)
    found = engine(index).search(query, 5, pictures=[picture])
    np.testing.assert_array_equal(found.rows, plain.rows)
    assert not found.looked.any()


def test_a_huge_photo_wins_among_blank_damaged_tiny_and_missing_ones(
    index: Index, tmp_path: Path
) -> None:
    files = [tmp_path / f"{n}.png" for n in range(5)]
    pictures = [
        b"no picture", encoded(Image.new("RGB", (1, 1))), encoded(Image.new("RGB", (640, 480))),
        encoded(wall(1, (4000, 3000))),
    ]  # fmt: skip
    for file, content in zip(files, pictures, strict=False):  # the last one is gone
        file.write_bytes(content)
    photos = Photos.from_arrays(
        path=[str(file) for file in files], east=30.0 * np.arange(5), north=np.zeros(5),
        zone=np.full(5, 33),
    )  # fmt: skip
    places = Grid(20, min_photos=1).partition(photos)
    bare = index_descriptors(index.vectors(np.arange(5)), photos, places, tmp_path / "bare")
    found = engine(bare).search(index.vectors(np.arange(1)), 5, pictures=[wall(1)])
    seen = {Path(bare.paths(found.rows[0, [n]])[0]).stem: found.inliers[0, n] for n in range(5)}
    assert bare.paths(found.rows[0, :1]) == [str(files[3])]
    assert seen["3"] > 30
    assert seen["1"] == seen["2"] == 0
    assert np.isnan([seen["0"], seen["4"]]).all()  # not refuted: nobody saw them


def test_inliers_alone_can_be_the_confidence(index: Index) -> None:
    found = engine(index, confidence="inliers").search(
        index.vectors(np.arange(2)), 5, pictures=[points(0), points(99)]
    )
    assert found.confidence[0] == 60
    assert found.confidence[1] < 15


def test_an_answer_says_what_matched_and_how_many_were_looked_at(index: Index) -> None:
    looking = engine(index)
    answer = looking.answers(index.vectors(np.arange(1)), 3, pictures=[points(0)])[0]
    assert answer.looked == 20
    assert answer.hits[0].inliers == 60
    assert looking.look is not None
    pairs = looking.look.pairs(points(0), answer.hits[0].row)
    assert len(pairs) == 60
    np.testing.assert_allclose(pairs[:, :2], pairs[:, 2:], atol=1e-4)


def test_one_photo_that_is_there_is_enough_to_look(tmp_path: Path) -> None:
    there, gone = str(tmp_path / "there.jpg"), str(tmp_path / "gone.jpg")
    Path(there).touch()
    refuse_absent([gone, there], "photos")
    refuse_absent([], "photos")
    with pytest.raises(PhotoError, match=r"gone.jpg is not there, nor are others; .* --verify 0"):
        refuse_absent([gone], "photos")


@pytest.mark.parametrize("count", [0, -1, 2.5, "5", float("nan")])
def test_looking_at_no_number_of_candidates_is_refused(index: Index, count: Any) -> None:
    with pytest.raises(SettingError, match=f"verify={count!r} looks at no .* 0 to look once"):
        SecondLook(index, count)


def test_it_is_settled_at_so_many_inliers_and_not_before() -> None:
    weights = LookWeights(settled=30)
    assert weights.settles(np.array([0, 30, np.nan], np.float32))
    assert not weights.settles(np.array([29, np.nan], np.float32))
    assert not weights.settles(np.full(5, np.nan, np.float32))
    assert not LookWeights(settled=0).settles(np.array([500], np.float32))


def test_candidates_that_nothing_tells_apart_keep_their_order() -> None:
    order = np.random.default_rng(0).permutation(50)
    alike = Ranking(order, np.ones(50, np.float32))
    inliers = np.tile(np.array([0, 40], np.float32), 25)
    ranked = LookWeights().rank(alike, inliers)
    assert ranked.order.tolist() == [*order[1::2], *order[::2]]


def test_the_best_by_rank_are_looked_at_wherever_they_stand_in_the_pool(index: Index) -> None:
    backwards = Ranking(np.arange(39, -1, -1), np.arange(40, dtype=np.float32))
    rows = np.roll(np.arange(40), 7)
    found = SecondLook(index, 5).rank(rows, backwards, points(number(index, int(rows[37]))))
    assert found.order[0] == 37
    assert found.inliers is not None
    assert found.inliers[0] == 60
    assert np.isfinite(found.inliers).sum() == 5


def test_another_generation_is_looked_at_with_the_same_eyes(index: Index, tmp_path: Path) -> None:
    rows = np.asarray(index.columns["xfeat"])[::-1]
    newer = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "newer",
        extra={"xfeat": rows},
    )  # fmt: skip
    look = SecondLook(index, 7, weights=LookWeights(scale=2.0, settled=33))
    again = look.on(newer)
    assert str(again) == str(look)
    assert again.count_inliers(points(0), np.array([39])) == 60


def test_photos_that_nobody_kept_are_read_once_while_they_are_in_use(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "bare"
    )
    read: list[str] = []

    def find(kind: object, path: str) -> Features:
        read.append(path)
        return points(int(path.removesuffix(".jpg")))

    monkeypatch.setattr(second_look, "features_of", find)
    monkeypatch.setattr(second_look, "_HELD", 2)
    look = SecondLook(bare)
    for row in (0, 1, 0, 2, 0, 1):  # 1 is the one longest not asked for when 2 comes
        assert look.count_inliers(points(number(bare, row)), np.array([row])) == 60
    assert [number(bare, row) for row in (0, 1, 2, 1)] == [int(p.split(".")[0]) for p in read]


def test_pairs_are_shares_of_each_picture_s_own_sides(index: Index, tmp_path: Path) -> None:
    whole = points(3)
    wide, tall = (
        Features(whole.points * np.array(sides, np.float32), whole.descriptors, *sides)
        for sides in ((1.0, 0.5), (0.75, 1.0))
    )
    rows = np.stack([PACKING.pack(tall)] * 40)
    other = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "tall",
        extra={"xfeat": rows},
    )  # fmt: skip
    pairs = SecondLook(other).pairs(wide, 0)
    assert len(pairs) == 60
    np.testing.assert_allclose(pairs[:, :2], whole.points, atol=1e-6)
    np.testing.assert_allclose(pairs[:, 2:], whole.points, atol=1e-4)


def test_a_query_shows_as_many_points_as_are_kept_of_a_photo(index: Index) -> None:
    assert len(SecondLook(index).see(points(0, count=2000))) == PACKING.count == 818
    assert len(SecondLook(index, features="sift").see(wall(0))) == Packing(128).count == 240


def test_points_that_another_version_kept_are_refused(index: Index, tmp_path: Path) -> None:
    old = index_descriptors(
        index.vectors(np.arange(40)), index.photos, index.places, tmp_path / "old",
        extra={"xfeat": np.zeros((40, 16_326), np.uint8)},
    )  # fmt: skip
    with pytest.raises(IndexFileError, match=r"16326 bytes a photo.*index the photos again"):
        SecondLook(old)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_a_look_does_not_care_for_the_unit_of_the_distance(unit: float) -> None:
    distances = unit * np.array([1, 2, 3, 5], np.float32)
    inliers = np.array([4, 40], np.float32)  # four are chance
    ranked = LookWeights().rank(Ranking(np.arange(4), distances), inliers)
    assert ranked.order.tolist() == [1, 0, 2, 3]
    expected = [1 - 2.2 * np.log(31), 0, 2, 4]  # spread of the first two: 0.5
    np.testing.assert_allclose(ranked.distances, expected, rtol=1e-5)


def rehearsed(trust: float, many: int = 300) -> list[Looked]:
    """Queries whose right candidate has many inliers as often as `trust` says."""
    random = np.random.default_rng(0)
    asked = []
    for _ in range(many):
        right = np.zeros(10, bool)
        right[random.integers(0, 10)] = True
        inliers = random.poisson(5, 10).astype(np.float32)
        inliers[right if random.random() < trust else random.integers(0, 10)] = 60
        distances = np.sort(random.uniform(0, 1, 10)).astype(np.float32)
        asked.append(Looked(distances, inliers, right))
    return asked


def test_the_weight_of_matches_follows_how_far_they_can_be_trusted() -> None:
    trusted, doubted = fit_look(rehearsed(1.0)), fit_look(rehearsed(0.1))
    assert trusted.inliers > 2 > 1 > doubted.inliers
    assert 10 <= trusted.settled <= 60
    assert fit_look([]) == LookWeights()


def test_nobody_stops_where_a_better_match_may_come() -> None:
    asked = []
    for one in rehearsed(1.0):
        inliers = np.where(one.right, 120, np.minimum(one.inliers, 9)).astype(np.float32)
        inliers[0] = 60 if not one.right[0] else 120  # a facade that looks alike comes first
        asked.append(Looked(one.distances, inliers, one.right))
    settled = fit_look(asked).settled
    assert 60 < settled <= 120


def looked(inliers: int, candidates: int = 10, *, lost: bool = False) -> Looked:
    """The first candidate matches; lost: it is wrong, and a better one comes after five more."""
    found, right = np.zeros(candidates, np.float32), np.zeros(candidates, bool)
    found[0], found[7:8] = inliers, 400 if lost else 0
    right[7 if lost else 0] = True
    return Looked(np.arange(candidates, dtype=np.float32), found, right)


def test_looking_ends_where_one_right_answer_in_two_hundred_is_lost() -> None:
    def settled(asked: list[Looked]) -> int:
        return learned_weights._settled(asked, LookWeights())

    assert settled([looked(100)] * 20) == 30, "it never ends below thirty"
    assert settled([looked(100)] * 19) == 0, "nineteen say nothing"
    assert settled([looked(30)] * 20) == 30
    assert settled([looked(29)] * 20) == 0
    assert settled([looked(100, candidates=6)] * 20) == 30
    assert settled([looked(100, candidates=5)] * 20) == 0, "nothing is left to stop before"
    assert settled([looked(100)] * 199 + [looked(100, lost=True)]) == 30
    assert settled([looked(100)] * 198 + [looked(100, lost=True)]) == 0
    assert settled([looked(100)] * 198 + [looked(60, lost=True)]) == 61
    assert settled([looked(300)] * 198 + [looked(200, lost=True)]) == 0


def test_matches_are_weighed_where_answers_surprise_least() -> None:
    asked = rehearsed(0.5, many=60)
    found = fit_look(asked)

    def cost(scale: float, inliers: float) -> float:
        start = LookWeights()
        total = np.log(scale / start.scale) ** 2 + np.log(inliers / start.inliers) ** 2
        for one in asked:
            if one.right.any() and not one.right.all():
                worth = np.log1p(np.maximum(one.inliers - 10.0, 0))
                score = inliers * worth - scale * one.distances / np.std(one.distances)
                best = score[one.right].max()
                total += np.log1p(np.exp(score[~one.right] - best).sum())
        return float(total)

    least = cost(found.scale, found.inliers)
    for times in (0.97, 1.03):
        assert least < cost(found.scale * times, found.inliers)
        assert least < cost(found.scale, found.inliers * times)


def test_witnesses_are_weighed_by_what_they_knew() -> None:
    random = np.random.default_rng(0)
    right = random.random(500) < 0.6
    heard = random.normal(size=(500, 4))
    heard[:, 1] += 3 * right
    heard[:, 2] -= 2 * right  # speaks against itself
    heard[:, 3] = 0.7  # always the same
    learned = fit_confidence(heard, right)
    assert learned.weights[1] > 1
    assert learned.weights[2] == learned.weights[3] == 0
    odds = heard @ learned.weights + learned.offset
    assert (1 / (1 + np.exp(-odds))).mean() == pytest.approx(right.mean(), abs=0.02)


def test_witnesses_say_how_far_the_answer_leads() -> None:
    pool = Pool(
        rows=np.arange(3), places=np.arange(3), cosines=np.array([0.9, 0.8, 0.7], np.float32),
        log_posterior=np.zeros(3, np.float32), query=np.ones(4, np.float32),
    )  # fmt: skip
    ranking = Ranking(
        np.array([1, 0, 2]), np.array([-3, -1, 0], np.float32),
        np.array([30, 9, np.nan], np.float32),
    )  # fmt: skip
    same = np.array([False, True, False])
    odds, matches, lead, likeness = witnesses(pool, ranking, np.zeros((3, 2)), same)
    assert odds == pytest.approx(3 - np.logaddexp(1, 0))
    assert (matches, lead) == pytest.approx((np.log(21), np.log(21)))
    assert likeness == pytest.approx(0.8)
