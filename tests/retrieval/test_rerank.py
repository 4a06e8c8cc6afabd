"""The rules that rank a pool: each against its formula, on pools small enough to read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import RunError, SettingError
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pool
from evenplace.retrieval.rerank import (
    CFD,
    KDE,
    L2,
    Cosine,
    Database,
    Fused,
    build_reranker,
    spectra_for,
)
from evenplace.retrieval.spectrum import PolarSpectra
from tests import oracle_search as oracle
from tests.drawn import photos_at, unit

Floats = NDArray[np.float32]


@pytest.fixture
def database() -> Database:
    """Nine photos in three places of 4, 1 and 4."""
    impostors = np.linspace(0, 0.4, 9, dtype=np.float32)
    return Database(unit(9, 6, 0), np.array([0, 4, 5, 9]), impostors)


@pytest.fixture
def pool(database: Database) -> Pool:
    query = unit(1, 6, 7)[0]
    labels = np.repeat([0, 1, 2], [4, 1, 4])
    posterior = np.log(np.array([0.2, 0.7, 0.1], np.float32))[labels]
    cosines = database.descriptors.astype(np.float32) @ query
    return Pool(np.arange(9), labels, cosines, posterior, query)


def test_l2_and_cosine_rank_alike(pool: Pool, database: Database) -> None:
    by_l2, by_cosine = L2().fit(database).rank(pool), Cosine().fit(database).rank(pool)
    np.testing.assert_array_equal(by_l2.order, by_cosine.order)
    expected = np.linalg.norm(database.descriptors - pool.query, axis=1)
    np.testing.assert_allclose(by_l2.distances, np.sort(expected), rtol=1e-4)


def test_the_fused_score_is_its_formula(pool: Pool, database: Database) -> None:
    found = Fused(scale=20, posterior=0.6, balance=0.3, impostor=0.4).fit(database).rank(pool)
    sizes = [4, 4, 4, 4, 1, 4, 4, 4, 4]
    scores = [
        20 * (float(pool.cosines[i]) - 0.4 * float(database.impostors[i]))
        + 0.6 * (float(pool.log_posterior[i]) - 0.3 * np.log(sizes[i]))
        for i in range(9)
    ]
    np.testing.assert_array_equal(found.order, np.argsort(-np.array(scores)))
    np.testing.assert_allclose(-found.distances, sorted(scores, reverse=True), rtol=1e-5)


def test_rules_do_unless_told_otherwise_what_they_say() -> None:
    assert [repr(rule()) for rule in (L2, Cosine, KDE, Fused, CFD)] == [
        "L2()",
        "Cosine()",
        "KDE(scale=30.0)",
        "Fused(scale=30.0, posterior=0.5, balance=0.5, impostor=0.5)",
        "CFD(alpha=0.7, frequencies='paper', count=1024, phase='wrapped', unit='place', "
        "unbiased=False, seed=0)",
    ]


def test_a_learned_score_survives_the_disk_and_can_lose_terms(tmp_path: Path) -> None:
    score = Fused(scale=14.0, posterior=0.8, balance=1.5, impostor=0.9)
    score.write(tmp_path / "fused.json")
    assert Fused.read(tmp_path / "fused.json") == score
    assert (tmp_path / "fused.json").read_text().startswith('{\n "scale": 14.0,\n')
    assert score.without(["posterior", "impostor"]) == Fused(14.0, 0.0, 1.5, 0.0)
    for wrong in ("[]", '{"scale": 1}', "no"):
        (tmp_path / "fused.json").write_text(wrong)
        with pytest.raises(RunError, match=r"is no fused score .*learn it again: evenplace tune"):
            Fused.read(tmp_path / "fused.json")


def test_a_photo_as_alike_as_can_be_is_at_no_distance() -> None:
    query = unit(1, 6, 7)[0]
    beyond = np.array([1.0001, 1.0, 0.5], np.float32)  # a product may round up
    pool = Pool(np.arange(3), np.zeros(3, np.int64), beyond, np.zeros(3, np.float32), query)
    assert L2().rank(pool).distances.tolist() == [0.0, 0.0, 1.0]
    assert Cosine().rank(pool).distances[2] == 0.5


def test_a_photo_in_no_place_counts_as_the_only_one_of_its_own(database: Database) -> None:
    query = unit(1, 6, 7)[0]
    cosines = np.array([0.5, 0.5], np.float32)
    pool = Pool(np.array([0, 0]), np.array([0, -1]), cosines, np.zeros(2, np.float32), query)
    found = Fused(scale=1.0, posterior=1.0, balance=1.0, impostor=0.0).fit(database).rank(pool)
    assert found.order.tolist() == [1, 0]
    assert found.distances.tolist() == pytest.approx([-0.5, np.log(4) - 0.5])


@pytest.mark.parametrize("phase", ["wrapped", "weighted"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_cfd_of_photos_takes_their_phase_and_the_amplitude_of_the_place(
    pool: Pool, database: Database, phase: str, unbiased: bool
) -> None:
    rule = CFD(alpha=0.2, frequencies="matched", count=64, phase=phase, unit="photo",
               unbiased=unbiased).fit(database)  # fmt: skip
    found = rule.rank(pool)
    points = rule._spectra.points.astype(float)
    levels = rule._spectra.levels[:, int(unbiased)]
    for row, distance in zip(found.order, found.distances, strict=True):
        turn = 0.0
        for point in points:
            delta = float(point @ (database.descriptors[row].astype(float) - pool.query))
            wrapped = (delta + np.pi) % (2 * np.pi) - np.pi
            turn += 2 * (1 - np.cos(delta)) if phase == "weighted" else wrapped**2
        mean, spread = levels[pool.places[row]]
        weight = min(0.2 / mean, 1.0)
        expected = weight * spread + (1 - weight) * turn / len(points)
        assert distance == pytest.approx(expected, rel=1e-3)


def test_rules_are_equal_by_their_settings_whatever_they_have_looked_at(database: Database) -> None:
    for rule in (Fused, CFD):
        assert rule() == rule() == rule().fit(database)
        assert rule().fit(database) == rule().fit(database)
    assert Fused() != Fused(scale=29.0)
    assert CFD() != CFD(seed=1)


def test_fusion_without_posterior_and_impostors_is_cosine(pool: Pool, database: Database) -> None:
    fused = Fused(posterior=0, impostor=0).fit(database).rank(pool)
    np.testing.assert_array_equal(fused.order, Cosine().fit(database).rank(pool).order)


def test_the_kernel_density_equals_the_loops(pool: Pool, database: Database) -> None:
    found = KDE(scale=12.0).fit(database).rank(pool)
    by_row = dict(zip(found.order.tolist(), found.distances.tolist(), strict=True))
    for place, rows in enumerate(([0, 1, 2, 3], [4], [5, 6, 7, 8])):
        photos = database.descriptors[rows].astype(float).tolist()
        density = oracle.kernel_density(pool.query.astype(float).tolist(), photos, 12.0)
        for row in rows:
            assert by_row[row] == pytest.approx(-density, rel=1e-4), place


def test_place_rules_keep_places_together_and_photos_in_order_of_likeness(
    pool: Pool, database: Database
) -> None:
    for rule in (KDE(), CFD(frequencies="matched", count=64)):
        order = rule.fit(database).rank(pool).order
        labels = pool.places[order]
        assert len(np.flatnonzero(np.diff(labels))) == 2, rule
        for place in range(3):
            cosines = pool.cosines[order][labels == place]
            assert (np.diff(cosines) <= 0).all(), rule


@pytest.mark.parametrize("phase", ["wrapped", "weighted"])
def test_cfd_with_one_photo_a_place_ranks_photos_like_places(phase: str) -> None:
    database = Database(unit(6, 8, 0), np.arange(7), np.zeros(6, np.float32))
    query = unit(1, 8, 3)[0]
    pool = Pool(np.arange(6), np.arange(6), database.descriptors @ query,
                np.zeros(6, np.float32), query)  # fmt: skip
    by_place, by_photo = (
        CFD(frequencies="matched", count=256, phase=phase, unit=unit_).fit(database).rank(pool)
        for unit_ in ("place", "photo")
    )
    np.testing.assert_array_equal(by_place.order, by_photo.order)
    np.testing.assert_allclose(by_place.distances, by_photo.distances, rtol=1e-3, atol=1e-6)


def test_photos_in_no_place_come_last_under_cfd(database: Database) -> None:
    query = unit(1, 6, 7)[0]
    labels = np.array([0, 0, 0, 0, 1, 2, 2, 2, -1])
    pool = Pool(np.arange(9), labels, database.descriptors @ query,
                np.zeros(9, np.float32), query)  # fmt: skip
    assert CFD(count=64).fit(database).rank(pool).order[-1] == 8


@pytest.mark.parametrize(
    ("name", "kind", "frequencies"),
    [("l2", L2, None), ("fused", Fused, None), ("cfd", CFD, "paper"),
     ("cfd-multiscale", CFD, "multiscale")],
)  # fmt: skip
def test_rules_are_built_by_name(name: str, kind: type[Any], frequencies: str | None) -> None:
    rule = build_reranker(name)
    assert isinstance(rule, kind)
    assert getattr(rule, "frequencies", None) == frequencies


def test_bad_rules_say_what_would_do() -> None:
    with pytest.raises(SettingError, match="did you mean 'cosine'"):
        build_reranker("cosin")
    with pytest.raises(SettingError, match="l2-matched"):
        build_reranker("l2-matched")
    for alpha in (1.01, -0.01):
        with pytest.raises(SettingError, match=f"alpha={alpha}"):
            CFD(alpha=alpha)
    assert (CFD(alpha=0.0).alpha, CFD(alpha=1.0).alpha) == (0.0, 1.0)
    with pytest.raises(SettingError, match="phase"):
        CFD(phase="turned")
    with pytest.raises(SettingError, match="unit"):
        CFD(unit="photos")


def test_spectra_are_measured_when_the_index_is_built_and_read_by_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [spectra_for(name) for name in ("cfd", "cfd-matched", "l2")] == [
        ("paper",), ("matched",), ()
    ]  # fmt: skip
    photos = photos_at(np.random.default_rng(0).uniform(0, 200, (80, 2)))
    places = Grid(20).partition(photos)
    vectors, queries = unit(80, 12, 0), unit(5, 12, 1)
    plain = index_descriptors(vectors, photos, places, tmp_path / "plain")
    kept = index_descriptors(vectors, photos, places, tmp_path / "kept", spectra=spectra_for("cfd"))
    expected = Search(plain, rerank="cfd").search(queries, 5)

    def measured(*_: object) -> None:
        raise AssertionError("a search measured spectra that the index holds")

    monkeypatch.setattr(PolarSpectra, "measure", measured)
    found = Search(kept, rerank="cfd").search(queries, 5)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-5)
