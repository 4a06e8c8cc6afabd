"""What a run folder holds: its recipe, places and indexes, its network, and the one that ranks."""

from pathlib import Path
from typing import Any

from evenplace.describe.describer import Describer
from evenplace.errors import RunError, SettingError
from evenplace.networks.checkpoints import load_checkpoint, save_checkpoint
from evenplace.networks.methods import build_describer
from evenplace.networks.network import PlaceNetwork
from evenplace.places import Places
from evenplace.training.recipe import Recipe, read_recipe


def run_recipe(run: Path) -> Recipe:
    if not (run / "recipe.toml").exists():
        raise RunError(f"{run} is no run folder; make one: evenplace train PHOTOS --run {run}")
    return read_recipe(run / "recipe.toml")


def run_places(run: Path) -> Places:
    return Places.read(run / "places.parquet")


def run_indexes(run: Path) -> list[Path]:
    """The indexes of a run in the order they are written: the one that others watch comes last."""
    return [run / "ranking", run / "index"] if describer_of(run) else [run / "index"]


def run_network(run: Path) -> PlaceNetwork:
    return load_checkpoint(run / "model.safetensors").network


def run_describer(run: Path) -> PlaceNetwork:
    path = run / "describer.safetensors"
    if not path.exists():
        raise RunError(
            f"{path} does not exist; index first: evenplace index {run} --database PHOTOS"
        )
    return load_checkpoint(path).network


def open_describer(run: Path, **how: Any) -> Describer:
    """What describes the run's photos: its network, with the one that ranks if that is another.

    how: device, precision and batch, as a `Describer` takes them.
    """
    ranked_by = run_describer(run) if describer_of(run) else None
    return Describer(run_network(run), ranked_by, **how)


def describer_of(run: Path) -> str | None:
    """The method whose network ranks, if it is not the run's own; None before there is a run."""
    return run_recipe(run).search.describer if (run / "recipe.toml").exists() else None


def choose_describer(run: Path, weights: str | None = None, **changes: Any) -> None:
    """Keep the network that ranks in run/describer.safetensors.

    weights, changes: as in `build_describer`.  With neither, what is kept already stays, and the
    authors' weights are the first.
    """
    method = describer_of(run)
    if not method:
        raise SettingError(
            f"{run} ranks with the network it trained; for another one set describer= in training"
        )
    kept = run / "describer.safetensors"
    if weights or changes or not kept.exists():
        network = build_describer(method, weights or "official", **changes)
        save_checkpoint(kept, network, {"name": method})
