"""What a stopped run needs to go on: weights, optimiser, epoch. Tensors only, written whole."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.places.table import Places
from evenplace.training.recipe import Recipe

_NAME = "progress.safetensors"


def claim_run(run: Path, recipe: Recipe, places: Places) -> None:
    """Make a run folder, or take up one of the same recipe and places; refuse another's."""
    text = recipe.to_toml()
    if (run / _NAME).exists():
        known = Places.read(run / "places.parquet")
        same = np.array_equal(known.ids, places.ids) and np.array_equal(known.counts, places.counts)
        if (run / "recipe.toml").read_text() != text or not same:
            raise RunError(
                f"{run} holds a run with another recipe or other photos; "
                "choose another --run, or delete that folder"
            )
        return
    with whole_file(run / "recipe.toml", RunError) as draft:
        draft.write_text(text)
    places.write(run / "places.parquet")


def save_progress(
    run: Path, network: nn.Module, optimiser: torch.optim.Optimizer, epoch: int, losses: list[float]
) -> None:
    """Keep everything the next epoch depends on, replacing the last one in a single step."""
    tensors = {f"network.{n}": t.contiguous() for n, t in network.state_dict().items()}
    for index, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimiser.{index}.{name}"] = torch.as_tensor(value).contiguous()
    with whole_file(run / _NAME, RunError) as draft:
        save_file(tensors, draft, {"epoch": str(epoch), "losses": json.dumps(losses)})


def load_progress(
    run: Path, network: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[int, list[float]]:
    """Take up a stopped run: the next epoch, and the losses so far (0 and none if it is new)."""
    if not (run / _NAME).exists():
        return 0, []
    with safe_open(run / _NAME, framework="pt") as file:
        head = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    prefix = "network."
    network.load_state_dict(
        {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}
    )
    whole = optimiser.state_dict()
    whole["state"] = _optimiser_state(tensors)
    optimiser.load_state_dict(whole)
    return int(head["epoch"]), list(json.loads(head["losses"]))


def _optimiser_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            index, _, key = rest.partition(".")
            state.setdefault(int(index), {})[key] = tensor
    return state
