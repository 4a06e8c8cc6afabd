"""The run folder under faults: two trainings, leftovers, somebody else's files, damaged ones."""

import os
import re
from pathlib import Path

import pytest
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import zeros

from evenplace.errors import EvenPlaceError, RunError
from evenplace.networks import checkpoints
from evenplace.networks.checkpoints import load_checkpoint
from evenplace.photos import Photos, files
from evenplace.photos.files import only_writer, whole_file
from evenplace.run.run import Run
from tests.training.town import draw_town, quick_run


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    return draw_town(tmp_path_factory.mktemp("town"), 24, 60)


@pytest.fixture
def run(town: Photos, tmp_path: Path) -> Path:
    quick_run(town, tmp_path / "run", "epochs=1")
    return tmp_path / "run"


def test_a_second_training_in_one_folder_is_refused_in_a_sentence(
    town: Photos, tmp_path: Path
) -> None:
    with (
        only_writer(tmp_path / "run/.lock", RunError),
        pytest.raises(RunError, match=rf"is being written by process {os.getpid()}; wait for it"),
    ):
        quick_run(town, tmp_path / "run", "epochs=1")
    quick_run(town, tmp_path / "run", "epochs=1")  # the lock has gone with its holder


def test_what_a_killed_training_left_is_swept(town: Photos, run: Path) -> None:
    left = [
        ".tmpAb3dEf",
        ".progress.safetensors.ab_d1234.safetensors",
        ".recipe.toml.abcd1234.toml",
    ]
    for name in left:
        (run / name).write_bytes(b"half")
    (run / ".gitignore").write_text("mine")
    quick_run(town, run, "epochs=1")
    assert not [name for name in left if (run / name).exists()]
    assert (run / ".gitignore").exists()


@pytest.mark.parametrize(
    "name", ["recipe.toml", "model.safetensors", "places.parquet", "log.jsonl", "index"]
)
def test_somebody_elses_folder_is_left_as_it_was(town: Photos, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / name).write_text("theirs")
    with pytest.raises(RunError, match=f"holds a {name} that this training did not write"):
        quick_run(town, folder, "epochs=1", "validation=0.2")
    assert (folder / name).read_text() == "theirs"
    assert {file.name for file in folder.iterdir()} <= {name, ".lock"}


def test_a_model_that_was_not_trained_here_is_not_overwritten(town: Photos, run: Path) -> None:
    (run / "progress.safetensors").unlink()  # as `index --method` leaves a run
    with pytest.raises(RunError, match="did not write"):
        quick_run(town, run, "epochs=1")


def test_a_training_stopped_before_its_first_checkpoint_goes_on(town: Photos, run: Path) -> None:
    for name in ("progress.safetensors", "model.safetensors"):
        (run / name).unlink()
    assert len(quick_run(town, run, "epochs=1").losses) == 1


@pytest.mark.parametrize("damage", ["cut", "flipped header", "flipped tensor", "empty"])
def test_a_damaged_checkpoint_is_a_sentence(town: Photos, run: Path, damage: str) -> None:
    for name in ("progress.safetensors", "model.safetensors"):
        whole = (run / name).read_bytes()
        at = {"flipped header": 9, "flipped tensor": len(whole) - 5}.get(damage, 0)
        flipped = whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :]
        broken = {"cut": whole[: len(whole) // 2], "empty": b""}.get(damage, flipped)
        (run / name).write_bytes(broken)
    with pytest.raises(RunError, match=r"progress.safetensors is damaged .*; delete the run"):
        quick_run(town, run, "epochs=1")
    with pytest.raises(RunError, match=r"model.safetensors is damaged .*; train again"):
        load_checkpoint(run / "model.safetensors")


def test_a_checkpoint_of_another_network_is_a_sentence(town: Photos, run: Path) -> None:
    save_file({"x": zeros(2)}, run / "progress.safetensors")
    with pytest.raises(RunError, match="another version"):
        quick_run(town, run, "epochs=1")


@pytest.mark.parametrize("text", [b"name = \xff", b"[training]\nepochs = ", b"[nowhere]\n"])
def test_a_damaged_recipe_is_a_sentence(run: Path, text: bytes) -> None:
    (run / "recipe.toml").write_bytes(text)
    with pytest.raises(EvenPlaceError, match=r"recipe"):
        _ = Run(run).recipe


def test_what_a_run_needs_to_go_on_is_on_disk_before_its_name_is(
    town: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(files, "sync", lambda path: synced.append(path.name))
    quick_run(town, tmp_path / "run", "epochs=1")
    for name in ("recipe.toml", "places.parquet", "progress.safetensors", "model.safetensors"):
        draft = re.compile(rf"\.{re.escape(name)}\..*")
        assert any(draft.fullmatch(one) for one in synced), name


def test_a_full_disk_while_weights_are_written_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(RunError, match="disk is full; free some space"):
        checkpoints.save_tensors(tmp_path / "x.safetensors", {"x": zeros(1)})
    assert not list(tmp_path.iterdir())


def test_the_remedy_fits_the_fault(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note")
    with (
        pytest.raises(RunError, match="a file is in the way of a folder"),
        whole_file(tmp_path / "note.txt/recipe.toml", RunError),
    ):
        pass
