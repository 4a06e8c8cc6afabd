"""An uneven survey and even queries."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.city.plan import plan_town
from evenplace.city.survey import Shot, plan_queries, plan_survey, rank_counts


@pytest.fixture(scope="module")
def survey() -> list[Shot]:
    return plan_survey(plan_town(0), 6000, 0)


@pytest.fixture(scope="module")
def queries(survey: list[Shot]) -> list[Shot]:
    return plan_queries(plan_town(0), survey, 600, 0)


def positions(shots: list[Shot]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([[shot.camera.east, shot.camera.north] for shot in shots])


def test_default_survey_is_long_tailed_300_to_1(survey: list[Shot]) -> None:
    counts = sorted(Counter(shot.cell for shot in survey).values(), reverse=True)
    assert len(survey) == 6000
    assert len(counts) > 250
    assert counts[-1] == 1
    assert 270 <= counts[0] / counts[-1] <= 330


def test_curve_falls_smoothly_through_head_middle_and_tail(survey: list[Shot]) -> None:
    counts = np.array(sorted(Counter(shot.cell for shot in survey).values(), reverse=True))
    head, tail = round(0.3 * len(counts)), round(0.7 * len(counts))
    assert counts[:head].sum() > 0.75 * 6000  # few places hold most photos
    assert 2 <= np.median(counts[head:tail]) <= 15
    assert counts[tail:].max() <= 3
    assert counts[0] < 0.06 * 6000  # and no one place all of them
    steps = counts[1:40] / counts[:39]
    assert steps.min() > 0.8  # no jump between neighbours in rank


def test_avenues_are_busier_than_lanes(survey: list[Shot]) -> None:
    streets = plan_town(0).streets
    near: Counter[str] = Counter()
    for shot in survey[::20]:
        spot = np.array([shot.camera.east, shot.camera.north])
        away = [np.abs((spot - street.start) @ street.left) for street in streets]
        within = [0 <= (spot - street.start) @ street.along <= street.length for street in streets]
        best = min(range(len(streets)), key=lambda i: away[i] if within[i] else np.inf)
        near[streets[best].kind] += 1
    assert near["avenue"] > 3 * near["lane"]


@given(photos=st.integers(1, 9000), cells=st.integers(1, 330))
def test_counts_fall_and_sum_to_the_photos(photos: int, cells: int) -> None:
    counts = rank_counts(photos, cells)
    assert counts.sum() == photos
    assert counts.min() >= 1
    assert (np.diff(counts) <= 0).all()


def test_smaller_survey_has_a_shorter_tail() -> None:
    ratios = [rank_counts(photos, 120)[0] for photos in (300, 1500, 6000)]
    assert ratios == sorted(ratios)
    assert rank_counts(1500, 120)[0] == pytest.approx(75, abs=5)


def test_every_query_has_a_database_photo_within_25_metres(
    survey: list[Shot], queries: list[Shot]
) -> None:
    taken = positions(survey)
    for spot in positions(queries):
        assert np.hypot(*(taken - spot).T).min() < 25


def test_queries_are_spread_over_places_not_over_photos(
    survey: list[Shot], queries: list[Shot]
) -> None:
    counts = Counter(shot.cell for shot in survey)
    ranked = [cell for cell, _ in counts.most_common()]
    tail = set(ranked[round(0.7 * len(ranked)) :])
    taken = positions(survey)
    nearest = [
        survey[int(np.hypot(*(taken - spot).T).argmin())].cell for spot in positions(queries)
    ]
    share = sum(cell in tail for cell in nearest) / len(queries)
    assert 0.15 < share < 0.45  # about 30 % of the places; about 2 % of the photos


def test_queries_are_of_other_days_by_day_dusk_and_night(
    survey: list[Shot], queries: list[Shot]
) -> None:
    assert not {shot.day.number for shot in survey} & {shot.day.number for shot in queries}
    assert {shot.day.note for shot in queries} == {"day", "dusk", "night"}
    assert {shot.day.ground for shot in queries} == {"dry", "wet", "snow"}
    assert {shot.day.note for shot in survey} == {"day"}


def test_survey_looks_along_and_across_the_streets(survey: list[Shot]) -> None:
    headings = np.array([shot.camera.heading for shot in survey])
    quarters = np.histogram(headings, bins=8, range=(0, 360))[0]
    assert quarters.min() > 0.02 * len(survey)


def test_names_are_unique(survey: list[Shot], queries: list[Shot]) -> None:
    names = [shot.name for shot in survey + queries]
    assert len(set(names)) == len(names)
