"""A run in Python: the example of the README, and the same answers as the command line."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import evenplace as ep
from evenplace.cli import app
from evenplace.errors import RunError
from tests.drawn import draw_split

QUICK = ["epochs=2", "image_size=64", "batch=16", "dim=16", "search.folds=2", "verify=0"]


def say(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.output


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("town"), database=60, queries=8)


@pytest.fixture(scope="module")
def made(town: Path, tmp_path_factory: pytest.TempPathFactory) -> ep.Run:
    photos = ep.read_photos(town / "database")
    places = ep.Grid(cell=25, min_photos=2).partition(photos)
    recipe = ep.read_recipe("dapr-m").changed(QUICK)
    run = ep.train(photos, places, recipe=recipe, run=tmp_path_factory.mktemp("runs") / "town")
    run.index(photos)
    return run


@pytest.fixture
def run(made: ep.Run, tmp_path: Path) -> ep.Run:
    shutil.copytree(made.folder, tmp_path / "run")
    return ep.Run.open(tmp_path / "run")


def test_the_example_of_the_readme_works_as_printed(made: ep.Run, town: Path) -> None:
    answer = made.locate(sorted((town / "queries").iterdir())[0], k=5)
    assert len(answer.hits) == 5
    assert Path(answer.hits[0].path).parent == town / "database"
    assert 0 <= answer.confidence <= 1
    assert answer.position.east > 0
    scores = made.evaluate(ep.read_photos(town / "queries"), radius=25)
    assert 0 <= scores.recall[1] <= 100
    assert scores.tail.recall.keys() == scores.recall.keys()
    assert ep.write_report(scores, made.folder / "report").exists()
    assert made.scores().overall == scores.overall


def test_places_that_were_cut_by_hand_are_in_the_recipe(made: ep.Run) -> None:
    assert made.recipe.places.cell == 25
    assert made.recipe.places.min_photos == 2


def test_python_says_to_the_last_digit_what_the_command_line_prints(
    made: ep.Run, town: Path
) -> None:
    for photo in sorted((town / "queries").iterdir())[:3]:
        answer = ep.Run.open(made.folder).locate(photo, k=3)
        said = json.loads(say("locate", made.folder, photo, "-k", 3, "--json"))
        assert said["confidence"] == round(answer.confidence, 4)
        assert said["calibrated"] is answer.calibrated is True
        assert [hit["path"] for hit in said["hits"]] == [hit.path for hit in answer.hits]
        assert [hit["distance"] for hit in said["hits"]] == [
            round(hit.distance, 5) for hit in answer.hits
        ]
        where = said["position"]
        assert (where["east"], where["north"]) == (
            round(answer.position.east, 2), round(answer.position.north, 2),
        )  # fmt: skip
        assert where["zone"] == 34
        assert 36 < where["latitude"] < 37
        text = say("locate", made.folder, photo)
        assert f"confidence {answer.confidence:.2f}: answers like this one are right" in text
        assert "UTM 34N east 500" in text


def test_the_service_and_the_command_line_say_one_object(made: ep.Run, town: Path) -> None:
    pytest.importorskip("fastapi")
    from evenplace.serve.responses import say_answer
    from evenplace.serve.served_index import IndexWatch
    from evenplace.serve.settings import Settings

    photo = sorted((town / "queries").iterdir())[0]
    current = IndexWatch(Settings(made.folder)).current
    served = say_answer(current, current.engine.answer(str(photo), 3)).model_dump()
    said = json.loads(say("locate", made.folder, photo, "-k", 3, "--json"))
    for hit in said["hits"]:
        assert Path(hit.pop("path")).exists()
    for hit in served["hits"]:
        assert hit.pop("pairs") is None  # only where ?matches= asks for them
    del said["elapsed_ms"], served["elapsed_ms"]
    assert said == served


def test_an_index_that_grew_is_asked_at_once(run: ep.Run, town: Path) -> None:
    photo = sorted((town / "queries").iterdir())[0]
    before = run.locate(photo)
    run.add(ep.read_photos(town / "queries")[:1])
    again = run.locate(photo, k=60)
    assert str(photo) in [hit.path for hit in again.hits]
    run.remove([str(photo)])
    assert [hit.path for hit in run.locate(photo).hits] == [hit.path for hit in before.hits]
    assert str(photo) not in [hit.path for hit in run.locate(photo, k=60).hits]


def test_tuning_a_trained_run_again_learns_the_same(run: ep.Run) -> None:
    before = (run.folder / "calibration.json").read_bytes()
    (run.folder / "calibration.json").unlink()
    said = say("tune", run.folder)
    assert "calibrated on " in said
    assert "uncalibrated" not in said
    assert (run.folder / "calibration.json").read_bytes() == before
    assert not (run.folder / "folds").exists()


@pytest.mark.parametrize(
    ("name", "at"),
    [("model.safetensors", 0.5), ("model.safetensors", 1.0), ("calibration.json", 0.9)],
)
def test_a_flipped_bit_is_blamed_on_the_file_it_is_in(run: ep.Run, name: str, at: float) -> None:
    assert "as written: calibration.json, fused.json, model.safetensors" in say(
        "verify", run.folder
    )
    data = bytearray((run.folder / name).read_bytes())
    data[int(at * len(data)) - 3] ^= 1
    (run.folder / name).write_bytes(data)
    with pytest.raises(RunError, match=rf"{name} does not match its checksum"):
        run.verify()
    if name == "model.safetensors":
        with pytest.raises(RunError, match=r"model.safetensors is damaged .*restore a copy"):
            run.search()


def test_no_run_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no run folder; make one: evenplace train"):
        ep.Run.open(tmp_path / "nowhere")
