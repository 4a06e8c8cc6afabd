"""A walk's candidates, smoothed: against every path counted out, and what must not happen."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evenplace.errors import SettingError
from evenplace.run.locate_many import ANSWERED, Located, Match, Spot
from evenplace.run.sequence import ELSEWHERE, FLOOR, SLACK, follow, put_in_order, smooth


def test_the_marginals_are_those_of_all_paths_counted_out() -> None:
    dice = np.random.default_rng(0)
    spots = [dice.uniform(0, 200, (k, 2)) for k in (2, 3, 1, 2)]
    shares = [dice.dirichlet(np.ones(len(one) + 1)) for one in spots]
    reach = np.array([10.0, 60.0, 0.0])

    def fit(t: int, i: int, j: int) -> float:
        if i == len(spots[t]) or j == len(spots[t + 1]):
            return ELSEWHERE
        away = float(np.linalg.norm(spots[t][i] - spots[t + 1][j]))
        return max(FLOOR, float(np.exp(-max(0, away - reach[t] - SLACK) / SLACK)))

    wanted = [np.zeros(len(one)) for one in shares]
    for path in product(*(range(len(one)) for one in shares)):
        weight = float(np.prod([shares[t][i] for t, i in enumerate(path)]))
        weight *= float(np.prod([fit(t, path[t], path[t + 1]) for t in range(3)]))
        for t, i in enumerate(path):
            wanted[t][i] += weight
    for mine, theirs in zip(smooth(spots, shares, reach), wanted, strict=True):
        assert mine == pytest.approx(theirs / theirs.sum(), abs=1e-12)


def line(number: int, places: list[tuple[float, float]], sure: float, zone: int = 0) -> Located:
    """A photo with candidates at so many metres east, each with its similarity."""
    matches = tuple(
        Match(path=f"{east:g}.jpg", east=east, north=0.0, latitude=None, longitude=None,
              similarity=alike, distance=1 - alike, zone=zone)
        for east, alike in places
    )  # fmt: skip
    spot = Spot(places[0][0], 0.0, zone, None, None, 20.0, 20.0, 0.0)
    taken = f"2024-05-01T10:00:{number:02d}"
    return Located(f"{number}.jpg", ANSWERED, "", sure, True, spot, matches, taken)


def east_of(lines: list[Located]) -> list[float]:
    return [one.spot.east for one in lines if one.spot is not None]


def test_an_unsure_photo_is_where_its_neighbours_are() -> None:
    walk = [line(at, [(10.0 * at, 0.9)], 0.9) for at in range(5)]
    walk[2] = line(2, [(900.0, 0.8), (20.0, 0.79)], 0.4)
    found, _ = follow(walk, speed=10)
    assert east_of(found) == [0, 10, 20, 30, 40]
    assert found[2].matches[0].path == "20.jpg"
    assert found[2].confidence > 0.8
    assert not found[2].calibrated


def test_alone_a_photo_says_what_it_says() -> None:
    alone = line(0, [(0.0, 0.5), (900.0, 0.9), (905.0, 0.9)], 0.02)
    assert east_of(follow([alone])[0]) == [0]


def test_a_wrong_neighbour_does_not_drag_a_sure_answer_away() -> None:
    walk = [line(0, [(0.0, 0.9), (900.0, 0.7)], 0.97), line(1, [(900.0, 0.9)], 0.9)]
    found, _ = follow(walk, speed=10)
    assert east_of(found) == [0, 900]


def test_unsure_neighbours_that_agree_do_not_carry_an_answer_along() -> None:
    unsure = [(900.0, 0.8), (0.0, 0.7), (400.0, 0.7)]
    walk = [line(0, unsure, 0.3), line(1, [(0.0, 0.8), (900.0, 0.78)], 0.3), line(2, unsure, 0.3)]
    assert east_of(follow(walk, speed=10)[0]) == [900, 0, 900]
    sure = [line(at, unsure, 0.9) if at != 1 else walk[1] for at in range(3)]
    assert east_of(follow(sure, speed=10)[0]) == [900, 900, 900]


def test_photos_far_apart_in_time_say_nothing_of_each_other() -> None:
    walk = [line(0, [(0.0, 0.9)], 0.95), line(59, [(900.0, 0.8), (0.0, 0.79)], 0.55)]
    assert east_of(follow(walk, speed=100)[0]) == [0, 900]
    assert east_of(follow(walk, speed=0.1)[0]) == [0, 0]


def test_a_clock_that_jumps_is_told_and_names_are_another_order() -> None:
    walk = [line(at, [(0.0, 0.9)], 0.9) for at in (5, 3, 8)]
    walk = [Located(**{**one.__dict__, "photo": f"{n}.jpg"}) for n, one in enumerate(walk)]
    rows, said = put_in_order(walk)
    assert rows == [1, 0, 2]
    assert "the clock jumps back 1 times" in said
    assert put_in_order(walk, "name") == ([0, 1, 2], "")
    for words in ({"order": "shuffled"}, {"speed": 0.0}):
        with pytest.raises(SettingError):
            follow(walk, **words)


def test_photos_without_a_clock_are_told_where_others_have_one() -> None:
    walk = [line(at, [(0.0, 0.9)], 0.9) for at in range(3)]
    walk[1] = replace(walk[1], taken="")
    rows, said = put_in_order(walk)
    assert rows == [0, 1, 2]
    assert said.startswith("1 of 3 photos have no time in their EXIF; ordered by name, so --speed")
    unreadable = Located("1.jpg", "unreadable", "it is empty")
    _, said = follow([walk[0], unreadable, walk[2]], order="time")
    assert said == "", "what is no part of the walk needs no clock"


def test_a_candidate_of_another_zone_is_not_near_and_keeps_its_own() -> None:
    walk = [line(at, [(5e5 + at, 0.9)], 0.9, zone=31) for at in range(4)]
    walk[2] = line(2, [(5e5, 0.8), (5e5 + 2, 0.79)], 0.4, zone=30)
    other = replace(walk[2].matches[1], zone=31, latitude=0.0, longitude=3.0)
    walk[2] = replace(walk[2], matches=(walk[2].matches[0], other))
    spot = follow(walk, speed=10)[0][2].spot
    assert spot is not None
    assert (spot.zone, spot.east) == (31, 5e5 + 2)
    assert spot.longitude == pytest.approx(3.0, abs=1e-4)


def test_where_a_precision_is_asked_for_only_what_the_walk_confirms_is_given() -> None:
    walk = [line(at, [(10.0 * at, 0.9)], 0.9) for at in range(5)]
    walk[2] = line(2, [(900.0, 0.8), (20.0, 0.79)], 0.4)
    walk[4] = line(4, [(40.0, 0.9)], 0.6)
    found, _ = follow(walk, speed=10, least=0.7)
    assert [one.answered for one in found] == [True, True, False, True, False]
    assert "its walk has it elsewhere" in found[2].reason
    assert found[4].reason == "0.60 sure, 0.70 asked"
    assert found[0].calibrated
