"""Recall and its company, against brute force and against numbers one can count."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.evaluation import cost as costs
from evenplace.evaluation.cost import (
    Cost,
    Latency,
    latencies,
    mean_cost,
    measure_cost,
    time_stages,
)
from evenplace.evaluation.evaluate import compare, query_places, score
from evenplace.evaluation.intervals import interval
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Scores, join_scores, recalls, summarise
from evenplace.evaluation.truth import Truth, first_right
from evenplace.photos import Photos
from evenplace.photos.table import Skipped
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.study.tables import read_bytes
from tests.drawn import photos_at, unit

evaluate_module = import_module("evenplace.evaluation.evaluate")  # the name is a function's too


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
    scores = replace(scored(tmp_path), skipped=(Skipped("a.jpg", "it is no picture"),))
    scores.write(tmp_path)
    again = Scores.read(tmp_path)
    assert again.skipped == scores.skipped
    assert again.as_dict() == scores.as_dict()
    np.testing.assert_array_equal(again.places.counts, scores.places.counts)
    assert json.loads(json.dumps(scores.as_dict(), allow_nan=False))
    assert scores.predictions.descriptors is not None
    for name in ("positions", "hit_distances", "hit_right", "first_right", "tiers", "descriptors"):
        np.testing.assert_array_equal(
            getattr(again.predictions, name), getattr(scores.predictions, name)
        )
    assert again.predictions.hit_paths.tolist() == scores.predictions.hit_paths.tolist()


def test_the_file_of_scores_can_be_read_by_a_person(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    scores.write(tmp_path)
    text = (tmp_path / "scores.json").read_text()
    assert text.startswith('{\n "version": 3,\n "name": "test",\n "truth": {\n  "radius": 25,')


def test_position_errors_are_of_the_answers_that_came(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions
    estimates = run.positions + np.arange(30)[:, None] * [[3.0, 4.0]]  # 0, 5, 10 … 145 m
    estimates[0] = np.nan
    known = replace(run, estimates=estimates)
    scores = scored(tmp_path)
    found = summarise("test", known, scores.places, scores.cost, scores.truth).position
    assert (found.median, found.p90) == pytest.approx((75.0, 131.0))
    none = replace(run, estimates=np.full((30, 2), np.nan))
    nothing = summarise("test", none, scores.places, scores.cost, scores.truth).position
    assert np.isnan([nothing.median, nothing.p90]).all()


def test_scores_say_what_finds_the_places(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    means = np.zeros(len(scores.places), np.int64)
    plain = replace(scores, places=replace(scores.places, extra={}))
    assert plain.reached_by() == "the classifier"
    for all_of_them, said in ((means, "the classifier"),
                              (means + 1, "means of the database's own places")):  # fmt: skip
        places = replace(scores.places, extra={"means": all_of_them})
        assert replace(scores, places=places).reached_by() == said
    means[0] = 1
    run = replace(
        scores.predictions,
        places=np.array([0, 0, 1, 1, *[-1] * 26]),
        in_pool=np.array([True, False, True, True, *[False] * 26]),
    )
    mixed = replace(scores, predictions=run, places=replace(scores.places, extra={"means": means}))
    assert mixed.reached_by() == (
        "the classifier (2 queries, pool 100.0 %) and "
        "means of the database's own places (2 queries, pool 50.0 %)"
    )
    nobody = replace(mixed, predictions=replace(run, places=np.full(30, 1)))
    assert nobody.reached_by().endswith("(0 queries, pool none)")


def test_descriptors_are_kept_where_they_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate_module, "KEPT", 30 * 8)
    assert scored(tmp_path).predictions.descriptors is not None
    monkeypatch.setattr(evaluate_module, "KEPT", 30 * 8 - 1)
    assert scored(tmp_path).predictions.descriptors is None


def test_a_place_whose_centre_is_a_radius_away_is_found(tmp_path: Path) -> None:
    photos = photos_at(np.array([[10.0, 10.0], [110.0, 10.0]]))
    index = index_descriptors(unit(2, 4, 0), photos, Grid(20).partition(photos), tmp_path / "i")
    queries = photos_at(np.array([[35.0, 10.0], [35.01, 10.0]]))
    run = score(Search(index), queries, unit(2, 4, 0)[[0, 0]], Truth(25)).predictions
    assert run.first_centre.tolist() == [0, -1]
    assert run.estimates.shape == (2, 2)


def test_an_engine_without_a_network_is_asked_by_descriptors(tmp_path: Path) -> None:
    photos = photos_at(np.zeros((1, 2)))
    index = index_descriptors(unit(1, 4, 0), photos, Grid(20).partition(photos), tmp_path / "i")
    with pytest.raises(SettingError, match="no describer; score descriptors with `score`"):
        evaluate_module.evaluate(Search(index), photos)


class Timed:
    """An engine that takes as many milliseconds as it was asked times, and cannot read one."""

    describer: object = object()

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def answer(self, path: str, k: int) -> SimpleNamespace:
        self.asked.append((path, k))
        if path == "bad":
            raise PhotoError("it cannot be read")
        return SimpleNamespace(elapsed_ms={"rank": float(len(self.asked))})


def test_stages_are_timed_on_photos_spread_over_all_of_them() -> None:
    paths = [str(number) for number in range(105)]
    engine: Any = Timed()
    found = time_stages(engine, paths, 10)
    assert engine.asked == [(str(number), 5) for number in range(0, 105, 10)]
    assert found == {"rank": Latency(6.5, pytest.approx(10.55))}  # type: ignore[arg-type]
    engine = Timed()
    assert time_stages(engine, ["bad", "a", "b"], 10) == {"rank": Latency(3.0, 3.0)}
    assert time_stages(Timed(), ["a"], 1) == {"rank": Latency(1.0, 1.0)}  # type: ignore[arg-type]
    assert time_stages(Timed(), ["bad"]) == {}  # type: ignore[arg-type]
    assert time_stages(engine, [], 10) == time_stages(engine, paths, 0) == {}
    engine.describer = None
    assert time_stages(engine, paths, 10) == {}


def test_the_first_time_is_left_out_where_there_are_others() -> None:
    found = latencies({"a": np.array([9.0, 1, 2, 3]), "b": np.array([7.0]), "c": np.empty(0)})
    assert found["a"] == Latency(2.0, pytest.approx(2.9))  # type: ignore[arg-type]
    assert found["b"] == Latency(7.0, 7.0)
    assert set(found) == {"a", "b"}


def test_without_a_network_times_are_those_of_the_batch(tmp_path: Path) -> None:
    cost = scored(tmp_path).cost
    assert cost.latency
    assert cost.median_ms == sum(stage.median_ms for stage in cost.latency.values()) > 0
    assert (cost.parameters, cost.dim, cost.unreachable) == (0, 8, 0)


def test_memory_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    index = SimpleNamespace(labels=np.array([0, -1, 3, -1]))
    engine: Any = SimpleNamespace(
        index=index, index_bytes=7, describer=SimpleNamespace(parameters=5),
        ranking=SimpleNamespace(dim=8),
    )  # fmt: skip
    how: dict[str, Any] = {"answerable": 1, "skipped": 2, "pool_size": 3.0, "latency": {}}
    cost = measure_cost(engine, **how)
    assert (cost.unreachable, cost.parameters, cost.index_bytes) == (2, 5, 7)
    assert cost.resident_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    monkeypatch.setattr(costs, "Path", lambda path: Path("/nowhere/at/all"))
    assert measure_cost(engine, **how).resident_bytes == 0


def test_costs_of_several_runs_are_added_averaged_or_the_largest() -> None:
    one = Cost(
        answerable=3, skipped=1, unreachable=2, pool_size=10.0, index_bytes=70, parameters=5, dim=8,
        resident_bytes=900, latency={"a": Latency(1.0, 2.0), "b": Latency(1.0, 1.0)},
    )  # fmt: skip
    other = Cost(
        answerable=4, skipped=0, unreachable=5, pool_size=20.0, index_bytes=60, parameters=9, dim=8,
        resident_bytes=800, latency={"a": Latency(3.0, 6.0)},
    )  # fmt: skip
    assert mean_cost([one, other]) == Cost(
        answerable=7, skipped=1, unreachable=7, pool_size=15.0, index_bytes=70, parameters=9, dim=8,
        resident_bytes=900, latency={"a": Latency(2.0, 4.0)},
    )  # fmt: skip
    assert mean_cost([one]) == one
    assert one.median_ms == 2.0


def test_scores_of_another_version_and_none_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"does not exist; evaluate first: evenplace evaluate"):
        Scores.read(tmp_path)
    scored(tmp_path).write(tmp_path)
    kept = json.loads((tmp_path / "scores.json").read_text())
    for old in (kept | {"version": 2}, {name: kept[name] for name in kept if name != "version"}):
        (tmp_path / "scores.json").write_text(json.dumps(old))
        with pytest.raises(RunError, match="another version of EvenPlace; evaluate again"):
            Scores.read(tmp_path)


def test_joined_scores_count_all_queries(tmp_path: Path) -> None:
    parts = [scored(tmp_path, seed) for seed in (0, 1)]
    joined = join_scores(parts)
    assert joined.overall.queries == 60
    assert joined.places is parts[0].places
    assert join_scores(parts[:1]).overall == parts[0].overall
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
    assert tiers.tolist() == [1, 1, -1]


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
