"""A box answers as its run does, where there is neither torch nor timm."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenplace.cli import main
from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.photos import read_photos
from evenplace.retrieval import open_index
from evenplace.retrieval.answer_json import answer_json, index_name
from evenplace.run.indexing import open_in_turn
from evenplace.run.run import Run
from evenplace.training.distributed import Ranks
from tests.drawn import draw_photos, draw_split
from tests.run.boxes import ask, draw_run, free_port, serving

ROOT = Path(__file__).parents[2]
ABSENT = ("torch", "timm", "torchvision", "safetensors", "onnx", "onnxscript", "matplotlib")
BLOCK = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return draw_run(tmp_path_factory.mktemp("made"))[0]


@pytest.fixture(scope="module")
def town(run: Run) -> Path:
    return run.folder.parent / "town"


@pytest.fixture(scope="module")
def box(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "box"
    assert run.export_box(folder) == sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose Python cannot import what a box leaves out."""
    hook = tmp_path_factory.mktemp("hook")
    (hook / "sitecustomize.py").write_text(BLOCK)
    return os.environ | {"PYTHONPATH": f"{hook}{os.pathsep}{ROOT / 'src'}"}


def type_bare(bare: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    said = [sys.executable, "-m", "evenplace", *map(str, words)]
    return subprocess.run(said, capture_output=True, text=True, env=bare)


def test_a_box_turns_photos_onto_the_axes_its_run_has_learned(tmp_path: Path) -> None:
    run, photo = draw_run(tmp_path)
    plain = run.locate(photo)
    assert run.tune(["axes=learned", "folds=2"]) is not None
    assert open_index(run.folder / "index").codec.name == "learned1024"
    answer = Run.open(run.folder, engine="torch").locate(photo)
    assert abs(answer.hits[0].distance - plain.hits[0].distance) > 1e-3
    run.export_box(tmp_path / "box")
    boxed = Run.open(tmp_path / "box").locate(photo)
    assert [hit.path for hit in boxed.hits] == [hit.path for hit in answer.hits]
    assert boxed.confidence == pytest.approx(answer.confidence, abs=1e-4)


def test_a_box_locates_as_its_run_does(
    run: Run, box: Path, town: Path, bare: dict[str, str]
) -> None:
    photo = sorted((town / "queries").iterdir())[0]
    answer = Run.open(run.folder, engine="torch").locate(photo)
    assert answer.calibrated
    done = type_bare(bare, "locate", box, photo, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [hit["path"] for hit in found["hits"]] == [hit.path for hit in answer.hits]
    assert found["confidence"] == pytest.approx(answer.confidence, abs=1e-4)


def test_a_box_is_a_run_to_python_to_the_last_digit(run: Run, box: Path, town: Path) -> None:
    photos = sorted((town / "queries").iterdir())
    ours, theirs = Run.open(run.folder, engine="onnxruntime"), Run.open(box)
    for photo in photos:
        one, other = ours.locate(photo), theirs.locate(photo)
        assert one.hits == other.hits
        assert (one.confidence, one.position) == (other.confidence, other.position)


@pytest.mark.parametrize("least", [None, 0.6])
def test_python_command_line_service_and_box_give_one_answer(
    run: Run,
    box: Path,
    town: Path,
    least: float | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = pytest.importorskip("fastapi.testclient")
    from evenplace.serve.app import create_app
    from evenplace.serve.settings import Settings

    photo = sorted((town / "queries").iterdir())[2]
    asked = [] if least is None else ["--min-precision", str(least)]
    answers = []
    for folder in (run.folder, box):  # the box's export is the run's engine too
        found, index = (
            Run.open(folder).locate(photo, min_precision=least),
            open_index(folder / "index"),
        )
        answers.append(answer_json(index, found, index_name(index.folder)))
        monkeypatch.setattr(
            sys, "argv", ["evenplace", "locate", str(folder), str(photo), "--json", *asked]
        )
        with pytest.raises(SystemExit):
            main()
        answers.append(json.loads(capsys.readouterr().out))
        app = create_app(Settings(folder, min_precision=least))
        with client.TestClient(app, base_url="http://127.0.0.1") as ask:
            said = ask.post("/locate", files={"photo": photo.read_bytes()}).json()
        answers.append(said["answers"][0])
    assert answers[0]["hits"]
    assert [_told(one) for one in answers] == [_told(answers[0])] * 6


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """All but the time it took, and what a service keeps to itself."""
    hits = [{k: v for k, v in hit.items() if k not in ("path", "pairs")} for hit in answer["hits"]]
    return {k: v for k, v in answer.items() if k != "elapsed_ms"} | {"hits": hits}


def test_a_box_serves_without_torch(run: Run, box: Path, town: Path, bare: dict[str, str]) -> None:
    photo = sorted((town / "queries").iterdir())[1]
    words = [sys.executable, "-m", "evenplace", "serve", str(box)]
    with serving(words, free_port(), bare) as address:
        found = ask(address, photo)
    answer = Run.open(run.folder, engine="onnxruntime").locate(photo)
    assert found["confidence"] == pytest.approx(answer.confidence, abs=1e-4)
    assert found["position"]["east"] == pytest.approx(answer.position.east, abs=0.1)


def test_what_needs_torch_says_so_in_a_sentence(run: Run, town: Path, bare: dict[str, str]) -> None:
    done = type_bare(bare, "index", run.folder, "--database", town / "database")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error: this needs torch, which is not installed here (a box only answers); "
        "pip install evenplace"
    )


def test_what_belongs_to_the_run_is_refused_by_its_box_with_torch_and_without(
    run: Run, town: Path, tmp_path: Path, bare: dict[str, str]
) -> None:
    box, photos = tmp_path / "box", read_photos(town / "database")
    run.export_box(box)
    boxed = Run(box)
    before = {path: path.read_bytes() for path in box.rglob("*") if path.is_file()}
    for verb in (
        lambda: boxed.train(photos),
        lambda: boxed.tune(["folds=2"]),
        lambda: boxed.tune(queries=photos),
        lambda: boxed.index(photos, verify=5),
        lambda: boxed.index_method(photos, "cross-entropy", "imagenet"),
        lambda: boxed.index_descriptors(np.eye(len(photos), dtype=np.float32), photos),
        lambda: boxed.add(read_photos(town / "queries")),
    ):
        with pytest.raises(RunError, match=r"is a box, which only answers; do this in the run"):
            verb()
    done = type_bare(bare, "index", "add", box, "--database", town / "queries")
    assert (done.returncode, "is a box, which only answers" in done.stderr) == (2, True)
    assert {path: path.read_bytes() for path in box.rglob("*") if path.is_file()} == before


def test_a_look_at_pictures_that_are_gone_is_refused_and_one_look_answers(
    run: Run, tmp_path: Path
) -> None:
    town = draw_split(tmp_path / "town", database=40, queries=6)
    photos, queries = (read_photos(town / name) for name in ("database", "queries"))
    describer = run.search().describer
    assert describer is not None
    known, asked = (describer.describe(some.paths).descriptors for some in (photos, queries))
    kept, bare = Run(tmp_path / "kept"), Run(tmp_path / "bare")
    kept.index_descriptors(known, photos, verify=5)
    bare.index_descriptors(known, photos)  # found in the photos as they are needed
    bare.files.write_recipe(bare.recipe.changed(["verify=5"]))
    both = [mine.evaluate(queries, asked).recall for mine in (kept, bare)]
    assert both[0] == both[1]
    shutil.rmtree(town / "database")
    assert kept.evaluate(queries, asked).recall == both[0]
    with pytest.raises(PhotoError, match=r"whose points nobody kept, and .* --verify 0"):
        bare.evaluate(queries, asked)
    shutil.rmtree(town / "queries")
    with pytest.raises(PhotoError, match="needs the photos of the queries"):
        kept.evaluate(queries, asked)
    with pytest.raises(PhotoError, match=r"needs the photos of the database, .* --verify 0"):
        Run(tmp_path / "new").index_descriptors(known, photos, verify=5)
    assert not (tmp_path / "new").exists()
    once = [mine.evaluate(queries, asked, verify=0).recall for mine in (kept, bare)]
    assert once[0] == once[1]


def test_a_refused_index_leaves_the_recipe_as_it_was(run: Run, town: Path, tmp_path: Path) -> None:
    mine = Run(shutil.copytree(run.folder, tmp_path / "run"))
    photos = read_photos(town / "database")
    with pytest.raises(SettingError):
        mine.index(photos, verify=7, keep=0)
    assert mine.recipe.search.verify == 0
    mine.index(photos, verify=7)
    assert mine.recipe.search.verify == 7
    assert mine.locate(photos.paths[0]).looked == 7


def test_a_box_is_checked_by_verify(box: Path, bare: dict[str, str], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(box, tmp_path / "box"))
    assert "calibration.json, fused.json, model.onnx" in type_bare(bare, "verify", copy).stdout
    with (copy / "model.onnx").open("r+b") as file:
        file.write(b"\0")
    assert "model.onnx does not match" in type_bare(bare, "verify", copy).stderr


def test_exporting_again_brings_the_index_as_it_is_now(run: Run, box: Path, tmp_path: Path) -> None:
    mine, copy = Run(shutil.copytree(run.folder, tmp_path / "run")), tmp_path / "box"
    mine.export_box(copy)
    draw_photos(tmp_path / "more", np.random.default_rng(9).uniform(0, 100, (3, 2)), seed=9)
    mine.add(read_photos(tmp_path / "more"))
    mine.export_box(copy)
    index = Run.open(copy).search().index
    assert len(index) == 43
    assert {p.name for p in tmp_path.iterdir()} == {"run", "box", "more"}, "nothing is left behind"
    assert Run.open(copy).verify()


def test_a_box_looks_twice_as_its_run_does(
    town: Path, tmp_path: Path, bare: dict[str, str]
) -> None:
    mine, photo = Run(tmp_path / "run"), sorted((town / "queries").iterdir())[0]
    photos = read_photos(town / "database")
    mine.index_method(photos, "cross-entropy", "imagenet", verify=5, image_size=32, dim=16, layer=2)
    mine.export_box(tmp_path / "box")
    answer = mine.locate(photo)
    assert answer.looked == 5
    done = type_bare(bare, "locate", tmp_path / "box", photo, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["looked"] == 5
    assert [hit["path"] for hit in found["hits"]] == [hit.path for hit in answer.hits]
    assert [hit["inliers"] for hit in found["hits"]] == [hit.inliers for hit in answer.hits]


@pytest.mark.usefixtures("box")  # which exports the network
def test_evaluate_and_index_export_where_as_many_photos_come(
    run: Run, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Run(shutil.copytree(run.folder, tmp_path / "run"))
    kept = mine.folder / "model.onnx"
    queries = read_photos(town / "queries")
    kept.unlink()
    mine.evaluate(queries)
    assert not kept.exists(), "six photos do not pay for it"
    monkeypatch.setattr("evenplace.describe.engines._PAYS", 6)
    mine.evaluate(queries)
    assert kept.exists()


@pytest.mark.usefixtures("box")  # which exports the network
def test_only_the_first_process_exports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Run(shutil.copytree(run.folder, tmp_path / "run"), device="cpu")
    kept = mine.folder / "model.onnx"
    written = kept.read_bytes()
    kept.unlink()
    monkeypatch.setattr(Ranks, "lead", lambda self, work: work(print) if self.first else None)
    second = open_in_turn(mine.files, Ranks(rank=1, count=2), 5000)
    assert "torch on cpu" in second.chosen, "nobody has exported it, and it does not either"
    assert not kept.exists()
    kept.write_bytes(written)
    second = open_in_turn(mine.files, Ranks(rank=1, count=2), 5000)
    assert "onnxruntime" in second.chosen


def test_a_folder_of_somebody_else_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(RunError, match="holds something else than a box"):
        run.export_box(tmp_path)
    with pytest.raises(RunError, match="something else"):
        run.export_box(run.folder)
    assert (tmp_path / "letters.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "how", [{"engine": "torch"}, {"device": "cuda"}, {"precision": "bfloat16"}], ids=str
)
def test_a_box_says_what_it_cannot_do(box: Path, how: dict[str, str]) -> None:
    with pytest.raises(SettingError, match=r"model\.onnx is an exported network"):
        Run.open(box, **how).search()


def test_what_a_box_needs_is_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = {*project["dependencies"], *extras["search"], *extras["serve"]}
    needs = (ROOT / "src/evenplace/run/box-requirements.txt").read_text().splitlines()[1:]
    assert set(needs) <= asked
    assert not {name.partition(">")[0] for name in needs} & set(ABSENT)
