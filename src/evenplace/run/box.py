"""A run that only answers: its networks as ONNX, its index, what it learned.  No torch there.

recipe.toml  fused.json  calibration.json  look.json    as the run has them
model.onnx  describer.onnx      its networks, checked against torch when exported
index/  ranking/                the newest generation of each index, and no other
checksums.json                  for `verify`
requirements.txt                what answering imports, for pip

It is a run folder like any other, read by the same code.  What needs the network itself (train,
tune, index) is done in the run, and the box exported again: one that is being served changes over
to the new index by itself.  Photos of the database stay where they are.
"""

import shutil
from importlib import resources
from pathlib import Path

from evenplace.describe.engines import Tell, exported
from evenplace.errors import IndexFileError, RunError
from evenplace.photos.files import because
from evenplace.retrieval.manifest import Manifest
from evenplace.run.checksums import sealing
from evenplace.run.run_folder import RunFolder

LEARNED = ("fused.json", "calibration.json", "look.json")
NEEDS = "requirements.txt"


def export_box(run: RunFolder, box: Path, tell: Tell) -> int:
    """Write a box, whole or not at all, in place of an older one; how many bytes it has."""
    if not run.describes:
        raise RunError(
            f"{run.path} was made of descriptors and has no network to export; copy the folder"
        )
    if box.exists() and any(box.iterdir()) and not RunFolder(box).boxed:
        raise RunError(f"{box} holds something else than a box; choose another folder")
    draft, old = (box.with_name(f".{box.name}.{state}") for state in ("new", "old"))
    for leftover in (draft, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        _fill(run, draft, tell)
        if box.exists():
            box.rename(old)
        draft.rename(box)
    except OSError as cause:
        raise RunError(f"could not write {box}: {because(cause)}") from cause
    finally:
        for leftover in (draft, old):
            shutil.rmtree(leftover, ignore_errors=True)
    return sum(file.stat().st_size for file in box.rglob("*") if file.is_file())


def _fill(run: RunFolder, box: Path, tell: Tell) -> None:
    networks = ["model", "describer"] if run.second else ["model"]
    with sealing(box, *LEARNED, *(f"{name}.onnx" for name in networks)):
        for name in networks:
            weights = run.network_file(name)
            if weights.suffix != ".onnx":
                weights = exported(weights, tell)
            shutil.copyfile(weights, box / f"{name}.onnx")
        for name in LEARNED:
            if (run / name).exists():
                shutil.copyfile(run / name, box / name)
    RunFolder(box).write_recipe(run.recipe)
    for index in run.indexes:
        _copy_index(index, box / index.name)
    needs = resources.files("evenplace.run") / "box-requirements.txt"
    (box / NEEDS).write_bytes(needs.read_bytes())


def _copy_index(index: Path, copy: Path) -> None:
    """The newest generation; once more if a writer swept it away meanwhile."""
    while True:
        manifest = Manifest.read(index)
        try:
            for name in manifest.files:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(index / name, copy / name)
            break
        except FileNotFoundError as cause:
            if Manifest.read(index).generation == manifest.generation:
                raise IndexFileError(f"{index} misses a file ({cause}); build it again") from cause
            shutil.rmtree(copy)
    manifest.write(copy)
