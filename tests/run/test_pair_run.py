"""A run of two networks by its name: trained, indexed, evaluated, asked, served, updated."""

import json
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from evenplace.cli import app
from evenplace.describe.describer import Describer
from evenplace.errors import IndexFileError, RunError, SettingError, WeightsError
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.network import build_network
from evenplace.photos import read_photos
from evenplace.retrieval import Search, open_index
from evenplace.retrieval.rerank import Fused
from evenplace.retrieval.update import remove_photos
from evenplace.run.run import Run
from evenplace.serve.served_index import IndexWatch
from evenplace.serve.settings import Settings
from evenplace.training.recipe import Recipe, read_recipe
from tests.drawn import draw_photos, draw_split, rehearsed

PAIRS = {"dc-cosplace": "cosplace", "dapr-c-salad": "salad", "dapr-c-boq": "boq"}
QUICK = ("epochs=1", "image_size=64", "dim=16", "search.shortlist=4")


def say(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if code:
        return str(done.exception)
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.output


def keep_network(path: Path, method: str) -> Path:
    """A describer's small network, untrained, as a run would keep it."""
    spec = replace(read_recipe(f"{method}-small").network, image_size=96)
    save_checkpoint(path, build_network(spec), {})
    return path


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("town"), database=40, queries=10)


def make(name: str, town: Path, folder: Path) -> Path:
    """Train and index a pair by the name of its small recipe, as a person would."""
    run, weights = folder / "run", keep_network(folder / "second.safetensors", PAIRS[name])
    settings = [word for setting in QUICK for word in ("--set", setting)]
    say("train", town / "database", "--run", run, "--method", f"{name}-small", *settings)
    say("index", run, "--database", town / "database", "--checkpoint", weights)
    return run


@pytest.fixture(scope="module")
def made(town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("dc-cosplace", town, tmp_path_factory.mktemp("made"))


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


FIRST, *OTHERS = PAIRS


@pytest.mark.parametrize(
    "name", [FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in OTHERS)]
)
def test_a_pair_runs_by_its_name(name: str, town: Path, tmp_path: Path) -> None:
    run = make(name, town, tmp_path)
    assert f"{name}-small" in say("evaluate", run, "--queries", town / "queries")
    cost = json.loads((run / "scores.json").read_text())["cost"]
    indexes = [open_index(folder) for folder in Run(run).files.indexes]
    assert cost["index_bytes"] == sum(index.bytes for index in indexes)
    assert cost["dim"] == indexes[0].dim != indexes[1].dim
    photo = sorted((town / "queries").iterdir())[0]
    hits = json.loads(say("locate", run, photo, "-k", 3, "--json"))["hits"]
    index, ranking = open_index(run / "index"), open_index(run / "ranking")
    first, second = Run(run).files.open_describer().describe([str(photo)]).split()
    places = np.argsort(-(index.prototypes @ first[0]))[:4]
    pool = np.flatnonzero(np.isin(index.labels, places))
    order = np.argsort(-(ranking.vectors(pool) @ second[0]))[:3]
    assert [hit["path"] for hit in hits] == index.paths(pool[order])
    say("report", run)


def test_what_the_classifier_learned_of_its_own_ranking_is_not_used(run: Path, town: Path) -> None:
    weights = {"scale": 3.0, "posterior": 1.0, "balance": 1.0, "impostor": 1.0}
    (run / "fused.json").write_text(json.dumps(weights))
    sure = np.linspace(0, 1, 50, dtype=np.float32)
    rehearsed(sure, sure > 0.5, "fused", "mass").write(run / "calibration.json")
    engine = Run(run).search(rerank="fused")
    assert engine.calibration is None
    assert isinstance(engine.rule, Fused)
    assert engine.rule.scale == Fused().scale
    scores = Run(run).evaluate(read_photos(town / "queries"), rerank="cfd", out=run.parent)
    assert scores.overall.queries == 10
    with pytest.raises(SettingError, match=r"folds=3 .* cosplace ranks; use folds=0"):
        Recipe().changed(["search.describer=cosplace", "search.folds=3"])
    with pytest.raises(SettingError, match="did you mean 'salad'"):
        Recipe().changed(["search.describer=salat"])


def test_a_service_opens_the_pair_and_follows_its_updates(run: Path, town: Path) -> None:
    watch = IndexWatch(Settings(run))
    before = watch.current.engine
    assert before.describer is not None
    assert len(before.describer.dims) == 2
    photo = sorted((town / "queries").iterdir())[0]
    assert len(before.answer(str(photo)).hits) > 0
    say("index", "add", run, "--database", town / "queries")
    assert watch.refresh()
    grown = watch.current.engine
    assert len(grown.index) == len(grown.ranking) == len(before.index) + 10
    assert Run(run).search(exact=True).answer(str(photo), 1).hits[0].path == str(photo)
    said = say("index", "remove", run, photo)
    assert watch.refresh()
    left = watch.current.engine
    assert len(left.index) == len(left.ranking) == len(before.index) + 9
    assert str(photo) not in left.index.photos.paths
    assert f"{left.index_bytes / 2**20:.1f} MiB" in said
    assert say("verify", run).count("is whole") == 2


def test_an_update_of_one_index_alone_is_noticed(run: Path) -> None:
    remove_photos(run / "index", open_index(run / "index").paths(np.array([0])))
    with pytest.raises(IndexFileError, match=r"\(40 photos\).*\(39\).*both networks"):
        Run(run).search()


def test_an_update_stopped_between_the_indexes_goes_on_when_typed_again(
    run: Path, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index that ranks is written first; a kill there leaves the other as it was."""
    photos = [str(path) for path in sorted((town / "queries").iterdir())]
    add = ("index", "add", run, "--database", town / "queries")
    for words, many in ((add, 50), (("index", "remove", run, *photos), 40)):
        with monkeypatch.context() as killed:
            for name in (
                "evenplace.run.indexing.add_photos",
                "evenplace.retrieval.update.remove_photos",
            ):
                killed.setattr(name, _stop_at_index(name))
            say(*words, code=130)
        with pytest.raises(IndexFileError, match="type the command that was stopped again"):
            Run(run).search()
        say(*words)
        assert len(Run(run).search().index) == many


def _stop_at_index(name: str) -> Any:
    module, _, function = name.rpartition(".")
    update = getattr(import_module(module), function)

    def stop(folder: Path, *given: Any, **named: Any) -> Any:
        if folder.name == "index":
            raise KeyboardInterrupt
        return update(folder, *given, **named)

    return stop


def test_a_photo_that_cannot_be_read_is_in_neither_index(run: Path, tmp_path: Path) -> None:
    spots = np.random.default_rng(2).uniform(0, 100, (12, 2))
    draw_photos(tmp_path / "more", spots, seed=2)
    victim = sorted((tmp_path / "more").iterdir())[4]
    victim.write_bytes(victim.read_bytes()[:80])
    built = Run(run).index(read_photos(tmp_path / "more"))
    assert [skipped.path for skipped in built.photos.skipped] == [str(victim)]
    for folder in Run(run).files.indexes:
        assert len(open_index(folder)) == 11
        assert str(victim) not in open_index(folder).photos.paths
    assert not (run / "descriptors").exists()


def test_the_describer_stays_until_another_is_chosen(run: Path, town: Path, tmp_path: Path) -> None:
    database = read_photos(town / "database")
    before = (run / "describer.safetensors").read_bytes()
    Run(run).index(database)
    assert (run / "describer.safetensors").read_bytes() == before
    Run(run).files.choose_describer("imagenet", backbone="efficientnet-lite0", dim=8, image_size=64)
    with pytest.raises(IndexFileError, match=r"ranking was written by model .* index the database"):
        Run(run).search()
    Run(run).index(database)
    assert Run(run).search().ranking.dim == 8


def test_without_a_network_the_sentence_names_the_file_to_get(
    run: Path, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "describer.safetensors").unlink()
    recipe = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(recipe.replace('"cosplace-small"', '"cosplace"'))
    with pytest.raises(RunError, match="index first: evenplace index"):
        Run(run).search()

    def offline(*words: object, **options: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setenv("EVENPLACE_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr("urllib.request.urlopen", offline)
    with pytest.raises(WeightsError, match=r"cosplace.pth cannot be fetched .*; put the file from"):
        Run(run).index(read_photos(town / "database"))


def test_weights_of_a_second_network_need_a_run_that_has_one(
    run: Path, town: Path, tmp_path: Path
) -> None:
    (run / "recipe.toml").write_text(
        (run / "recipe.toml").read_text().replace('describer = "cosplace-small"\n', "")
    )
    with pytest.raises(SettingError, match="ranks with the network it trained"):
        Run(run).files.choose_describer("imagenet")
    words = ("index", run, "--database", town / "database")
    assert "add --method" in say(*words, "--checkpoint", "imagenet", code=2)
    assert "--set dim needs" in say(*words, "--set", "dim=8", code=2)
    with pytest.raises(SettingError, match=r"two networks.*train PHOTOS --method dapr-c-boq"):
        Run(tmp_path / "new").index_method(read_photos(town / "database"), "dapr-c-boq")


def test_a_pair_asks_two_indexes_and_one_network_one(run: Path) -> None:
    engine = Run(run).search()
    with pytest.raises(SettingError, match="2 networks cannot ask 1 indexes"):
        Search(engine.index, engine.describer)
    with pytest.raises(SettingError, match="1 networks cannot ask 2 indexes"):
        Search(engine.index, Describer(Run(run).files.network), ranked_by=engine.ranking)


def test_pictures_of_any_size_are_asked(run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (30, 200), "teal").save(tmp_path / "tall.png")
    assert len(Run(run).search().answer(str(tmp_path / "tall.png"), 2).hits) == 2
