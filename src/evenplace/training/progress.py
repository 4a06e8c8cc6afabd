"""What a stopped run needs to go on: weights, optimiser, position; and its log, one line an epoch.

Tensors only, written whole.  Rank 0 keeps the network in progress.safetensors; with several ranks
each keeps its shards of the classifiers in a file of its own, named after the moment, and rank 0
writes last: whatever it names is there.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenplace.errors import RunError, SettingError
from evenplace.networks.checkpoints import AFRESH, read_tensors, save_tensors
from evenplace.photos.files import read_log, write_text
from evenplace.places.table import Places
from evenplace.training.distributed import Ranks
from evenplace.training.recipe import Recipe
from evenplace.training.schedule import Average

_NAME = "progress.safetensors"
_OURS = ("recipe.toml", "places.parquet", "log.jsonl", "model.safetensors", "index")


@dataclass
class Position:
    """How far a run has come: the next step, and what the epoch has summed up so far."""

    epoch: int = 0
    round: int = 0
    step: int = 0
    total: float = 0.0  # of losses times photos, this epoch
    seen: int = 0  # photos of this epoch
    losses: list[float] = field(default_factory=list)  # of whole epochs
    recalls: list[dict[str, Any]] = field(default_factory=list)  # on held-out photos
    averaged: int = 0
    bad: dict[str, str] = field(default_factory=dict)  # photos found unreadable, and why
    known: list[str] = field(default_factory=list)  # of these, when the epoch began
    scaler: dict[str, float] = field(default_factory=dict)  # of float16's losses
    ranks: int = 1


@dataclass(frozen=True)
class State:
    """Everything that changes in a run."""

    network: nn.Module
    shards: Mapping[str, nn.Parameter]
    optimiser: torch.optim.Optimizer
    average: Average
    losses: nn.Module  # hard-class remembers how hard each place has been
    scaler: torch.amp.GradScaler
    ranks: Ranks


def claim_run(run: Path, recipe: Recipe, places: Places) -> None:
    """Make a run folder, or take up one of the same recipe and places; refuse another's.

    A folder that holds what training would overwrite is somebody else's, unless its recipe is
    this one and it has no model yet: a training that was stopped before its first checkpoint.
    """
    text = recipe.to_toml()
    try:
        same = (run / "recipe.toml").read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        same = False
    if has_progress(run):
        if not same or not _knows(run, places):
            raise RunError(
                f"{run} holds a run with another recipe or other photos; "
                "choose another --run, or delete that folder"
            )
        return
    there = [name for name in _OURS if (run / name).exists()]
    if there and (not same or "model.safetensors" in there):
        raise RunError(
            f"{run} holds a {there[0]} that this training did not write; choose another --run, "
            "or delete that folder"
        )
    _write_recipe(run, recipe, places)


def claim_foreign(run: Path, recipe: Recipe, places: Places) -> None:
    """Make a run folder of somebody else's weights, or write it again; refuse a trained run."""
    refuse_trained(run)
    _write_recipe(run, recipe, places)


def refuse_trained(run: Path) -> None:
    """Keep what took hours from being written over."""
    if has_progress(run):
        raise RunError(f"{run} holds a run that was trained; choose another --run")


def _write_recipe(run: Path, recipe: Recipe, places: Places) -> None:
    """Say in a run folder what it is a run of."""
    write_text(run / "recipe.toml", recipe.to_toml())
    places.write(run / "places.parquet")


def _knows(run: Path, places: Places) -> bool:
    known = Places.read(run / "places.parquet")
    return np.array_equal(known.ids, places.ids) and np.array_equal(known.counts, places.counts)


def has_progress(run: Path) -> bool:
    """Whether there is something to go on with."""
    return (run / _NAME).exists()


def save_progress(run: Path, state: State, position: Position) -> None:
    """Keep everything the next step depends on, replacing the last one in a single move."""
    position.ranks, position.averaged = state.ranks.count, state.average.count
    position.scaler = state.scaler.state_dict()
    own = {name: one.detach() for name, one in state.shards.items()} | _moments(state)
    if not state.ranks.first:
        _write(run / _rank_file(state.ranks, position), own, position)
    state.ranks.wait()
    if state.ranks.first:
        whole = {f"network.{n}": t for n, t in state.network.state_dict().items()}
        whole |= {f"losses.{n}": t for n, t in state.losses.state_dict().items()}
        _write(run / _NAME, own | whole, position)
    state.ranks.wait()
    for old in run.glob(f"progress-{state.ranks.rank}-*.safetensors"):
        if old.name != _rank_file(state.ranks, position):
            old.unlink(missing_ok=True)


def load_progress(run: Path, state: State) -> Position:
    """Take up a stopped run where it was; at the very beginning if it is new."""
    if not has_progress(run):
        return Position()
    whole, position = _read(run / _NAME)
    if position.ranks != state.ranks.count:
        raise RunError(
            f"{run} was begun with {position.ranks} process(es) and this is one of "
            f"{state.ranks.count}; go on with as many"
        )
    own = whole if state.ranks.first else _read(run / _rank_file(state.ranks, position))[0]
    try:
        _fill(state, whole, own, position)
    except (KeyError, RuntimeError, ValueError) as cause:
        raise RunError(
            f"{run / _NAME} does not fit this network ({str(cause).splitlines()[0]}); {AFRESH}"
        ) from cause
    return position


def _fill(
    state: State, whole: dict[str, Tensor], own: dict[str, Tensor], position: Position
) -> None:
    """whole: what rank 0 kept for everybody; own: this rank's part."""
    state.network.load_state_dict(_under("network.", whole))
    state.losses.load_state_dict(_under("losses.", whole))
    state.scaler.load_state_dict(position.scaler)
    with torch.no_grad():
        for name, one in state.shards.items():
            one.copy_(own[name])
        for name, mean in _under("average.", own).items():
            state.average.shadow[name].copy_(mean)
    state.average.count = position.averaged
    tree = state.optimiser.state_dict()
    tree["state"] = _optimiser_state(own)
    state.optimiser.load_state_dict(tree)


def _moments(state: State) -> dict[str, Tensor]:
    tensors = {f"average.{n}": t for n, t in state.average.shadow.items()}
    for index, values in state.optimiser.state_dict()["state"].items():
        for name, value in values.items():
            if value is not None:
                tensors[f"optimiser.{index}.{name}"] = torch.as_tensor(value)
    return tensors


def _rank_file(ranks: Ranks, position: Position) -> str:
    moment = f"{position.epoch}-{position.round}-{position.step}"
    return f"progress-{ranks.rank}-{moment}.safetensors"


def _write(path: Path, tensors: dict[str, Tensor], position: Position) -> None:
    save_tensors(path, tensors, {"position": asdict(position)})


def _read(path: Path) -> tuple[dict[str, Tensor], Position]:
    read = read_tensors(path)
    try:
        return read.tensors, Position(**read.about["position"])
    except (KeyError, TypeError):
        raise RunError(f"{path} was written by another version; {AFRESH}") from None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}


def _optimiser_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimiser.", tensors).items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = tensor
    return state


class RunLog:
    """Appends lines; lines of epochs that are about to be trained again are taken back."""

    def __init__(self, run: Path, first_epoch: int, tensorboard: bool) -> None:
        self.path = run / "log.jsonl"
        run.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_log(self.path) if line["epoch"] < first_epoch]
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.writer = _summary_writer(run / "tensorboard") if tensorboard else None

    def write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self.writer is not None:
            for name, value in line.items():
                if isinstance(value, (int, float)) and name != "epoch":
                    self.writer.add_scalar(name, value, line["epoch"])
            self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise SettingError(
            "tensorboard=true needs the package tensorboard; pip install tensorboard, or leave it"
        ) from None
    return SummaryWriter(str(folder))
