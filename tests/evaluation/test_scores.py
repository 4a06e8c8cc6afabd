"""Recall and its company, against brute force and against numbers one can count."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.evaluation.evaluate import compare, query_places, score
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Scores, join_scores, recalls
from evenplace.evaluation.truth import Truth, first_right
from evenplace.evaluation.uncertainty import interval
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.study.cost_tables import read_bytes
from tests.drawn import photos_at, unit


def scored(tmp_path: Path, seed: int = 0, rerank: str = "l2") -> Scores:
    """30 queries against 80 photos in a square of 200 m."""
    rng = np.random.default_rng(0)
    photos = photos_at(rng.uniform(0, 200, (80, 2)))
    index = index_descriptors(
        unit(80, 8, 1), photos, Grid(20).partition(photos), tmp_path / f"{seed}-{rerank}"
    )
    engine = Search(index, shortlist=10, rerank=rerank)
    queries = photos_at(np.random.default_rng(seed + 5).uniform(0, 200, (30, 2)))
    return score(engine, queries, unit(30, 8, seed + 2), Truth(25), name="test")


def places_by_hand(spots: list[list[float]]) -> dict[tuple[int, int], str]:
    """Each cell of 20 m that was photographed, and its tier: ranked by photos, ties by position."""
    cells: dict[tuple[int, int], int] = {}
    for east, north in spots:
        cell = (int(east // 20), int(north // 20))
        cells[cell] = cells.get(cell, 0) + 1
    ranked = sorted(cells, key=lambda cell: (-cells[cell], cell))
    third = int(0.3 * len(ranked))
    head, tail = third, len(ranked) - third
    return {
        cell: "head" if rank < head else "middle" if rank < tail else "tail"
        for rank, cell in enumerate(ranked)
    }


def test_recall_equals_brute_force_overall_and_in_every_tier(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    run = scores.predictions
    tier_of = places_by_hand(np.random.default_rng(0).uniform(0, 200, (80, 2)).tolist())
    right: dict[tuple[str, int], list[bool]] = {}
    for query, (east, north) in enumerate(run.positions.tolist()):
        gaps = [np.hypot(*(spot - run.positions[query])) for spot in run.hit_positions[query]]
        found = [g <= 25 and p != "" for g, p in zip(gaps, run.hit_paths[query], strict=True)]
        own = tier_of.get((int(east // 20), int(north // 20)))
        for rank in (1, 5, 10, 20):
            for group in ("overall", *([own] if own else [])):
                right.setdefault((group, rank), []).append(any(found[:rank]))
    unplaced = [spot for spot in run.positions.tolist()
                if (int(spot[0] // 20), int(spot[1] // 20)) not in tier_of]  # fmt: skip
    assert unplaced, "a query over the line goes to the nearest place: counted apart below"
    for (group, rank), found in right.items():
        if group == "overall":
            assert scores.recall[rank] == pytest.approx(100 * np.mean(found))
    inside = run[np.array([spot not in unplaced for spot in run.positions.tolist()])]
    for tier, name in enumerate(("head", "middle", "tail")):
        for rank in (1, 5, 10, 20):
            first = inside.first_right[inside.tiers == tier]
            assert ((first >= 0) & (first < rank)).tolist() == right.get((name, rank), [])
            mine = run.first_right[run.tiers == tier]
            share = 100 * np.mean((mine >= 0) & (mine < rank)) if len(mine) else np.nan
            assert scores.tier(name).recall[rank] == pytest.approx(share, nan_ok=True)


def test_what_a_query_reads_is_the_photos_of_its_shortlist(tmp_path: Path) -> None:
    photos = photos_at(np.random.default_rng(0).uniform(0, 200, (80, 2)))
    places = Grid(20).partition(photos)
    engine = Search(
        index_descriptors(unit(80, 8, 1), photos, places, tmp_path / "index"), shortlist=10
    )
    queries = photos_at(np.random.default_rng(5).uniform(0, 200, (30, 2)))
    scores = score(engine, queries, unit(30, 8, 2), Truth(25))
    candidates = 0
    for shortlist in engine.best_places(unit(30, 8, 2), 10).tolist():
        candidates += sum(label in shortlist for label in engine.index.labels.tolist())
    assert read_bytes(scores.cost.pool_size, scores.cost.dim) == round(candidates / 30 * 8 * 4)


def test_tiers_hold_every_tiered_query_once(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    tiered = sum(scores.tier(tier).queries for tier in ("head", "middle", "tail"))
    assert tiered + scores.untiered == scores.overall.queries
    assert sum(part.queries for part in scores.by_query.values()) == scores.overall.queries


def test_no_ranking_beats_the_pool(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    assert scores.recall[20] <= scores.pool.recall[1] + 1e-9


def test_scores_survive_the_disk(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    scores.write(tmp_path)
    again = Scores.read(tmp_path)
    assert again.as_dict() == scores.as_dict()
    np.testing.assert_array_equal(again.places.counts, scores.places.counts)
    assert json.loads(json.dumps(scores.as_dict(), allow_nan=False))
    assert scores.predictions.descriptors is not None
    for name in ("positions", "hit_distances", "hit_right", "first_right", "tiers", "descriptors"):
        np.testing.assert_array_equal(
            getattr(again.predictions, name), getattr(scores.predictions, name)
        )
    assert again.predictions.hit_paths.tolist() == scores.predictions.hit_paths.tolist()


def test_scores_of_another_version_and_none_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"does not exist; evaluate first: evenplace evaluate"):
        Scores.read(tmp_path)
    scored(tmp_path).write(tmp_path)
    kept = json.loads((tmp_path / "scores.json").read_text())
    (tmp_path / "scores.json").write_text(json.dumps(kept | {"version": 2}))
    with pytest.raises(RunError, match="another version of EvenPlace; evaluate again"):
        Scores.read(tmp_path)


def test_joined_scores_count_all_queries(tmp_path: Path) -> None:
    parts = [scored(tmp_path, seed) for seed in (0, 1)]
    joined = join_scores(parts)
    assert joined.overall.queries == 60
    mean = (parts[0].recall[1] + parts[1].recall[1]) / 2
    assert joined.recall[1] == pytest.approx(mean)
    spots = [len(np.unique(part.predictions.clusters)) for part in parts]
    assert len(np.unique(joined.predictions.clusters)) == sum(spots)


def test_a_run_wins_nothing_over_itself(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions
    gain = compare(run, run)
    assert (gain.mean, gain.low, gain.high) == (0, 0, 0)
    assert not gain.excludes_zero


def test_different_queries_cannot_be_compared(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions
    other = Predictions(**(vars(run) | {"paths": ["other.jpg"] * len(run)}))
    with pytest.raises(PhotoError, match="same queries"):
        compare(run, other)


def test_a_query_over_the_line_belongs_to_the_nearest_place(tmp_path: Path) -> None:
    photos = photos_at(np.array([[10.0, 10.0], [70.0, 10.0], [75.0, 10.0]]))
    index = index_descriptors(unit(3, 4, 0), photos, Grid(20).partition(photos), tmp_path / "i")
    queries = photos_at(np.array([[10.0, 12.0], [25.0, 10.0], [500.0, 10.0]]))
    places, tiers = query_places(Search(index), queries, 25)
    own = index.places.locate(photos)
    assert places.tolist() == [own[0], own[0], -1]
    assert tiers[2] == -1


@pytest.mark.parametrize("gap", [24.999, 25.0])
def test_the_radius_counts_itself(gap: float) -> None:
    queries, database = photos_at(np.array([[0.0, 0.0]])), photos_at(np.array([[gap, 0.0]]))
    assert Truth(25).right(queries, database, np.array([0]), np.array([0])).all()
    assert Truth(25).positives(queries, database).counts.all()


def test_beyond_the_radius_or_looking_away_is_wrong() -> None:
    queries, near = (
        photos_at(np.zeros((1, 2)), heading=350),
        photos_at(np.zeros((1, 2)), heading=20),
    )
    one = np.array([0])
    assert Truth(25, heading=45).right(queries, near, one, one).all()
    assert not Truth(25, heading=20).right(queries, near, one, one).any()
    assert not Truth(25).right(queries, photos_at(np.array([[25.01, 0.0]])), one, one).any()
    assert not Truth(25).right(queries, near, one, np.array([-1])).any()


def test_a_radius_must_be_a_distance() -> None:
    with pytest.raises(SettingError, match="radius=0"):
        Truth(0)


def test_other_zones_are_never_near() -> None:
    here, one = photos_at(np.zeros((1, 2))), np.array([0])
    there = Photos.from_arrays(east=here.east, north=here.north, zone=35)
    assert not Truth(25).right(here, there, one, one).any()
    assert not Truth(25).positives(here, there).counts.any()


def test_the_first_right_hit_is_found() -> None:
    right = np.array([[False, True, True], [False, False, False], [True, False, False]])
    assert first_right(right).tolist() == [1, -1, 0]
    counted = recalls(first_right(right), np.arange(3))
    assert counted.recall[1] == pytest.approx(100 / 3)
    assert counted.recall[5] == pytest.approx(200 / 3)


def test_an_interval_holds_its_mean_and_narrows_with_more_spots() -> None:
    rng = np.random.default_rng(0)
    few, many = (interval((rng.random(n) < 0.6).astype(float), np.arange(n)) for n in (40, 4000))
    assert few.low <= few.mean <= few.high
    assert many.high - many.low < (few.high - few.low) / 4


def test_queries_of_one_spot_count_as_one() -> None:
    values = np.repeat((np.arange(20) % 2).astype(float), 50)
    spots = np.repeat(np.arange(20), 50)
    alone = interval(values, np.arange(1000))
    together = interval(values, spots)
    assert together.high - together.low > 3 * (alone.high - alone.low)


def test_no_queries_give_no_number() -> None:
    nothing = interval(np.empty(0), np.empty(0, np.int64))
    assert np.isnan(nothing.mean)
    assert not nothing.excludes_zero


def test_the_classifier_is_asked_for_n_places_whatever_the_shortlist(tmp_path: Path) -> None:
    """LR@N with a shortlist of one: an oracle of loops over all prototypes."""
    rng = np.random.default_rng(0)
    photos = photos_at(rng.uniform(0, 200, (80, 2)))
    places, own = Grid(20).partition(photos), unit(80, 8, 1)
    index = index_descriptors(own, photos, places, tmp_path / "index")
    queries, asked = photos_at(rng.uniform(0, 200, (30, 2))), unit(30, 8, 2)
    found = [
        score(Search(index, shortlist=kept), queries, asked, Truth(25)).classifier.recall
        for kept in (1, 20)
    ]
    for n in (1, 5, 10, 20):
        right = 0
        for query in range(30):
            scores = [float(asked[query] @ mean) for mean in index.prototypes]
            best = sorted(range(len(places)), key=lambda place: -scores[place])[:n]
            gaps = [np.hypot(*(places.centres[p] - queries.positions[query])) for p in best]
            right += min(gaps) <= 25
        assert found[0][n] == found[1][n] == pytest.approx(100 * right / 30)
    assert found[0][20] > found[0][1]
