"""Named tests, frames, conditions, text files, mAP and pairs: each against counting."""

import math
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.errors import RunError, SettingError
from evenplace.evaluation.conditions import find_conditions
from evenplace.evaluation.confidence_curves import SOURCES, find_sources, refuse
from evenplace.evaluation.evaluate import compare_pairs, score
from evenplace.evaluation.intervals import Interval, Paired, interval, mcnemar
from evenplace.evaluation.predictions import (
    Predictions,
    find_spots,
    join_predictions,
    read_texts,
    write_texts,
)
from evenplace.evaluation.truth import Truth, average_precisions, first_right, read_test
from evenplace.photos import Photos
from evenplace.photos.nearby import turn
from evenplace.photos.protocols import PROTOCOLS, Protocol
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.spectrum import draw_frequencies
from tests.drawn import photos_at, unit
from tests.evaluation.test_scores import scored


def test_average_precision_is_counted_by_hand() -> None:
    right = np.array([[True, False, True, False], [False, True, False, False], [False] * 4])
    found = average_precisions(right, np.array([2, 5, 0]), 4)
    np.testing.assert_allclose(found, [(1 + 2 / 3) / 2, (1 / 2) / 4, 0])
    np.testing.assert_allclose(average_precisions(right, np.array([2, 5, 0]), 1), [1, 0, 0])


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_a_coin_tossed_as_often_as_the_systems_differ(won: int, lost: int) -> None:
    total = won + lost
    tail = sum(comb(total, i) for i in range(min(won, lost) + 1)) / 2**total
    assert mcnemar(won, lost) == pytest.approx(min(1, 2 * tail))


def test_one_query_more_is_no_difference(tmp_path: Path) -> None:
    base = scored(tmp_path).predictions
    lost = np.flatnonzero(base.first_right != 0)[0]
    better = base.first_right.copy()
    better[lost] = 0
    found = compare_pairs(replace(base, first_right=better), base)
    assert (found.won, found.lost, found.p) == (1, 0, 1.0)
    assert found.gain.mean == pytest.approx(100 / 30)
    assert "1 won, 0 lost" in str(found)


def test_the_fast_bootstrap_is_the_plain_one() -> None:
    rng = np.random.default_rng(0)
    values, spots = (rng.random(200) < 0.7).astype(float), rng.integers(0, 60, 200)
    found = interval(values, spots)
    members = [np.flatnonzero(spots == spot) for spot in np.unique(spots)]
    means = []
    for _ in range(4000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        means.append(100 * values[drawn].mean())
    low, high = np.percentile(means, [2.5, 97.5])
    assert found.low == pytest.approx(low, abs=0.6)
    assert found.high == pytest.approx(high, abs=0.6)


def test_many_different_values_take_the_normal_limit_of_the_same_interval() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(6000)
    limit, spots = interval(values, np.arange(6000)), np.arange(6000)
    plain = 100 * rng.choice(values, (1000, 6000)).mean(axis=1)
    assert limit.high - limit.low == pytest.approx(
        np.ptp(np.percentile(plain, [2.5, 97.5])), rel=0.1
    )
    assert limit == interval(values, spots * 10_000_000)


def test_the_ends_of_an_interval_leave_a_fortieth_on_either_side() -> None:
    tossed = (np.arange(100) % 2).astype(float)
    found = interval(tossed, np.arange(100))
    assert (found.mean, found.low, found.high) == pytest.approx((50, 40, 60))  # Binomial(100, ½)


def test_beyond_two_thousand_spots_the_interval_is_the_normal_one() -> None:
    def normal(values: list[float], spots: list[int]) -> tuple[float, float]:
        mean, total = sum(values) / len(values), 0.0
        for spot in set(spots):
            mine = [value for value, of in zip(values, spots, strict=True) if of == spot]
            total += (sum(mine) - mean * len(mine)) ** 2
        count = len(set(spots))
        error = (total * count / (count - 1)) ** 0.5 / len(values)
        return 100 * (mean - 1.959964 * error), 100 * (mean + 1.959964 * error)

    rng = np.random.default_rng(0)
    spots = np.append(np.arange(2001), rng.integers(0, 2001, 300))
    values = (rng.random(2301) < 0.7).astype(float)
    found = interval(values, spots)
    assert found.mean == pytest.approx(100 * values.mean())
    assert (found.low, found.high) == pytest.approx(normal(values.tolist(), spots.tolist()))
    few = interval(values[:2000], np.arange(2000))
    assert few.low != pytest.approx(normal(values[:2000].tolist(), list(range(2000)))[0], rel=1e-9)


def test_no_share_is_said_to_be_beyond_those_there_are() -> None:
    almost = np.ones(2500)
    almost[7] = 0.0
    assert interval(almost, np.arange(2500)).high == 100
    assert interval(1 - almost, np.arange(2500)).low == 0


def test_what_is_won_is_said_with_a_star_where_it_is_no_chance() -> None:
    sure = Paired(Interval(2.0, 0.5, 3.5), 12, 3, 0.0352)
    assert str(sure) == "+2.0 [+0.5, +3.5] * (12 won, 3 lost, p .035)"
    unsure = Paired(Interval(-1.0, -2.0, 0.0), 1, 9, 0.0009)
    assert str(unsure) == "-1.0 [-2.0, +0.0] (1 won, 9 lost, p < .001)"
    assert str(replace(sure, p=0.001)).endswith("p .001)")
    assert str(replace(sure, p=1.0)).endswith("p 1.000)")
    assert str(sure.gain) == "2.0 [0.5, 3.5]"
    assert not Interval(1.0, 0.0, 2.0).excludes_zero
    assert Interval(-1.0, -2.0, -0.1).excludes_zero


def test_runs_are_compared_in_a_tier_and_at_a_rank(tmp_path: Path) -> None:
    base = scored(tmp_path).predictions
    ours = replace(
        base, first_right=np.arange(30) % 7 - 1, tiers=(np.arange(30) % 3).astype(np.int8)
    )
    theirs = replace(ours, first_right=np.arange(30) % 5 - 1)
    for tier, rank in ((None, 1), (2, 1), (None, 3), (1, 3)):
        won = lost = 0
        for query in range(30):
            if tier in (None, query % 3):
                mine, other = (0 <= query % many - 1 < rank for many in (7, 5))
                won, lost = won + (mine and not other), lost + (other and not mine)
        found = compare_pairs(ours, theirs, tier, rank=rank)
        assert (found.won, found.lost) == (won, lost)
        assert found.gain.mean == pytest.approx(100 * (won - lost) / (30 if tier is None else 10))
    assert compare_pairs(ours, theirs) == compare_pairs(ours, theirs, rank=1)


def with_frames(frames: list[int]) -> Photos:
    nowhere = np.zeros(len(frames))
    return Photos.from_arrays(
        east=nowhere, north=nowhere, frame=np.array(frames), path=[f"{f}.jpg" for f in frames]
    )


def test_frames_count_as_near_within_the_tolerance() -> None:
    queries, database = with_frames([10, 50]), with_frames([8, 12, 13, 40])
    truth = Truth(frames=2)
    assert truth.positives(queries, database).counts.tolist() == [2, 0]
    asked, rows = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    right = truth.right(queries, database, asked, rows)
    assert right.tolist() == [True, True, False, False, False, False, False, False]
    assert str(truth) == "±2 frames"
    with pytest.raises(SettingError, match="frames=-1"):
        Truth(frames=-1)
    for wrong in (180.5, -0.5):
        with pytest.raises(SettingError, match=f"heading={wrong} must be 0 to 180"):
            Truth(heading=wrong)
    assert str(Truth(0.5, 0)) == "0.5 m and 0°"
    assert str(Truth(heading=180, frames=0)) == "±0 frames"
    assert str(Truth()) == "25 m"


def test_a_match_turned_as_far_as_allowed_is_one() -> None:
    queries, one = photos_at(np.zeros((1, 2)), heading=10), np.array([0])
    turned = photos_at(np.zeros((1, 2)), heading=55)
    assert Truth(25, 45).right(queries, turned, one, one).all()
    assert not Truth(25, 44.9).right(queries, turned, one, one).any()


def test_positives_look_the_same_way_when_asked_to() -> None:
    queries = photos_at(np.zeros((1, 2)), heading=0)
    database = Photos.from_arrays(
        east=np.repeat(queries.east, 3), north=np.repeat(queries.north, 3), zone=34,
        heading=[350.0, 60.0, np.nan], path=["a", "b", "c"],
    )  # fmt: skip
    assert Truth(25).positives(queries, database).counts.tolist() == [3]
    near = Truth(25, 45).positives(queries, database)
    assert near.of(0).tolist() == [0]
    assert turn(np.array([350.0]), np.array([20.0]))[0] == 30


def test_queries_without_a_match_are_counted_both_ways(tmp_path: Path) -> None:
    photos = photos_at(np.array([[10.0, 10.0], [70.0, 10.0]]))
    index = index_descriptors(unit(2, 4, 0), photos, Grid(20).partition(photos), tmp_path / "i")
    queries = photos_at(np.array([[12.0, 10.0], [900.0, 900.0]]))
    asked = index.descriptors[[0, 1]].astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    found = score(Search(index), queries, asked, Truth(25))
    order = [index.photos.paths.index(path) for path in ("photo-0000.jpg", "photo-0001.jpg")]
    assert order == [0, 1]
    assert (found.overall.queries, found.answerable.queries) == (2, 1)
    assert found.cost.answerable == 1
    assert (found.recall[1], found.answerable.recall[1]) == (50, 100)
    assert found.mean_precision[1].mean == 100


def test_conditions_part_the_queries() -> None:
    at = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 7.0], [0.0, 900.0]])
    queries = photos_at(at)
    queries = Photos.from_arrays(
        east=queries.east, north=queries.north, zone=34, heading=[10.0, 100.0, np.nan, 350.0],
        time=pa.array(["2020-01-05", "2020-07-05", None, "2020-04-01"]).cast(pa.timestamp("s")),
        note=["NIGHT_092", "day 1", "holiday", ""], path=list("abcd"),
    )  # fmt: skip
    database = photos_at(np.zeros((1, 2)), heading=0)
    found = find_conditions(queries, database, Truth(25).positives(queries, database))
    assert found["light"].tolist() == ["night", "day", "", ""]
    assert found["season"].tolist() == ["winter", "summer", "", "spring"]
    assert found["looking"].tolist() == ["north", "east", "", "north"]
    assert found["turned"].tolist() == ["0-30°", "over 90°", "", ""]
    assert found["away"].tolist() == ["0-5 m", "0-5 m", "5-10 m", ""]


def test_every_month_has_its_season_and_the_south_the_other_one() -> None:
    time = pa.array([f"2020-{month:02d}-15" for month in range(1, 13)]).cast(pa.timestamp("s"))
    names = ["winter"] * 2 + ["spring"] * 3 + ["summer"] * 3 + ["autumn"] * 3 + ["winter"]
    south = dict(zip(["winter", "spring", "summer", "autumn"],
                     ["summer", "autumn", "winter", "spring"], strict=True))  # fmt: skip
    for zone, wanted in ((34, names), (-34, [south[name] for name in names])):
        queries = Photos.from_arrays(
            east=[5e5] * 12, north=[6e6] * 12, zone=zone, time=time, path=list("abcdefghijkl")
        )
        found = find_conditions(queries, queries, Truth(25).positives(queries, queries))
        assert found["season"].tolist() == wanted


def test_a_column_says_which_queries_are_of_the_night() -> None:
    queries = Photos.from_arrays(
        east=[5e5] * 3, north=[6e6] * 3, zone=34, night=pa.array([True, None, False]),
        note=["day", "day", "night"], path=list("abc"),
    )  # fmt: skip
    found = find_conditions(queries, queries, Truth(25).positives(queries, queries))
    assert found["light"].tolist() == ["night", "", "day"]
    assert set(found) == {"light", "away"}, "nothing is known of the others"


def test_a_quarter_of_the_compass_begins_half_way_between_two() -> None:
    headings = [44.9, 45.0, 134.9, 135.0, 224.9, 225.0, 314.9, 315.0]
    queries = Photos.from_arrays(
        east=[5e5] * 8, north=[6e6] * 8, zone=34, heading=headings, path=list("abcdefgh")
    )
    found = find_conditions(queries, queries, Truth(25).positives(queries, queries))
    names = ["north", "east", "east", "south", "south", "west", "west", "north"]
    assert found["looking"].tolist() == names


def test_metres_and_degrees_to_a_match_are_counted_to_their_edges() -> None:
    metres, degrees = [5.0, 5.1, 10.0, 10.1, 25.0], [30.0, 30.1, 60.0, 90.0, 90.1]
    far = [5e5 + 1000 * at for at in range(5)]  # each beside a photo of its own
    database = Photos.from_arrays(
        east=far, north=[6e6] * 5, zone=34, heading=[0.0] * 5, path=list("abcde")
    )
    east = [spot + away for spot, away in zip(far, metres, strict=True)]
    queries = Photos.from_arrays(
        east=east, north=[6e6] * 5, zone=34, heading=degrees, path=list("vwxyz")
    )
    found = find_conditions(queries, database, Truth(25).positives(queries, database))
    assert found["away"].tolist() == ["0-5 m", "5-10 m", "5-10 m", "10-25 m", "10-25 m"]
    assert found["turned"].tolist() == ["0-30°", "30-60°", "30-60°", "60-90°", "over 90°"]


def test_reliability_is_how_scattered_the_answers_place_is(tmp_path: Path) -> None:
    rows = np.concatenate([np.repeat(unit(1, 8, 0), 3, axis=0), unit(3, 8, 1)])
    photos = photos_at(np.array([(x, float(at)) for x in (2, 502) for at in (2, 3, 4)]))
    index = index_descriptors(rows, photos, Grid(20).partition(photos), tmp_path / "index")
    engine = Search(index)
    judged = find_sources(engine, next(iter(engine.batches(rows[[0, 3]], 1))))["r"]
    points = draw_frequencies("paper", 8).astype(np.float64)  # (F, 8)
    spread = np.abs(np.exp(1j * rows[3:].astype(np.float64) @ points.T).mean(axis=0)).mean()
    np.testing.assert_allclose(judged, [1, 1 / spread], rtol=1e-3)  # rows are kept as float16


def test_an_answer_in_no_place_is_judged_as_a_place_of_its_own(tmp_path: Path) -> None:
    photos = photos_at(np.array([(2.0, 2.0), (3.0, 2.0), (502.0, 2.0), (902.0, 2.0)]))
    places = Grid(20, min_photos=2).partition(photos)
    index = index_descriptors(unit(4, 8, 0), photos, places, tmp_path / "index")
    lonely = np.flatnonzero(index.labels < 0)
    asked = index.vectors(lonely) / np.linalg.norm(index.vectors(lonely), axis=1, keepdims=True)
    engine = Search(index, exact=True)
    found = find_sources(engine, next(iter(engine.batches(asked, 1))))
    np.testing.assert_allclose(found["cfd"], [0, 0], atol=1e-4)
    np.testing.assert_allclose(found["r"], [1, 1], rtol=1e-3)


def test_without_a_hit_none_is_right() -> None:
    assert first_right(np.empty((2, 0), bool)).tolist() == [-1, -1]


def test_seasons_turn_round_in_the_south() -> None:
    time = pa.array(["2020-01-05"]).cast(pa.timestamp("s"))
    queries = Photos.from_arrays(east=[5e5], north=[6e6], zone=-34, time=time, path=["a"])
    found = find_conditions(queries, queries, Truth(25).positives(queries, queries))
    assert found["season"].tolist() == ["summer"]
    assert "light" not in found


def test_every_source_judges_the_same_answers(tmp_path: Path) -> None:
    scores = scored(tmp_path, rerank="fused")
    run = scores.predictions
    assert set(run.sources) == set(SOURCES)
    assert set(scores.knowing) == {"own", *SOURCES}
    assert {found.right for found in scores.knowing.values()} == {int(run.right.sum())}
    np.testing.assert_allclose(run.sources["mass"], run.confidence, atol=1e-5)  # the engine's own
    assert (run.sources["l2"] <= 0).all()
    assert ((run.sources["posterior"] >= 0) & (run.sources["posterior"] <= 1)).all()


def test_the_source_cfd_is_the_reranker_s_own_distance(tmp_path: Path) -> None:
    run = scored(tmp_path, rerank="cfd").predictions
    np.testing.assert_allclose(-run.sources["cfd"], run.hit_distances[:, 0], atol=2e-3)


def test_text_files_hold_what_was_predicted(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions
    right = [paths[good] for paths, good in zip(run.hit_paths, run.hit_right, strict=True)]
    assert write_texts(run, tmp_path / "txt", right) == 30
    again = read_texts(tmp_path / "txt")
    assert [one.query for one in again] == run.paths
    for number, one in enumerate(again):
        assert list(one.hits) == [path for path in run.hit_paths[number] if path]
        first = [path in one.positives for path in one.hits].index(True) if one.positives else -1
        assert first == run.first_right[number]
    assert read_texts(tmp_path / "txt" / "000.txt") == again[:1]
    text = (tmp_path / "txt" / "029.txt").read_text()
    assert text.startswith(f"Query path:\n{run.paths[29]}\n\nPredictions paths:\n")
    assert text.endswith("\n")
    write_texts(run[np.arange(2)], tmp_path / "given", [["a.jpg"], []])
    assert [one.positives for one in read_texts(tmp_path / "given")] == [("a.jpg",), ()]
    with pytest.raises(RunError, match=r"no \.txt"):
        read_texts(tmp_path / "empty")
    (tmp_path / "bad.txt").write_text("hello\n")
    with pytest.raises(RunError, match="Query path:"):
        read_texts(tmp_path / "bad.txt")


def test_spots_of_one_map_are_shared_between_seeds(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions
    apart, together = (join_predictions([run, run], one_map=one) for one in (False, True))
    assert len(np.unique(together.clusters)) == len(np.unique(find_spots(run.positions)))
    assert len(np.unique(apart.clusters)) == 2 * len(np.unique(together.clusters))
    early, late = run[np.arange(9)], run[np.arange(9, 30)]
    halves = join_predictions([replace(early, sources={"l2": early.sources["l2"]}), late])
    assert list(halves.sources) == ["l2"]
    np.testing.assert_array_equal(halves.sources["l2"], run.sources["l2"])
    assert halves.paths == run.paths
    assert join_predictions([run]).sources.keys() == run.sources.keys()
    bare = join_predictions([early, replace(late, descriptors=None)])
    assert bare.descriptors is None
    some = together[np.array([1, 3])]
    assert some.paths == [run.paths[1], run.paths[3]]
    assert some.sources["l2"].shape == (2,)


def test_a_spot_is_a_square_of_ten_metres_in_one_zone() -> None:
    dice = np.random.default_rng(0)
    positions, zones = dice.uniform(-40, 40, (200, 2)), dice.integers(30, 33, 200)
    found = find_spots(positions, zones)
    squares = [
        (zone, int(east // 10), int(north // 10))
        for zone, (east, north) in zip(zones.tolist(), positions.tolist(), strict=True)
    ]
    for one in range(200):
        for other in range(one):
            assert (found[one] == found[other]) == (squares[one] == squares[other])
    assert sorted(set(found.tolist())) == list(range(len(set(squares))))
    assert find_spots(np.empty((0, 2))).tolist() == []


def test_an_answer_in_another_zone_is_half_around_the_earth_off(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions[np.arange(2)]
    away = run.hit_positions[0, 0] - run.positions[0]
    assert run.hit_metres[0, 0] == pytest.approx(math.hypot(*away))
    assert run.errors[0] == pytest.approx(math.dist(run.estimates[0], run.positions[0]))
    moved = replace(run, zones=run.zones + 1)
    assert moved.errors.tolist() == [2e7, 2e7]
    assert moved.hit_metres[0, 0] == 2e7
    gone = replace(moved, estimates=np.full((2, 2), np.nan))
    assert np.isnan(gone.errors).all()


def test_a_query_without_an_answer_is_less_sure_than_all_others() -> None:
    found = refuse(np.array([3.0, np.nan, -2.0], np.float32))
    assert found.tolist() == pytest.approx([3.0, -2.002001, -2.0], abs=1e-7)
    assert refuse(np.array([0.0, np.nan], np.float32))[1] == pytest.approx(-1e-6)
    assert refuse(np.array([np.nan], np.float32)).tolist() == pytest.approx([-1e-6])


def test_predictions_of_another_version_say_so(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"path": ["a"]}), tmp_path / "p.parquet")
    with pytest.raises(RunError, match="evaluate again"):
        Predictions.read(tmp_path / "p.parquet")


def test_a_named_test_wants_its_own_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = photos_at(np.array([[10.0, 10.0], [70.0, 10.0]]))
    index_descriptors(unit(2, 4, 0), photos, Grid(20).partition(photos), tmp_path / "index")
    tiny = Protocol(lambda path: (photos, photos[:1]), 2, (1,))
    large = Protocol(lambda path: (photos_at(np.zeros((3, 2))), photos[:1]), 3, (1,))
    for name, protocol in (("tiny", tiny), ("large", large)):
        monkeypatch.setitem(PROTOCOLS, name, protocol)
    test = read_test(tmp_path / "index", "tiny", tmp_path)
    assert len(test.queries) == 1
    with pytest.raises(RunError, match="2 photos and large has 3"):
        read_test(tmp_path / "index", "large", tmp_path)
    assert len(read_test(tmp_path / "index", "large", tmp_path, True).database) == 3
    small = Protocol(lambda path: (photos[:1], photos[:1]), 1, (1,))
    monkeypatch.setitem(PROTOCOLS, "small", small)
    with pytest.raises(RunError, match="2 photos and small has 1; index that database first"):
        read_test(tmp_path / "index", "small", tmp_path, True)


def test_recall_is_that_of_vpr_methods_evaluation(tmp_path: Path) -> None:
    """Its definition, written again: Euclidean neighbours, positives by scikit-learn's radius."""
    import faiss
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(3)
    photos, queries = (photos_at(rng.uniform(0, 300, (n, 2)).round(1)) for n in (150, 60))
    stored, asked = unit(150, 12, 1), unit(60, 12, 2)
    index = index_descriptors(stored, photos, Grid(20).partition(photos), tmp_path / "i")
    found = score(Search(index, exact=True), queries, asked, Truth(25))

    near = NearestNeighbors().fit(index.photos.positions)
    positives = near.radius_neighbors(queries.positions, 25, return_distance=False)
    flat = faiss.IndexFlatL2(12)
    flat.add(np.ascontiguousarray(index.descriptors, np.float32))
    _, predictions = flat.search(asked, 20)
    recalls = np.zeros(4)
    for query, rows in enumerate(predictions):
        for i, n in enumerate((1, 5, 10, 20)):
            if np.isin(rows[:n], positives[query]).any():
                recalls[i:] += 1
                break
    assert list(found.recall.values()) == pytest.approx(list(recalls / 60 * 100))
