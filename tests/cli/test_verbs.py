"""The verbs as a person types them: the whole path, and a sentence for what can go wrong."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenplace.cli import main
from tests.drawn import EAST, NORTH, draw_split
from tests.networks.known_weights import known_weights


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Command = Callable[..., Said]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
TRAIN = ("--set=epochs=1", "--set=image_size=64", "--set=dim=16", "--set=verify=0")


@pytest.fixture
def evenplace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["evenplace", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("town"), database=40, queries=12)


@pytest.fixture(scope="module")
def trained(town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a model and an index, made once by the verbs themselves."""
    run = tmp_path_factory.mktemp("runs") / "one"
    for words in (
        ("train", town / "database", "--run", run, *TRAIN),
        ("index", run, "--database", town / "database"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["evenplace", *map(str, words)])
            with pytest.raises(SystemExit) as stop:
                main()
            assert not stop.value.code
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


def test_the_whole_path(evenplace: Command, town: Path, run: Path) -> None:
    assert "is whole" in evenplace("verify", run).out
    scored = evenplace("evaluate", run, "--queries", town / "queries")
    assert scored.code == 0
    assert "12 queries" in scored.out
    assert (run / "predictions.parquet").exists()
    found = evenplace("report", run)
    assert found.code == 0
    assert (run / "report/index.html").exists()


def test_photos_of_several_folders_are_one_map(
    evenplace: Command, town: Path, tmp_path: Path
) -> None:
    parts = {which: sorted((town / which).iterdir()) for which in ("database", "queries")}
    for which, paths in parts.items():
        for number, path in enumerate(paths):
            home = tmp_path / f"{which}-{number % 2}"
            home.mkdir(exist_ok=True)
            shutil.copy(path, home / path.name)
    both = {which: [tmp_path / f"{which}-{part}" for part in (0, 1)] for which in parts}
    run, half = tmp_path / "run", ("--database", both["database"][0])
    twice = (*half, "--database", both["database"][1])
    assert "places" in evenplace("train", *both["database"], "--run", run, *TRAIN).out
    assert "40 photos in" in evenplace("index", run, *twice).out
    asked = [word for folder in both["queries"] for word in ("--queries", folder)]
    assert "12 queries" in evenplace("evaluate", run, *asked).out
    assert "20 photos in" in evenplace("index", run, *half).out
    assert "40 photos in" in evenplace("index", "add", run, *twice[2:]).out
    refused = evenplace("index", run, *twice, "--protocol", "sfxl-v1")
    assert refused.code == 2
    assert "--protocol reads one data set, and 2 were given" in refused.err
    for again, said in ((both["database"][0], "given twice;"), (tmp_path, "itself and within")):
        refused = evenplace("train", both["database"][0], again, "--run", tmp_path / "other")
        assert refused.code == 2
        assert said in refused.err


@pytest.mark.long
def test_index_leaves_the_network_exported_where_photos_pay_for_it(
    evenplace: Command, town: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = shutil.copytree(run, tmp_path / "mine", ignore=shutil.ignore_patterns("model.onnx"))
    words = ("index", mine, "--database", town / "database")
    evenplace(*words)
    assert not (mine / "model.onnx").exists()
    monkeypatch.setattr("evenplace.describe.engines._PAYS", 10)
    evenplace(*words)
    assert (mine / "model.onnx").exists()


def test_locate_answers_a_photo_the_town_did_not_contain(
    evenplace: Command, town: Path, run: Path
) -> None:
    photo = sorted((town / "queries").iterdir())[0]
    answer = json.loads(evenplace("locate", run, photo, "-k", 3, "--json").out)
    hits = answer["hits"]
    assert len(hits) == 3
    assert abs(hits[0]["east"] - EAST) < 150
    assert abs(hits[0]["north"] - NORTH) < 150
    assert Path(hits[0]["path"]).parent == town / "database"
    assert "confidence" in evenplace("locate", run, photo).out


def test_published_weights_need_no_training(evenplace: Command, town: Path, tmp_path: Path) -> None:
    """The file is made here, with the names and shapes a release of CosPlace has."""
    shapes = json.loads((FIXTURES / "cosplace-resnet18.json").read_text())["shapes"]
    weights = tmp_path / "ResNet18_256_cosplace.pth"
    torch.save(known_weights({name: tuple(shape) for name, shape in shapes.items()}), weights)
    words = ("--database", town / "database", "--method", "cosplace", "--checkpoint", weights)
    sizes = ("--set", "backbone=resnet18", "--set", "dim=256", "--set", "image_size=64")
    said = evenplace("index", tmp_path / "run", *words, *sizes)
    assert said.code == 0, said.err
    scored = evenplace("evaluate", tmp_path / "run", "--queries", town / "queries")
    assert scored.code == 0
    assert "cosplace" in scored.out
    refused = evenplace("index", tmp_path / "x", "--database", town, "--checkpoint", weights)
    assert refused.code == 2
    assert "add --method" in refused.err


@pytest.mark.parametrize("rerank", ["l2", "cfd", "kde"])
def test_evaluation_takes_another_ranking(
    evenplace: Command, town: Path, run: Path, rerank: str
) -> None:
    words = ("evaluate", run, "--queries", town / "queries", "--rerank", rerank)
    assert evenplace(*words, "--shortlist", 500).code == 0


def test_training_again_goes_on_where_it_was(evenplace: Command, town: Path, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()
    again = evenplace("train", town / "database", "--run", run, *TRAIN)
    assert again.code == 0
    assert (run / "model.safetensors").read_bytes() == before


def test_training_of_no_epoch_says_no_loss_and_may_be_typed_again(
    evenplace: Command, town: Path, tmp_path: Path
) -> None:
    words = ["train", town / "database", "--run", tmp_path / "run", *TRAIN, "--set", "epochs=0"]
    for said in (evenplace(*words), evenplace(*words)):
        assert said.code == 0, said.err
        assert " places, 0 epochs, " in said.out
        assert "loss" not in said.out


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (None, "does not exist"),
        ("empty", "holds no photos"),
        ("unnamed", "cat.jpg"),
    ],
)
def test_bad_folders_get_a_sentence(
    evenplace: Command, tmp_path: Path, make: str | None, words: str
) -> None:
    folder = tmp_path / "photos"
    if make:
        folder.mkdir()
    if make == "unnamed":
        Image.new("RGB", (8, 8)).save(folder / "cat.jpg")
    said = evenplace("train", folder, "--run", tmp_path / "run", *TRAIN)
    assert said.code == 2
    assert words in said.err
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "data"), [("corrupt", b"\xff\xd8no picture"), ("empty", b""), ("text", b"hello")]
)
def test_a_query_that_is_no_picture_gets_a_sentence(
    evenplace: Command, run: Path, tmp_path: Path, kind: str, data: bytes
) -> None:
    (tmp_path / f"{kind}.jpg").write_bytes(data)
    said = evenplace("locate", run, tmp_path / f"{kind}.jpg")
    assert said.code == 2
    assert f"{kind}.jpg" in said.err


@pytest.mark.parametrize("mode", ["L", "CMYK", "I;16", "P", "LA"])
def test_unusual_pictures_are_located(
    evenplace: Command, run: Path, tmp_path: Path, mode: str
) -> None:
    grey = np.random.default_rng(0).integers(0, 255, (40, 30), dtype=np.uint8)
    image = Image.fromarray(grey)
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    elif mode != "L":
        image = image.convert("RGB").convert(mode) if mode != "LA" else image.convert("LA")
    path = tmp_path / ("photo.tif" if mode == "CMYK" else "photo.png")
    image.save(path)
    assert evenplace("locate", run, path).code == 0


def test_unreadable_photos_are_counted_and_listed(
    evenplace: Command, town: Path, tmp_path: Path
) -> None:
    shutil.copytree(town / "database", tmp_path / "db")
    victim = sorted((tmp_path / "db").iterdir())[5]
    victim.write_bytes(victim.read_bytes()[:100])
    said = evenplace("train", tmp_path / "db", "--run", tmp_path / "run", *TRAIN)
    assert said.code == 0
    assert "left out 1 photo" in said.err
    assert victim.name in said.err.replace("\n", "")
    assert "left out 1" in evenplace("index", tmp_path / "run", "--database", tmp_path / "db").err


def test_another_model_s_index_is_refused(
    evenplace: Command, town: Path, run: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    evenplace("train", town / "database", "--run", other, *TRAIN, "--set", "lr=0.5")
    shutil.copy(other / "model.safetensors", run / "model.safetensors")
    said = evenplace("locate", run, sorted((town / "queries").iterdir())[0])
    assert said.code == 2
    assert "index the database again" in said.err


def test_a_run_of_another_version_is_refused(evenplace: Command, town: Path, run: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(run / "model.safetensors")
    save_file(tensors, run / "model.safetensors", {"evenplace": '{"version": 99}'})
    said = evenplace("locate", run, sorted((town / "queries").iterdir())[0])
    assert said.code == 2
    assert "version 99" in said.err


def test_a_damaged_checkpoint_gets_a_sentence(evenplace: Command, town: Path, run: Path) -> None:
    (run / "model.safetensors").write_bytes(b"\x00" * 64)
    said = evenplace("locate", run, sorted((town / "queries").iterdir())[0])
    assert said.code == 2
    assert "damaged" in said.err


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("locate", "nowhere", "x.jpg"), "evenplace train"),
        (("evaluate", "nowhere", "--queries", "x"), "evenplace train"),
        (("report", "nowhere"), "evaluate first"),
        (("train", ".", "--run", "r", "--method", "dapr"), "did you mean 'dapr-m'"),
        (("train", ".", "--run", "r", "--set", "epoch=1"), "did you mean 'epochs'"),
    ],
)
def test_mistakes_name_the_remedy(
    evenplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
    remedy: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    said = evenplace(*words)
    assert said.code == 2
    assert remedy in said.err


def test_a_full_disk_gets_a_sentence_and_leaves_no_index(
    evenplace: Command, town: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "descriptors.npy")

    monkeypatch.setattr("evenplace.retrieval.index_writer.write_blocks", full)
    said = evenplace("index", run, "--database", town / "database")
    assert said.code == 2
    assert "the disk is full; free some space" in said.err
    assert [path.name for path in run.glob("index/0*")] == ["000001"]
    monkeypatch.undo()


def test_debug_shows_where_an_error_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from evenplace.errors import RunError

    monkeypatch.setattr(sys, "argv", ["evenplace", "locate", str(tmp_path), "x.jpg", "--debug"])
    with pytest.raises(RunError):
        main()


def test_help_is_quick_and_lists_the_verbs() -> None:
    began = time.process_time()
    code = "import sys; sys.argv = ['evenplace', '--help']; from evenplace.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert time.process_time() - began < 5
    for verb in ("audit", "city", "train", "index", "locate", "evaluate", "report", "demo"):
        assert verb in done.stdout


def test_the_version_is_said(evenplace: Command) -> None:
    import evenplace as ep

    assert evenplace("--version").out == f"evenplace {ep.__version__}\n"


def test_help_does_not_load_torch() -> None:
    code = "import evenplace.cli, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_index_is_changed_and_checked_by_its_verbs(
    evenplace: Command, run: Path, town: Path
) -> None:
    from evenplace.retrieval import open_index

    before = open_index(run / "index")
    gone = before.photos.paths[:2]
    assert "generation 1" in evenplace("index", "verify", run).out
    assert f"{len(before) - 2} photos" in evenplace("index", "remove", run, *gone).out
    refused = evenplace("index", "add", run, "--database", town / "database")
    assert refused.code == 2
    assert "already" in refused.err
    assert evenplace("index", "add", run, "--database", town / "database", "--replace").code == 2
    assert "generation 2" in evenplace("index", "verify", run).out


def test_photos_of_new_cells_are_evaluated_and_reported(
    evenplace: Command, run: Path, town: Path, tmp_path: Path
) -> None:
    """Places are numbered by the generation that was asked, not by training's file."""
    import numpy as np
    from PIL import Image

    from evenplace.photos import read_photos
    from evenplace.retrieval import open_index
    from evenplace.run.run import Run

    before, queries = open_index(run / "index"), read_photos(town / "queries")
    lines = ["path,east,north,zone"]
    for number, colour in enumerate(("red", "green", "blue")):
        path = tmp_path / f"{colour}.png"
        Image.new("RGB", (64, 64), colour).save(path)
        east, north = queries.east.min() - 500 - 60 * number, queries.north.min() - 500
        lines.append(f"{path},{east},{north},{queries.zone[0]}")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    lines.append(lines[-1].replace("blue.png", "broken.png"))
    (tmp_path / "more.csv").write_text("\n".join(lines))
    added = evenplace("index", "add", run, "--database", tmp_path / "more.csv")
    assert added.code == 0, added.err
    assert "broken.png" in added.out + added.err
    grown = open_index(run / "index")
    assert len(grown.places) == len(before.places) + 3
    assert evenplace("evaluate", run, "--queries", town / "queries").code == 0
    scores = Run(run).scores()
    assert len(scores.places) == len(grown.places)
    own = grown.places.locate(queries)
    np.testing.assert_array_equal(scores.predictions.places[own >= 0], own[own >= 0])
    evenplace("index", "remove", run, *(str(tmp_path / f"{c}.png") for c in ("red", "blue")))
    assert evenplace("report", run).code == 0


def test_foreign_descriptors_are_indexed_from_a_file(
    evenplace: Command, town: Path, tmp_path: Path
) -> None:
    import numpy as np

    from evenplace.photos import read_photos
    from tests.drawn import unit

    count = len(read_photos(town / "database"))
    np.save(tmp_path / "d.npy", unit(count, 16, 0))
    said = evenplace(
        "index", tmp_path / "run", "--database", town / "database",
        "--descriptors", tmp_path / "d.npy",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert f"{count} photos" in said.out


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_store_answers_what_the_files_answer(
    evenplace: Command, run: Path, town: Path, tmp_path: Path
) -> None:
    from evenplace.retrieval.milvus import MilvusStore
    from evenplace.run.run import Run

    photo = sorted((town / "queries").iterdir())[0]
    before = evenplace("locate", run, photo).out
    filled = evenplace("index", "store", run, tmp_path / "milvus.db")
    assert filled.code == 0, filled.err
    assert "locate, evaluate and serve ask it" in filled.out
    assert evenplace("locate", run, photo).out.splitlines()[:3] == before.splitlines()[:3]
    assert evenplace("index", "add", run, "--database", town / "queries").code == 0
    engine = Run(run).search(exact=True, rerank="l2")
    assert isinstance(engine.store, MilvusStore)
    assert engine.answer(str(photo), 1).hits[0].path == str(photo)
    (run / "store.json").write_text('{"uri": "http://127.0.0.1:1", "name": "x"}')
    refused = evenplace("locate", run, photo)
    assert refused.code == 2
    assert "does not answer" in refused.err
    (run / "store.json").unlink()
    assert evenplace("locate", run, photo).code == 0
