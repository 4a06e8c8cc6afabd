"""Descriptors that others computed are a run: indexed, tuned, asked, and no file is opened."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import evenplace as ep
from evenplace.cli import app
from evenplace.errors import IndexFileError, RunError, SettingError
from evenplace.evaluation.predictions import read_texts
from evenplace.photos.read import read_rows
from evenplace.run.best_settings import Choice, choose
from evenplace.run.folds import stored_folds
from tests.drawn import photos_at


def say(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if code:
        return str(done.exception)
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.output


def seen(spots: NDArray[np.float64], seed: int, noise: float = 0.05) -> NDArray[np.float32]:
    """What a good network would say: nearby spots look alike, in every direction of 32."""
    waves = np.random.default_rng(0)
    angles = spots @ waves.normal(0, 0.04, (2, 32)) + waves.uniform(0, 6, 32)
    looks = np.cos(angles) + np.random.default_rng(seed).normal(0, noise, angles.shape)
    return np.asarray(looks / np.linalg.norm(looks, axis=1, keepdims=True), np.float32)


SPOTS = np.random.default_rng(1).uniform(0, 300, (400, 2))
ASKED = np.random.default_rng(2).uniform(20, 280, (40, 2))


def table(path: Path, spots: NDArray[np.float64]) -> Path:
    photos = photos_at(spots)
    rows = [
        f"{name},{east:.3f},{north:.3f},34"
        for name, (east, north) in zip(photos.paths, photos.positions, strict=True)
    ]
    path.write_text("\n".join(["path,east,north,zone", *rows]))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and descriptors; the photos they are of are on another machine."""
    home = tmp_path_factory.mktemp("foreign")
    table(home / "database.csv", SPOTS)
    table(home / "queries.csv", ASKED)
    np.save(home / "database.npy", seen(SPOTS, 3))
    np.save(home / "queries.npy", seen(ASKED, 4))
    np.save(home / "one.npy", seen(ASKED, 4)[0])
    run = home / "run"
    words = ("--database", home / "database.csv", "--descriptors", home / "database.npy")
    assert f"next: evenplace tune {run}" in say("index", run, *words).replace("\n", " ")
    return home


def test_the_verbs_take_them_one_after_the_other(folder: Path) -> None:
    run = folder / "run"
    asked = ("--queries", folder / "queries.csv", "--descriptors", folder / "queries.npy")
    assert "descriptors" in say("evaluate", run, *asked)
    plain = ep.Run.open(run).scores().recall[1]
    assert "uncalibrated: the photos carry no capture times" in say("tune", run)
    said = say("evaluate", run, *asked, "--min-precision", 0.8, "--insist")
    assert "asked for 80 % right:" in said
    tuned = ep.Run.open(run).scores()
    assert tuned.recall[1] >= plain - 2.5  # one query of 40
    assert tuned.recall[1] > 80
    answer = json.loads(say("locate", run, "--descriptor", folder / "one.npy", "--json"))
    assert (answer["calibrated"], answer["doubt"]) == (False, "the photos carry no capture times")
    assert "calibrated on 40 answers" in say("tune", run, *asked)
    answer = json.loads(say("locate", run, "--descriptor", folder / "one.npy", "--json"))
    assert (answer["calibrated"], answer["doubt"]) == (True, "")
    assert abs(answer["hits"][0]["east"] - 500_000 - ASKED[0, 0]) < 25
    assert answer["hits"][0]["path"].startswith("photo-")
    recipe = ep.Run.open(run).recipe
    assert (recipe.search.rerank, recipe.search.folds) == ("fused", 3)
    say("report", run)


def test_what_needs_a_network_says_so(folder: Path, tmp_path: Path) -> None:
    run = folder / "run"
    photo = tmp_path / "a.jpg"
    photo.write_bytes(b"")
    assert "no network for photos" in say("locate", run, photo, code=2)
    with pytest.raises(RunError, match="no network for photos"):
        ep.Run(run).add(photos_at(SPOTS))
    pytest.importorskip("fastapi")
    from evenplace.serve.served_index import IndexWatch
    from evenplace.serve.settings import Settings

    with pytest.raises(RunError, match="no network for photos, which a service needs"):
        IndexWatch(Settings(run))
    assert "photos or --descriptor" in say("locate", run, code=2)


def test_python_makes_the_same_run(folder: Path, tmp_path: Path) -> None:
    photos = read_rows(folder / "database.csv")
    places = ep.Grid(cell=20).partition(photos)
    run = ep.from_descriptors(seen(SPOTS, 3), photos, places, run=tmp_path / "run")
    say("tune", folder / "run")
    for name in ("calibration.json", "fused.json", "recipe.toml"):
        assert (run.folder / name).read_bytes() == (folder / "run" / name).read_bytes()
    assert abs(run.locate(seen(ASKED, 4)[0]).position.east - 500_000 - ASKED[0, 0]) < 25


def test_nobody_is_asked_about_what_his_fold_has_seen(folder: Path, tmp_path: Path) -> None:
    index = ep.open_index(folder / "run" / "index")
    folds = stored_folds(index, 3, 0, tmp_path)
    assert sum(len(fold.queries) for fold in folds) == 400
    for fold in folds:
        asked = {tuple(spot) for spot in fold.queries.positions.tolist()}
        assert not asked & {tuple(spot) for spot in fold.index.photos.positions.tolist()}
        assert len(fold.queries) + len(fold.index) == 400
        np.testing.assert_allclose(  # prototypes are of the others alone
            fold.index.prototypes[0],
            _mean(fold.index.vectors(np.flatnonzero(fold.index.labels == 0))),
            atol=2e-3,  # float16 rows
        )


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    total = rows.sum(axis=0)
    return np.asarray(total / np.linalg.norm(total), np.float32)


def test_a_wish_that_is_no_share_is_refused_before_anything_runs(folder: Path) -> None:
    run = folder / "run"
    for words in (
        ("locate", run, "--descriptor", folder / "one.npy"),
        ("evaluate", run, "--queries", folder / "queries.csv"),
    ):
        assert "min_precision=2.0 must lie between" in say(*words, "--min-precision", 2, code=2)


def test_two_networks_are_not_tuned(tmp_path: Path) -> None:
    from evenplace.run.tune import tuned_recipe

    with pytest.raises(SettingError, match="ranks by salad"):
        tuned_recipe(ep.Recipe().changed(["search.describer=salad"]), trained=True)
    moved = ep.Recipe().changed(["axes=learned"])
    with pytest.raises(SettingError, match="add --set prototypes=means"):
        tuned_recipe(moved, trained=True)  # whose prototypes were trained along other axes
    assert tuned_recipe(moved, trained=False).search.axes == "learned"


def test_tuning_learns_for_the_rule_that_was_asked_for(folder: Path, tmp_path: Path) -> None:
    run, given = tmp_path / "run", ("--descriptors", folder / "database.npy")
    say("index", run, "--database", folder / "database.csv", *given)
    assert "folds=0 holds no photo out" in say("tune", run, "--set", "folds=0", code=2)
    assert ep.Run.open(run).recipe.search.folds == 0  # refused, it leaves the recipe as it was
    say("tune", run, "--set", "rerank=l2")
    search = ep.Run.open(run).recipe.search
    assert (search.rerank, search.confidence, search.folds) == ("l2", "mass", 3)
    assert not (run / "fused.json").exists()


def test_text_files_list_every_match_not_only_those_that_were_found(
    folder: Path, tmp_path: Path
) -> None:
    run, given = folder / "run", ("--descriptors", folder / "queries.npy", "--radius", 50)
    say("evaluate", run, "--queries", folder / "queries.csv", *given, "--texts", tmp_path)
    asked = ep.Run.open(run).scores().predictions
    listed = read_texts(tmp_path)
    assert [len(one.positives) for one in listed] == asked.positives.tolist()
    assert asked.positives.max() > 20  # the hits that are kept
    for one, paths, right in zip(listed, asked.hit_paths, asked.hit_right, strict=True):
        assert [path in one.positives for path in paths if path] == right[paths != ""].tolist()


def test_a_run_that_compares_everything_can_be_asked_by_its_shortlist(
    folder: Path, tmp_path: Path
) -> None:
    run, given = tmp_path / "run", ("--descriptors", folder / "database.npy")
    say("index", run, "--database", folder / "database.csv", *given)
    say("tune", run, "--set", "exact=true")
    asked = ("--queries", folder / "queries.csv", "--descriptors", folder / "queries.npy")
    for words, pool in (((), 400), (("--exact",), 400), (("--no-exact", "--shortlist", 2), 25)):
        say("evaluate", run, *asked, *words)
        assert ep.Run.open(run).scores().cost.pool_size <= pool


def test_descriptors_are_of_the_zone_and_city_that_were_asked_for(tmp_path: Path) -> None:
    east = np.linspace(1e-5, 3e-3, 100)  # degrees of longitude: London, east of Greenwich
    asked = np.linspace(-2e-4, 1e-3, 30)  # some stand 14 m west of it, in another UTM zone
    for name, degrees in (("database", east), ("queries", asked)):
        rows = [f"{n}.jpg,51.48,{at:.7f},{'n' if n % 2 else 's'}" for n, at in enumerate(degrees)]
        (tmp_path / f"{name}.csv").write_text("path,lat,lon,city\n" + "\n".join(rows) + "\n")
        looks = np.stack([np.cos(degrees * 900), np.sin(degrees * 900)], axis=1)
        np.save(tmp_path / f"{name}.npy", looks.astype(np.float32))
    words = ("--database", tmp_path / "database.csv", "--descriptors", tmp_path / "database.npy")
    assert "but there are 50 photos" in say("index", tmp_path / "n", *words, "--city", "n", code=2)
    say("index", tmp_path / "run", *words)
    words = ("--queries", tmp_path / "queries.csv", "--descriptors", tmp_path / "queries.npy")
    assert "30 queries, 25 with a match" in say("evaluate", tmp_path / "run", *words)
    assert "30 queries, 30 with a match" in say("evaluate", tmp_path / "run", *words, "--zone", 31)


def asked_again(run: Path, folder: Path) -> list[float]:
    """How sure each answer is: changes with any part of the score."""
    words = ("--queries", folder / "queries.csv", "--descriptors", folder / "queries.npy")
    say("evaluate", run, *words)
    return [float(one) for one in ep.Run.open(run).scores().predictions.confidence]


def test_tuning_takes_other_prototypes_and_answers_by_them(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--database", folder / "database.csv", "--descriptors", folder / "database.npy")
    say("index", run, *words)
    found = {}
    for kind in ("means", "softmax", "low-visit-bias"):
        say("tune", run, "--set", f"prototypes={kind}")
        assert ep.open_index(run / "index").manifest.prototypes == kind
        assert ep.Run.open(run).recipe.search.prototypes == kind
        found[kind] = asked_again(run, folder)
    for one, other in itertools.combinations(found.values(), 2):
        assert np.abs(np.subtract(one, other)).max() > 5e-6  # 4e-5; sums in another order 2e-7
    said = " ".join(say("tune", run, "--set", "prototypes=best").split())
    assert "prototypes stay means: against means, softmax wins" in said
    assert "of 400 held-out photos" in said
    assert ep.Run.open(run).recipe.search.prototypes == "means"
    say("tune", run, "--set", "prototypes=softmax")
    say("tune", run, "--set", "prototypes=cosine")  # nobody trained any: the means
    assert asked_again(run, folder) == pytest.approx(found["means"], abs=1e-6)


def test_folds_choose_what_wins_more_than_chance() -> None:
    right = {
        "means": [0] * 100,
        "softmax": [1] * 9 + [0] * 91,
        "low-visit-bias": [1] * 4 + [0] * 96,
    }

    def answer(kind: str) -> NDArray[np.bool_]:
        return np.array(right[kind], bool)

    assert choose("prototypes", answer) == Choice(
        "prototypes",
        "softmax",
        "prototypes softmax: against means, softmax wins 9 and loses 0, low-visit-bias wins 4 "
        "and loses 0 of 100 held-out photos",
    )
    right["softmax"] = [1] * 3 + [0] * 97
    assert choose("prototypes", answer).kind == "means"  # four in four may be a coin's


def test_tuning_turns_descriptors_onto_half_whitened_axes_and_back(
    folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ("--database", folder / "database.csv", "--descriptors", folder / "database.npy")
    say("index", run, *words)
    say("tune", run)
    plain = asked_again(run, folder)
    say("tune", run, "--set", "axes=half-whitened")
    index, given = ep.open_index(run / "index"), np.load(folder / "database.npy")
    assert (index.codec.name, index.given, index.dim) == ("white1024", 32, 32)
    centred = given - given.mean(axis=0)
    spread = np.sqrt(np.linalg.eigvalsh(centred.T @ centred / len(given))[::-1])
    along = (given - given.mean(axis=0)) @ index.codec.axes
    np.testing.assert_allclose(  # what parted most by s parts by the root of s
        np.sqrt(np.square(along).mean(axis=0)) ** 2, spread * spread[0], rtol=1e-3
    )
    kept = index.codec.turn(index.as_given[:].astype(np.float32))
    np.testing.assert_allclose(index.descriptors[:], kept, atol=1e-3)  # float16 rows
    assert ep.Run.open(run).recipe.search.axes == "half-whitened"
    turned = asked_again(run, folder)
    assert np.abs(np.subtract(turned, plain)).max() > 1e-3
    assert ep.Run.open(run).scores().recall[1] > 80
    say("tune", run, "--set", "folds=4")  # from what was given, not whitened twice
    again = ep.open_index(run / "index")
    np.testing.assert_array_equal(again.codec.axes, index.codec.axes)
    said = " ".join(say("tune", run, "--set", "axes=best", "--set", "folds=3").split())
    assert "against given, half-whitened wins" in said
    say("tune", run, "--set", "axes=given")
    assert asked_again(run, folder) == pytest.approx(plain, abs=1e-6)
    assert ep.open_index(run / "index").columns.keys() == {"descriptors"}


def test_descriptors_that_were_rounded_are_not_turned(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--database", folder / "database.csv", "--descriptors", folder / "database.npy")
    say("index", run, *words, "--keep", "int8")
    said = say("tune", run, "--set", "axes=half-whitened", code=2)
    assert "keeps them as int8; index them again without --keep" in said
    pytest.importorskip("faiss")
    say("index", run, *words, "--keep", "pq8")
    say("tune", run)
    assert ep.open_index(run / "index").codec.name == "pq8"


@pytest.mark.parametrize("term", ["impostor", "posterior", "balance"])
def test_a_term_that_is_left_out_weighs_nothing(term: str, folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--database", folder / "database.csv", "--descriptors", folder / "database.npy")
    say("index", run, *words)
    say("tune", run)
    whole = asked_again(run, folder)
    say("tune", run, "--set", f'without=["{term}"]')
    assert json.loads((run / "fused.json").read_text())[term] == 0
    assert asked_again(run, folder) != whole
    assert ep.Run.open(run).search().calibration is not None  # of the score without it
    (run / "fused.json").unlink()
    assert getattr(ep.Run.open(run).search().rule, term) == 0


def test_an_unknown_term_or_kind_is_named(folder: Path) -> None:
    run = folder / "run"
    assert "balance" in say("tune", run, "--set", 'without=["balanse"]', code=2)
    assert "softmax" in say("tune", run, "--set", "prototypes=softmx", code=2)


def test_descriptors_come_as_people_hold_them(folder: Path, tmp_path: Path) -> None:
    import torch

    photos, queries = read_rows(folder / "database.csv"), read_rows(folder / "queries.csv")
    given, asked = seen(SPOTS, 3), seen(ASKED, 4)
    tensor = torch.from_numpy(given.copy())
    held = {
        "tensor": tensor.requires_grad_(),
        "half": tensor.detach().bfloat16(),
        "rows": list(given),
        "lists": given.tolist(),
        "column by column": np.asfortranarray(given.astype(np.float64)),
        "blocks": (given[at : at + 150] for at in range(0, 400, 150)),
    }
    for number, (name, one) in enumerate(held.items()):
        run = ep.Run(tmp_path / str(number))
        run.index_descriptors(one, photos)
        rounding = 0.02 if name == "half" else 1e-3  # an index keeps float16
        np.testing.assert_allclose(
            run.search().index.vectors(np.arange(9)),
            ep.open_index(folder / "run" / "index").vectors(np.arange(9)),
            atol=rounding, err_msg=name,
        )  # fmt: skip
        assert run.recipe.network.dim == 32
    answers = [run.locate(one) for one in (asked[0], asked[:1], asked[0].tolist())]
    answers.append(run.locate(torch.from_numpy(asked[0]).requires_grad_()))
    assert {answer.hits[0].similarity for answer in answers} == {answers[0].hits[0].similarity}
    scores = [run.evaluate(queries, one) for one in (asked, asked.tolist(), torch.tensor(asked))]
    assert {one.recall[1] for one in scores} == {scores[0].recall[1]}


def test_a_table_of_descriptors_is_its_numbers(folder: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    photos, given = read_rows(folder / "database.csv"), pandas.DataFrame(seen(SPOTS, 3))
    index = ep.Run(tmp_path).index_descriptors(given, photos)
    np.testing.assert_allclose(
        index.vectors(np.arange(400)),
        ep.open_index(folder / "run" / "index").vectors(np.arange(400)),
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones(12), "have shape (12,)"),
        (np.float32(3), "have shape ()"),
        (np.ones((400, 1, 32)), "have shape (400, 1, 32)"),
        (np.ones((400, 32)) * 1j, "are complex128; give real numbers"),
        (np.full((400, 32), "0.1"), "are <U3; give real numbers"),
        (np.zeros(400, [("v", "f4", (32,))]), "give real numbers"),
        (b"", "cannot be read"),
    ],
    ids=["flat", "scalar", "deep", "complex", "words", "records", "empty"],
)
def test_what_is_no_row_a_photo_is_refused_by_every_verb(
    folder: Path, tmp_path: Path, given: Any, said: str
) -> None:
    path = tmp_path / "given.npy"
    path.write_bytes(given) if isinstance(given, bytes) else np.save(path, given)
    database = ("--database", folder / "database.csv")
    queries = ("--queries", folder / "queries.csv", "--descriptors", path)
    assert said in say("index", tmp_path / "run", *database, "--descriptors", path, code=2)
    assert not (tmp_path / "run" / "recipe.toml").exists()
    assert said in say("evaluate", folder / "run", *queries, code=2)
    assert said in say("tune", folder / "run", *queries, code=2)


def test_other_than_one_row_a_query_is_refused(folder: Path, tmp_path: Path) -> None:
    for rows in (39, 41):
        np.save(tmp_path / "q.npy", seen(SPOTS, 3)[:rows])
        words = ("--queries", folder / "queries.csv", "--descriptors", tmp_path / "q.npy")
        for verb in ("evaluate", "tune"):
            said = say(verb, folder / "run", *words, code=2)
            assert f"shape ({rows}, 32), but there are 40 photos" in said
    ragged = [seen(SPOTS, 3)[:200], seen(SPOTS, 3)[200:, :20]]
    with pytest.raises(IndexFileError, match="32 numbers a photo at first and 20 later"):
        ep.Run(tmp_path / "run").index_descriptors(ragged, read_rows(folder / "database.csv"))


def test_hdf5_asks_as_arrays_do_and_damaged_rows_are_named(folder: Path, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")

    def write(name: str, rows: Any) -> Path:
        with h5py.File(tmp_path / name, "w") as file:
            for number, row in enumerate(rows):
                file[f"photo-{number:04}.jpg/global_descriptor"] = row
        return tmp_path / name

    run, asked = folder / "run", ("--queries", folder / "queries.csv", "--descriptors")
    say("evaluate", run, *asked, folder / "queries.npy")
    plain = ep.Run.open(run).scores().recall
    say("evaluate", run, *asked, write("q.h5", seen(ASKED, 4)))
    assert ep.Run.open(run).scores().recall == plain
    rows = list(seen(ASKED, 4))
    ragged = write("ragged.h5", [*rows[:7], rows[7][:20], *rows[8:]])
    said = say("evaluate", run, *asked, ragged, code=2)
    assert f"of photo-0007.jpg in {ragged} is 20 values of float32, not 32 numbers" in said
    said = say("evaluate", run, *asked, write("words.h5", [b"abc"] * 40), code=2)
    assert "not real numbers" in said
    said = say("locate", run, "--descriptor", ragged, code=2)
    assert "keep the descriptor of one as .npy" in said


def test_a_refused_index_leaves_what_was_learned(folder: Path, tmp_path: Path) -> None:
    run = ep.Run(tmp_path / "run")
    photos, given = read_rows(folder / "database.csv"), seen(SPOTS, 3)
    run.index_descriptors(given, photos)
    run.tune()
    before = {p.name: p.read_bytes() for p in run.folder.iterdir() if p.is_file()}
    assert {"calibration.json", "fused.json"} <= set(before)
    given[7, 3] = np.nan
    with pytest.raises(IndexFileError, match="descriptor 7 has length nan"):
        run.index_descriptors(given, photos)
    after = {p.name: p.read_bytes() for p in run.folder.iterdir() if p.is_file()}
    assert after == before
    run.index_descriptors(seen(SPOTS, 5), photos)  # and others forget it
    assert not (run.folder / "calibration.json").exists()


def test_a_descriptor_is_asked_alone_and_nothing_is_left_out_unsaid(
    folder: Path, tmp_path: Path
) -> None:
    run, one = folder / "run", ("--descriptor", folder / "one.npy")
    assert "verify=5 looks at pictures" in say("locate", run, *one, "--verify", 5, code=2)
    said = say("locate", run, *one, "--out", tmp_path / "a.csv", code=2)
    assert "a --descriptor's answer is printed" in said
    with pytest.raises(IndexFileError, match=r"shape \(2, 32\); give the descriptor of one photo"):
        ep.Run.open(run).locate(seen(ASKED, 4)[:2])


def test_tuning_changes_the_search_and_nothing_else(folder: Path) -> None:
    run = folder / "run"
    before = (run / "recipe.toml").read_bytes()
    for setting in ("dim=64", "epochs=3", "training.seed=1"):
        said = say("tune", run, "--set", setting, code=2)
        assert f"there is no setting of [search] '{setting.partition('=')[0]}'" in said
    assert (run / "recipe.toml").read_bytes() == before


def test_photos_that_do_not_say_which_way_they_look_are_not_counted_wrong(folder: Path) -> None:
    asked = ("--queries", folder / "queries.csv", "--descriptors", folder / "queries.npy")
    said = say("evaluate", folder / "run", *asked, "--heading", 45, code=2)
    assert "none of the 40 queries says; leave heading out" in said


def test_no_bytes_at_all_are_refused_before_photos_are_read(folder: Path) -> None:
    said = say("index", folder / "run", "--database", folder / "nowhere", "--bytes", 0, code=2)
    assert "bytes=0 keeps nothing of a photo; use 1 or more" in said


def test_queries_of_another_day_are_moved_to_the_database(folder: Path, tmp_path: Path) -> None:
    rows = np.load(folder / "queries.npy") + np.random.default_rng(9).normal(0, 0.25, 32)
    np.save(tmp_path / "night.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    run = tmp_path / "run"
    given = ("--descriptors", folder / "database.npy", "--database", folder / "database.csv")
    say("index", run, *given)
    asked = ("evaluate", run, "--queries", folder / "queries.csv", "--descriptors")
    say(*asked, tmp_path / "night.npy")
    alone = ep.Run(run).scores()
    told = say(*asked, tmp_path / "night.npy", "--centre")
    together = ep.Run(run).scores()
    assert "all of these photos differ from the database in one way" in told
    assert together.moved > 0.4 > alone.moved == 0
    assert together.recall[1] > alone.recall[1] + 0.2
    say(*asked, folder / "queries.npy", "--centre")
    assert ep.Run(run).scores().moved == 0
    assert "one way" not in say(*asked, tmp_path / "night.npy", "--no-centre")
