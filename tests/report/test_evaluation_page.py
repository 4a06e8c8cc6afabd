"""The page of evaluated systems: self-contained, complete, honest about its numbers."""

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

from evenplace.errors import RunError
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Scores
from evenplace.evaluation.truth import Truth
from evenplace.report.evaluation import read_kept, write_report
from evenplace.report.figures import INK, inline_svg, rank_count, tier_bars
from evenplace.report.gallery import A_TIER, gallery_html
from evenplace.report.reasons import REASON_COLUMNS, find_reasons, reason_rows, tell_reasons
from evenplace.report.scatter import LEAST, Cloud, choose_places, gather_clouds, lay_out
from evenplace.report.tables import (
    COLUMNS,
    condition_rows,
    gain_rows,
    markdown,
    say_databases,
    score_rows,
)
from evenplace.retrieval import open_index
from evenplace.retrieval.update import add_photos
from tests.drawn import photos_at, unit
from tests.evaluation.test_scores import scored
from tests.report.drawn import evaluated


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> list[Scores]:
    return [
        replace(scored(tmp_path_factory.mktemp(rule), rerank=rule), name=name)
        for rule, name in (("l2", "base"), ("fused", "ours <new>"))
    ]


@pytest.fixture(scope="module")
def page(systems: list[Scores], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(systems, tmp_path_factory.mktemp("page") / "report")


def test_the_page_needs_nothing_from_outside(page: Path) -> None:
    text = page.read_text()
    assert "<script src" not in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', markup) == []
    assert "url(http" not in text


def test_the_page_has_every_part(page: Path) -> None:
    text = page.read_text()
    for title in (
        "Scores", "Head, middle, tail", "The long tail", "Where", "Queries and answers",
        "Why it fails", "Does it know?", "How far off", "What it costs",
    ):  # fmt: skip
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") >= 6
    assert 'class="ep-map"' in text
    assert "30 queries" in text
    for caption in re.findall(r'<p class="caption">(.*?)</p>', text, re.DOTALL):
        assert caption


def test_a_condition_that_one_system_never_met_is_a_dash_in_its_column(
    systems: list[Scores],
) -> None:
    """As with another database, or another radius: how far away matches are differs then."""
    first, other = systems
    rows = condition_rows([first, replace(other, conditions={})])
    assert rows
    assert [row[:4] for row in rows] == condition_rows([first])
    assert {row[4] for row in rows} == {"–"}
    assert len(condition_rows([replace(first, conditions={}), other])) == len(rows)


def test_figures_are_files_too(page: Path) -> None:
    for name in (
        "tiers",
        "long-tail",
        "precision-recall",
        "risk-coverage",
        "reliability",
        "metres",
    ):
        for suffix in (".svg", ".png"):
            assert (page.parent / "figures" / f"{name}{suffix}").stat().st_size > 1000


def test_figures_follow_the_page_s_colours_in_the_dark(systems: list[Scores]) -> None:
    for drawn in (tier_bars(systems), rank_count(systems[0].places, systems)):
        svg = inline_svg(drawn, "figure")
        assert "currentColor" in svg
        assert INK not in svg
        plain = [text for text in re.findall(r"<text ([^>]*)>", svg) if "fill" not in text]
        assert plain == [], "text without a colour is black"
        assert "#000000" not in svg


def test_recall_is_drawn_along_places_of_another_cut(systems: list[Scores]) -> None:
    """A run on another database, or with other cells, has places of its own."""
    whole = systems[0]
    few = whole.places.take(np.arange(len(whole.places) // 3))
    own, other = (rank_count(places, [whole]).axes[1].get_lines()[0].get_xydata()
                  for places in (whole.places, few))  # fmt: skip
    scale = len(few) / len(whole.places)
    np.testing.assert_allclose(np.asarray(other), np.asarray(own) * (scale, 1))
    assert np.isfinite(np.asarray(own)[:, 1]).any()


def test_names_cannot_break_the_page(page: Path) -> None:
    text = page.read_text()
    assert "ours <new>" not in text
    assert "ours &lt;new&gt;" in text


def test_the_table_gives_each_recall_with_its_interval(systems: list[Scores]) -> None:
    row = dict(zip(COLUMNS, score_rows(systems)[0], strict=True))
    found = systems[0].tail.intervals[1]
    assert row["tail R@1"] == f"{found.mean:.1f} [{found.low:.1f}, {found.high:.1f}]"
    assert row["pool"] == f"{systems[0].pool.recall[1]:.1f}"
    assert markdown(COLUMNS, [list(row.values())]).count("\n") == 2


def test_differences_are_paired_and_against_the_first(systems: list[Scores]) -> None:
    (row,) = gain_rows(systems)
    assert row[0] == "ours <new> − base"
    assert "won" in row[1]
    gain = systems[1].recall[1] - systems[0].recall[1]
    assert float(row[1].split()[0]) == pytest.approx(gain, abs=0.06)


def test_one_system_makes_a_page_too(systems: list[Scores], tmp_path: Path) -> None:
    assert write_report(systems[0], tmp_path / "one").exists()


def test_runs_on_other_queries_are_refused(systems: list[Scores], tmp_path: Path) -> None:
    asked = systems[1].predictions
    other = Predictions(**(vars(asked) | {"paths": [f"x{path}" for path in asked.paths]}))
    with pytest.raises(RunError, match="different queries"):
        write_report([systems[0], replace(systems[1], predictions=other)], tmp_path / "r")


def test_runs_judged_by_another_truth_are_refused(systems: list[Scores], tmp_path: Path) -> None:
    strict = replace(systems[1], truth=Truth(radius=10))
    with pytest.raises(RunError, match=r"within 10 m and .* within 25 m; evaluate both alike"):
        write_report([systems[0], strict], tmp_path / "r")


def test_runs_of_other_databases_are_compared_and_that_is_said(
    systems: list[Scores], tmp_path: Path
) -> None:
    assert say_databases(systems) == ""
    asked = systems[1].predictions
    fewer = asked.positives.copy()
    fewer[:5] = 0
    there = int((fewer > 0).sum())
    other = replace(systems[1], predictions=Predictions(**(vars(asked) | {"positives": fewer})))
    said = write_report([systems[0], other], tmp_path / "r").read_text()
    assert "These are different databases" in said
    assert f"{there} in that of {escape(other.name)}" in said


def test_nothing_to_report_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="at least one"):
        write_report([], tmp_path / "r")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Scores], list[Path]]:
    return evaluated(tmp_path_factory.mktemp("town"))


def test_run_folders_add_photos_bands_places_and_training(
    town: tuple[list[Scores], list[Path]], tmp_path: Path
) -> None:
    systems, runs = town
    text = write_report(systems, tmp_path, runs=runs).read_text()
    for title in ("Tail places, before and after", "Training", "Conditions"):
        assert f"<h2>{title}</h2>" in text
    assert "similarity within a place" in text
    assert text.count("data:image/jpeg") > 50
    assert (tmp_path / "figures" / "tail-places.svg").exists()
    with pytest.raises(RunError, match="2 systems and 1 run"):
        write_report(systems, tmp_path, runs=runs[:1])


def test_an_index_that_grew_since_it_was_asked_shows_no_photos_as_of_other_places(
    tmp_path: Path,
) -> None:
    systems, runs = evaluated(tmp_path, photos=60, queries=20)
    assert read_kept(runs[0], systems[0].places).index is not None
    west = photos_at(np.stack([np.arange(-900.0, 0, 7), np.zeros(129)], axis=1))
    for run in runs:
        add_photos(run / "index", unit(129, 24, 0), west)
    assert read_kept(runs[0], systems[0].places).index is None
    text = write_report(systems, tmp_path / "page", runs=runs).read_text()
    assert "<h2>Tail places, before and after</h2>" not in text


def test_rescued_lost_and_failed_are_what_they_say(
    town: tuple[list[Scores], list[Path]],
) -> None:
    systems, _ = town
    text = gallery_html(systems)
    before, now = (scores.predictions.right for scores in systems)
    tiers = systems[0].predictions.tiers
    for kind, mine in (("rescued", ~before & now), ("lost", before & ~now), ("failed", ~now)):
        found = re.findall(rf'data-tier="([\w ]+)" data-kind="{kind}"', text)
        for number, tier in enumerate(("head", "middle", "tail")):
            assert found.count(tier) == min(A_TIER, int((mine & (tiers == number)).sum()))
        assert f">{kind} {int(mine.sum())}<" in text or not mine.any()


def test_every_failure_has_the_reason_it_should(town: tuple[list[Scores], list[Path]]) -> None:
    scores = town[0][0]
    run, reasons = scores.predictions, find_reasons(scores)
    assert (reasons == "right").tolist() == run.right.tolist()
    away = np.linalg.norm(run.hit_positions[:, 0] - run.positions, axis=1)
    for query, (reason, told) in enumerate(zip(reasons, tell_reasons(scores), strict=True)):
        assert "{" not in told
        if reason == "near miss":
            assert told.startswith(f"near miss: {away[query]:.0f} m, just outside 25 m")
        if reason == "no match":
            assert run.positives[query] == 0
        elif reason == "not in the pool":
            assert not run.in_pool[query]
        elif reason == "near miss":
            assert 25 < away[query] <= 50
        elif reason == "look-alike":
            assert run.first_right[query] > 0
        elif reason == "far look-alike":
            assert run.first_right[query] == -1
            assert run.in_pool[query]
    counted = [row for row in reason_rows([scores]) if row[1] == "near miss"]
    assert sum(int(row[2]) for row in counted) == int((reasons == "near miss").sum())


@pytest.mark.parametrize(
    ("points", "told"), [(30, "verified"), (29, ""), (13, ""), (12, "refuted"), (0, "refuted")]
)
def test_wrong_answers_are_verified_from_30_points_and_refuted_up_to_12(
    systems: list[Scores], points: int, told: str
) -> None:
    run = systems[0].predictions
    seen = run.sources | {"inliers": np.full(len(run), points, np.float32)}
    looked = replace(systems[0], predictions=replace(run, sources=seen))
    rows = reason_rows([looked])
    assert sum(int(row[2]) for row in rows) == (~run.right).sum() > 0
    for row in rows:
        many = dict(zip(REASON_COLUMNS, row, strict=True))
        for word in ("verified", "refuted"):
            assert many[word] == (many["queries"] if word == told else "0")
    assert all(words.endswith(f"; {points} points match") for words in tell_reasons(looked))


def test_an_answer_nobody_could_look_at_is_neither(systems: list[Scores]) -> None:
    run = systems[0].predictions
    unseen = run.sources | {"inliers": np.full(len(run), -1, np.float32)}
    looked = replace(systems[0], predictions=replace(run, sources=unseen))
    assert {tuple(row[-3:-1]) for row in reason_rows([looked])} == {("0", "0")}
    assert not any("match" in words for words in tell_reasons(looked))


def test_t_sne_is_of_tail_places_with_photos_and_queries_together(
    town: tuple[list[Scores], list[Path]],
) -> None:
    systems, runs = town
    index, run = open_index(runs[0] / "index"), systems[0].predictions
    photos = [int((index.labels == place).sum() + (run.places == place).sum())
              for place in range(len(index.places))]  # fmt: skip
    chosen = choose_places(index, run).tolist()
    tail = [place for place in range(len(photos)) if index.places.tiers[place] == 2]
    assert set(chosen) <= {place for place in tail if photos[place] >= LEAST}
    assert len(chosen) == min(10, sum(photos[place] >= LEAST for place in tail)) > 1
    clouds, _ = gather_clouds(systems[:1], [index])
    asked = int(np.isin(run.places, chosen).sum())
    assert (clouds[0].asked, len(clouds[0].labels)) == (asked, sum(photos[p] for p in chosen))
    alone = replace(run, descriptors=None)
    few = [place for place in tail if (index.labels == place).sum() >= LEAST]
    assert choose_places(index, alone).tolist() == sorted(few)


def test_t_sne_puts_photos_that_look_alike_together() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 16))
    labels = np.repeat(np.arange(3), 12)
    drawn = centres[labels] + 0.05 * rng.normal(size=(36, 16))
    unit = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    assert Cloud("x", unit, labels).purity == 100
    spots = lay_out(unit)
    within = np.mean([spots[labels == one].std(axis=0).mean() for one in range(3)])
    assert spots.shape == (36, 2)
    assert within < spots.std(axis=0).mean() / 2
