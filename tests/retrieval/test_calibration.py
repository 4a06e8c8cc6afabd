"""A confidence becomes a probability, and a wanted precision a threshold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import RunError, SettingError
from evenplace.retrieval.calibration import (
    Calibration,
    Way,
    _lower_bound,
    find_shift,
    fit_calibration,
    least_confidence,
    why_uncalibrated,
)
from evenplace.retrieval.rehearsal import KINDS, Rehearsal
from evenplace.retrieval.rerank import L2, Fused
from tests.drawn import rehearsed


def drawn(count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Log odds and whether each was right, by a curve of its own."""
    generator = np.random.default_rng(seed)
    raw = generator.normal(1, 2, count).astype(np.float32)
    chance = 1 / (1 + np.exp(-(1.5 * raw - 1)))
    return raw, generator.random(count) < chance


def test_probabilities_are_what_they_say() -> None:
    curve = fit_calibration(*drawn(5000, 0))
    raw, right = drawn(5000, 1)
    sure = curve(raw)
    for low in (0.1, 0.3, 0.5, 0.7, 0.9):
        bin_ = (sure >= low) & (sure < low + 0.1)
        assert right[bin_].mean() == pytest.approx(sure[bin_].mean(), abs=0.08)


@pytest.mark.parametrize("wanted", [0.8, 0.9, 0.95])
def test_the_wanted_precision_is_delivered_on_new_queries(wanted: float) -> None:
    delivered = []
    for seed in range(20):
        curve = fit_calibration(*drawn(1500, seed))
        raw, right = drawn(2000, 100 + seed)
        kept = curve(raw) >= curve.threshold(wanted)
        assert kept.sum() > 20
        delivered.append(right[kept].mean())
    assert np.mean(delivered) >= wanted
    assert np.quantile(delivered, 0.1) >= wanted - 0.015


def test_more_precision_answers_less() -> None:
    raw, right = drawn(800, 3)
    curve = fit_calibration(raw, right)
    counts = [(curve(raw) >= curve.threshold(p)).sum() for p in (0.8, 0.9, 0.95)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] > 0


def test_the_curve_rises_and_keeps_the_order() -> None:
    raw, right = drawn(300, 4)
    curve = fit_calibration(raw, right)
    assert (np.diff(curve(np.sort(raw))) >= 0).all()
    assert ((curve(raw) >= 0) & (curve(raw) <= 1)).all()


def test_a_confidence_that_misleads_is_flattened_to_the_share_of_right_answers() -> None:
    raw, right = drawn(500, 5)
    curve = fit_calibration(-raw, right)
    assert curve(raw) == pytest.approx(np.full(500, right.mean()), abs=0.01)


def test_no_answer_less_sure_than_what_is_asked_passes() -> None:
    curve = fit_calibration(*drawn(5000, 8))
    for wanted in (0.8, 0.9, 0.95):
        assert wanted <= curve.threshold(wanted) <= 1


def test_a_tail_that_does_not_keep_the_precision_raises_the_bar() -> None:
    raw, right = drawn(4000, 9)
    curve = fit_calibration(raw, right)
    unlucky = np.flatnonzero(raw > 1)[:200]  # a part that is wrong at random
    spoilt = right.copy()
    spoilt[unlucky[::4]] = False
    grouped = replace(curve, right=tuple(spoilt.tolist()), tail=tuple(unlucky.tolist()))
    assert grouped.threshold(0.9) > curve.threshold(0.9)


@pytest.mark.parametrize(
    ("answers", "wrong", "kept"),
    [(34, 4, True), (34, 6, False), (19, 8, True), (20, 8, False)],
    ids=["within a deviation", "beyond it", "too few to say", "enough"],
)
def test_a_tail_is_held_to_what_it_can_tell(answers: int, wrong: int, kept: bool) -> None:
    sure = tuple(np.linspace(0.999, 0.9, 1000).tolist())
    tail = tuple(range(answers))
    right = tuple((np.arange(1000) >= wrong).tolist())
    curve = plain(probabilities=sure, right=right, tail=tail)
    assert (curve.threshold(0.9) < 1) == kept


def test_photos_off_the_map_raise_the_bar_until_a_hundredth_of_them_passes() -> None:
    raw, right = drawn(4000, 10)
    curve = replace(fit_calibration(raw, right), away=tuple(np.linspace(0.5, 0.97, 500).tolist()))
    assert np.mean(np.array(curve.away) >= curve.threshold(0.9)) <= 0.01
    assert curve.threshold(0.9) > 0.96


def test_one_stray_more_than_was_met_must_fit_too_unless_none_was() -> None:
    raw, right = drawn(4000, 10)
    plain = fit_calibration(raw, right)
    low = plain.threshold(0.9)
    quiet = replace(plain, away=(0.1,) * 50)
    assert quiet.threshold(0.9) == low, "few that all keep silent do not silence it"
    one = replace(plain, away=(*(0.1,) * 180, 0.97))  # .55 % passed, 1.1 % with another
    assert one.threshold(0.9) > 0.97
    large = replace(plain, away=(*(0.1,) * 208, 0.97))  # .96 % with another
    assert large.threshold(0.9) == low


def test_what_looks_less_alike_is_less_sure() -> None:
    dice = np.random.default_rng(0)
    raw, alike = dice.normal(0, 2, 3000), dice.uniform(0, 1, 3000)
    right = dice.random(3000) < 1 / (1 + np.exp(-(raw + 4 * alike - 2)))
    curve = fit_calibration(raw, right, likeness=alike)
    assert curve([1.0], [0.1])[0] < curve([1.0], [0.9])[0]
    assert curve([1.0], [0.9])[0] == pytest.approx(1 / (1 + np.exp(-2.6)), abs=0.03)


def plain(**changed: Any) -> Calibration:
    made: dict[str, Any] = {"weights": (2.0, 3.0), "offset": -1.0, "probabilities": (), "right": ()}
    return Calibration(**(made | changed))


def test_a_probability_is_the_curve_of_score_and_likeness() -> None:
    curve = plain()
    assert curve([0.5, -1.0]).tolist() == pytest.approx([0.5, 1 / (1 + np.exp(3))])
    assert curve([0.5], [0.7]).tolist() == pytest.approx([1 / (1 + np.exp(-2.1))])
    assert curve([-1e9, 1e9]).tolist() == pytest.approx([np.exp(-60), 1.0], rel=1e-5)
    assert curve([0.5]).dtype == np.float32


def test_the_lower_end_is_the_share_that_just_explains_what_was_seen() -> None:
    right, kept = np.array([95, 100, 3, 0, 999]), np.array([100, 100, 7, 5, 1000])
    for low, seen, many in zip(_lower_bound(right, kept), right, kept, strict=True):
        assert seen / many - low == pytest.approx(1.6449 * np.sqrt(low * (1 - low) / many))
        assert 0 <= low <= seen / many


def threshold_by_loops(curve: Calibration, wanted: float) -> float:
    sure, least = list(curve.probabilities), 2.0
    enough = sorted((one for one in sure if one >= wanted), reverse=True)
    for count, bar in enumerate(enough, 1):
        if count % (len(sure) // 20) and count < len(enough):
            continue
        safe = True
        for rows, z, few in ((range(len(sure)), 1.6449, 1), (curve.tail, -1.0, 20)):
            above = [curve.right[row] for row in rows if sure[row] >= bar]
            if len(above) >= few:
                low = _lower_bound(np.array([sum(above)]), np.array([len(above)]), z)[0]
                safe = safe and low >= wanted
        strays = sum(one >= bar for one in curve.away)
        if curve.away and strays:
            safe = safe and (strays + 1) / (len(curve.away) + 1) <= 0.1 * (1 - wanted)
        if safe:
            least = bar
    return least


def test_what_was_unlucky_among_the_surest_does_not_end_the_search() -> None:
    sure = tuple(np.linspace(0.999, 0.9, 300).tolist())
    for wrong, passes in (([3], 300), ([30, 150, 250], 300), (range(30, 60), 30)):
        right = tuple((~np.isin(np.arange(300), list(wrong))).tolist())
        curve = plain(probabilities=sure, right=right)
        assert curve.threshold(0.9) == sure[passes - 1]


@pytest.mark.parametrize(("share", "promised"), [(0.95, 0.2), (0.93, 0.04), (0.9, 0.005)])
def test_trying_twenty_bars_seldom_finds_a_promise_that_is_not_there(
    share: float, promised: float
) -> None:
    dice, kept = np.random.default_rng(0), []
    sure = tuple(np.linspace(0.999, 0.95, 600).tolist())  # all of them are surer than they should
    for _ in range(400):
        right = tuple((dice.random(600) < share).tolist())
        kept.append(plain(probabilities=sure, right=right).threshold(0.95) < 1)
    assert np.mean(kept) <= promised


@pytest.mark.parametrize("seed", range(12))
def test_the_threshold_is_the_least_that_loops_find(seed: int) -> None:
    dice = np.random.default_rng(seed)
    sure = dice.beta(3, 1, 420).round(2)
    right = dice.random(420) < sure ** (0.05 + 0.1 * (seed % 3))
    tail = tuple(np.flatnonzero(dice.random(420) < 0.3 * (seed % 3)).tolist())
    away = tuple(dice.beta(1, 9, 900 * (seed % 2)).tolist())
    curve = plain(
        probabilities=tuple(sure.tolist()), right=tuple(right.tolist()), tail=tail, away=away
    )
    for wanted in (0.5, 0.8, 0.9, 0.93):
        assert curve.threshold(wanted) == threshold_by_loops(curve, wanted)


def test_a_way_is_told_in_words() -> None:
    assert str(Way("L2()", "mass", 20)) == "L2() on 20 places, confidence by mass"
    way = Way("Fused(scale=14.12345)", "evidence", 50, exact=True, facing=True, look="50 by sift")
    assert str(way) == (
        "Fused(scale=14.1) on the whole database, 50 by sift, confidence by evidence, "
        "headings counted"
    )


def test_a_calibration_says_what_it_was_learned_on_or_why_it_is_none() -> None:
    way = Way("L2()", "mass", 20)
    learned = plain(right=(True, False, True, True))
    assert str(learned) == "calibrated on 4 answers, 75% of them right"
    assert str(replace(learned, way=way)) == f"{learned}: {way}"
    assert str(plain()) == "calibrated on 0 answers, 0% of them right"
    doubted = replace(learned, doubt="one day only")
    assert str(doubted) == "uncalibrated: one day only"
    assert why_uncalibrated(doubted) == "one day only"
    assert why_uncalibrated(learned) == ""
    assert why_uncalibrated(None) == "nothing was rehearsed in this way"


def test_a_calibration_is_shown_without_the_answers_behind_it() -> None:
    curve = plain(probabilities=(0.5,), right=(True,), tail=(0,), away=(0.1,), likeness=(0.7,))
    assert repr(curve) == "Calibration(weights=(2.0, 3.0), offset=-1.0, doubt='', way=None)"


def test_answers_found_in_another_way_are_not_judged() -> None:
    way, other = Way("L2()", "mass", 20), Way("L2()", "mass", 21)
    plain().check(other)
    plain(way=way).check(way)
    with pytest.raises(SettingError, match=r"is for L2.. on 20 places.*answers are by L2.. on 21"):
        plain(way=way).check(other)


def test_what_cannot_be_promised_is_refused_unless_insisted_on() -> None:
    curve = fit_calibration(*drawn(1500, 0))
    assert least_confidence(None, None) == -np.inf
    assert least_confidence(0.9, curve) == curve.threshold(0.9)
    with pytest.raises(SettingError, match=r"min_precision=0.9 needs a calibration"):
        least_confidence(0.9, None)
    doubted = replace(curve, doubt="one day only")
    with pytest.raises(SettingError, match="cannot be promised: one day only, so no other day"):
        least_confidence(0.9, doubted)
    assert least_confidence(0.9, doubted, insist=True) == curve.threshold(0.9)


def test_confidences_that_are_not_finite_teach_nothing() -> None:
    with pytest.raises(SettingError, match="2 finite confidences are too few"):
        fit_calibration([1.0, np.nan], np.array([True, False]))


def test_lucky_answers_promise_nothing() -> None:
    curve = fit_calibration(np.arange(5, dtype=np.float32), np.ones(5, bool))
    assert curve.threshold(0.95) > 1


def test_equal_confidences_are_kept_or_left_together() -> None:
    raw = np.array([1.0] * 30 + [0.0] * 30, np.float32)
    right = np.array([True] * 30 + [False] * 30)
    curve = fit_calibration(raw, right)
    assert ((curve(raw) >= curve.threshold(0.9)) == right).all()


def test_ties_at_the_threshold_count_their_wrong_answers() -> None:
    raw = np.ones(200, np.float32)
    right = np.arange(200) < 190  # all tie, 95 % right: 97 % can't be had by luck of the order
    assert fit_calibration(raw, right).threshold(0.97) > 1


@pytest.mark.parametrize("precision", [0.0, 1.0, 95.0])
def test_a_precision_outside_0_to_1_is_refused(precision: float) -> None:
    with pytest.raises(SettingError, match="between 0 and 1"):
        fit_calibration(*drawn(50, 6)).threshold(precision)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(SettingError, match="too few to calibrate"):
        fit_calibration(np.empty(0, np.float32), np.empty(0, bool))


def test_a_rehearsal_is_read_as_it_was_written(tmp_path: Path) -> None:
    answers = rehearsed(*drawn(100, 7), "fused", "evidence")
    answers.write(tmp_path / "calibration.json")
    again = Rehearsal.read(tmp_path / "calibration.json")
    assert again == answers
    asked = Way(repr(Fused()), "evidence", 20)
    assert again.fits(asked)
    assert again.fits(replace(asked, facing=True))
    others = {"rule": repr(L2()), "source": "mass", "shortlist": 50, "exact": True}
    for name, other in others.items():
        assert not again.fits(replace(asked, **{name: other}))  # type: ignore[arg-type]


def test_what_counts_as_right_is_for_whoever_asks_to_say() -> None:
    sure, turned = np.linspace(0, 1, 60), np.linspace(1, 2, 60)
    metres, degrees = np.repeat([5.0, 20.0, 300.0], 20), np.tile([0.0, 90.0], 30)
    flat = np.zeros(60)
    columns = {"confidence": sure, "facing": turned, "metres": metres, "degrees": degrees}
    columns |= {"likeness": flat, "tier": flat, "kind": flat}
    answers = Rehearsal.of(columns, Way(repr(Fused()), "evidence", 20))
    assert sum(answers.calibrate().right) == 40
    assert sum(answers.calibrate(10.0).right) == 20
    assert sum(answers.calibrate(10.0, 45.0).right) == 10
    assert answers.calibrate(heading=45.0) == replace(
        fit_calibration(
            turned.astype(np.float32), (metres < 100) & (degrees < 45),
            Way(repr(Fused()), "evidence", 20, facing=True), likeness=flat,
        ),
        likeness=(0.0,) * 60,
    )  # fmt: skip


def test_where_every_answer_was_right_strays_teach_what_wrong_looks_like() -> None:
    raw = np.linspace(-6, 6, 200)
    stray = raw < -1
    kind = np.where(stray, KINDS.index("away"), KINDS.index("taken"))
    answers = rehearsed(raw, ~stray, Fused(), "evidence")
    curve = replace(answers, kind=tuple(kind.tolist())).calibrate()
    sure = curve([-3.0, -1.0, 1.0, 3.0])
    assert (np.diff(sure) > 0.005).all()
    assert sure[0] < 0.1 < 0.9 < sure[-1]
    assert len(curve.probabilities) == len(curve.right) == np.count_nonzero(~stray)
    assert all(curve.right)


def test_as_many_photos_are_off_the_map_as_on_it_however_many_asked() -> None:
    raw = np.tile([-2.0, 4.0], 100)
    right = np.tile([True, True, False, True, False, True, False, True], 25)  # a quarter, all
    few, many = (np.full(count, -2.0) for count in (50, 200))
    curves = []
    for strays in (few, many, many[:0]):
        answers = rehearsed(
            np.append(raw, strays), np.append(right, strays > 0), Fused(), "evidence"
        )
        kind = np.repeat([KINDS.index("taken"), KINDS.index("away")], [200, len(strays)])
        curves.append(replace(answers, kind=tuple(kind.tolist())).calibrate())
    assert curves[0]([-2.0]) == pytest.approx(curves[1]([-2.0]), rel=1e-6)
    assert curves[0]([-2.0])[0] == pytest.approx(25 / 300, abs=0.02)
    assert curves[2]([-2.0])[0] == pytest.approx(0.25, abs=0.02)
    assert curves[0]([4.0])[0] > 0.97


@pytest.mark.parametrize("text", ["{}", "[]", '{"confidence": [1.0]}', "not json"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(RunError, match=r"no rehearsal .*evenplace tune"):
        Rehearsal.read(tmp_path / "calibration.json")


def likeness(mean: float, count: int, seed: int) -> list[float]:
    drawn: list[float] = np.random.default_rng(seed).normal(mean, 0.15, count).tolist()
    return drawn


def test_queries_like_the_rehearsed_ones_are_let_be() -> None:
    said = [find_shift(likeness(0.6, 100, seed), likeness(0.6, 800, 1000)) for seed in range(200)]
    assert sum(map(bool, said)) <= 2


def test_queries_less_alike_are_told() -> None:
    said = find_shift(likeness(0.45, 100, 0), likeness(0.6, 800, 1))
    assert said.startswith("these photos look less like the database")
    assert "(similarity 0.4" in said


def test_queries_more_alike_are_no_harm() -> None:
    assert find_shift(likeness(0.9, 100, 0), likeness(0.6, 800, 1)) == ""


def test_a_few_tell_nothing() -> None:
    assert find_shift([-1.0] * 19, likeness(0.6, 800, 1)) == ""
    assert find_shift([-1.0] * 20, likeness(0.6, 800, 1)) != ""
    assert find_shift([-1.0] * 20, []) == ""


def test_a_shift_is_told_from_where_chance_makes_one_in_a_thousand() -> None:
    """Of 100 against 100 the excess is at most sqrt(log(1000) / 2 · 2 / 100) = 0.2628."""
    rehearsed = [0.5] * 100
    assert find_shift([0.0] * 26 + [1.0] * 74, rehearsed) == ""
    assert find_shift([0.0] * 27 + [1.0] * 73, rehearsed) == (
        "these photos look less like the database than the rehearsed ones did (similarity 1.00 "
        "against 0.50), so less may be right than is said"
    )
    assert find_shift([0.5] * 100, rehearsed) == ""
