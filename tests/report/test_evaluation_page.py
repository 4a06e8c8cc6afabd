"""The page of evaluated systems: self-contained, complete, honest about its numbers."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evenplace.errors import RunError
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Scores
from evenplace.report.evaluation import write_report
from evenplace.report.figures import INK, inline_svg, rank_count, tier_bars
from evenplace.report.tables import COLUMNS, gain_rows, markdown, score_rows
from tests.evaluation.test_scores import scored


@pytest.fixture
def systems(tmp_path: Path) -> list[Scores]:
    return [
        replace(scored(tmp_path, rerank=rule), name=name)
        for rule, name in (("l2", "base"), ("fused", "ours <new>"))
    ]


def test_the_page_needs_nothing_from_outside(systems: list[Scores], tmp_path: Path) -> None:
    text = write_report(systems, tmp_path / "report").read_text()
    assert "<script src" not in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', markup) == []
    assert "url(http" not in text


def test_the_page_has_every_part(systems: list[Scores], tmp_path: Path) -> None:
    text = write_report(systems, tmp_path / "report").read_text()
    for title in ("Scores", "Head, middle, tail", "The long tail", "Where", "Queries and answers"):
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") >= 2
    assert 'class="ep-map"' in text
    assert text.count('class="asked"') == 12
    assert "30 queries" in text


def test_figures_follow_the_page_s_colours_in_the_dark(systems: list[Scores]) -> None:
    for draw in (tier_bars, rank_count):
        svg = inline_svg(draw(systems), "figure")
        assert "currentColor" in svg
        assert INK not in svg
        plain = [text for text in re.findall(r"<text ([^>]*)>", svg) if "fill" not in text]
        assert plain == [], "text without a colour is black"
        assert "#000000" not in svg


def test_names_cannot_break_the_page(systems: list[Scores], tmp_path: Path) -> None:
    text = write_report(systems, tmp_path / "report").read_text()
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
    gain = systems[1].recall[1] - systems[0].recall[1]
    assert float(row[1].split()[0]) == pytest.approx(gain, abs=0.06)


def test_one_system_makes_a_page_too(systems: list[Scores], tmp_path: Path) -> None:
    assert write_report(systems[0], tmp_path / "one").exists()


def test_runs_on_other_queries_are_refused(systems: list[Scores], tmp_path: Path) -> None:
    asked = systems[1].predictions
    other = Predictions(**(vars(asked) | {"paths": [f"x{path}" for path in asked.paths]}))
    with pytest.raises(RunError, match="different queries"):
        write_report([systems[0], replace(systems[1], predictions=other)], tmp_path / "r")


def test_nothing_to_report_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="at least one"):
        write_report([], tmp_path / "r")
