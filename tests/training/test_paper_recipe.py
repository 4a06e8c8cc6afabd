"""DAPR-M as published, rehearsed with random DINOv2 weights at 126 px, and read back from its run.

Each line of the paper's settings is one assertion here and one row of docs/method.md.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evenplace.errors import WeightsError
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.photos import read_photos
from evenplace.retrieval.rerank import build_reranker
from evenplace.run.run import Run
from evenplace.training.loop import train
from evenplace.training.recipe import Recipe, cut_places, find_recipe, read_recipe
from tests.training.town import draw_town

PAGE = Path(__file__).parents[2] / "docs/method.md"
STEPS: list[torch.optim.Optimizer] = []


@pytest.fixture(scope="module")
def network() -> PlaceNetwork:
    spec = find_recipe("dapr-m", "paper").changed(["image_size=126"]).network
    return build_network(spec, weights=None)


def test_the_descriptor_is_the_embedding_itself(network: PlaceNetwork) -> None:
    assert isinstance(network.projection, nn.Identity)
    with torch.inference_mode():
        photos = torch.randint(256, (2, 3, 126, 126), dtype=torch.uint8)
        maps = network.backbone(photos)
        found = network.eval()(photos)
    assert maps.shape == (2, 768, 9, 9)
    wanted = torch.nn.functional.normalize(maps.mean(dim=(2, 3)), dim=1)
    assert torch.allclose(found, wanted, atol=1e-6)  # one float32 rounding of 81 sums
    assert found.shape == (2, 768)


def test_the_last_blocks_and_nothing_else_train(network: PlaceNetwork) -> None:
    names = {name for name, one in network.named_parameters() if one.requires_grad}
    stages = {int(name.split(".")[2]) for name in names}
    assert all(name.startswith("backbone.stages.") for name in names)
    assert stages == {9, 10, 11, 12, 13}  # four of twelve blocks, and the norm after them
    count = sum(one.numel() for one in network.parameters() if one.requires_grad)
    assert count == 4 * 7_089_408 + 2 * 768


@pytest.mark.long
def test_one_step_as_published_and_its_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = draw_town(tmp_path / "town", photos=48, side=40.0)
    monkeypatch.setattr(torch.optim.Adam, "step", _watched(torch.optim.Adam.step))
    recipe = find_recipe("dapr-m", "paper").changed(
        ["image_size=126", "epochs=1", "steps=1", "batch=6", "min_photos=2"]
    )
    network = build_network(recipe.network, weights=None)
    before = {name: one.detach().clone() for name, one in network.named_parameters()}
    train(network, town, cut_places(recipe.places, town), recipe, tmp_path / "run", device="cpu")
    (optimiser,) = STEPS
    assert [group["peak"] for group in optimiser.param_groups] == [6e-6, 1e-2]
    assert [group["lr"] for group in optimiser.param_groups] == [6e-6, 1e-2]  # no warm-up
    moved = {name for name, one in network.named_parameters()
             if name in before and not torch.equal(one.cpu(), before[name])}  # fmt: skip
    assert {int(name.split(".")[2]) for name in moved} == {9, 10, 11, 12, 13}
    (line,) = (json.loads(one) for one in (tmp_path / "run/log.jsonl").read_text().splitlines())
    assert line["loss"] > 0
    kept = read_recipe(tmp_path / "run/recipe.toml")
    changed = kept.changed(
        ["image_size=224", "epochs=200", "steps=0", "batch=256", "min_photos=10"]
    )
    assert changed == find_recipe("dapr-m", "paper")
    _follows_the_paper(changed)


def _watched(step: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(self: torch.optim.Optimizer, *args: Any, **options: Any) -> Any:
        STEPS.append(self)
        return step(self, *args, **options)

    return stepped


def _follows_the_paper(recipe: Recipe) -> None:
    """Section 3.1, 4.1 and the supplement's setup, line by line."""
    training, loss = recipe.training, recipe.loss
    assert recipe.network.backbone == "dinov2-base"
    assert (recipe.network.dim, recipe.network.projection) == (768, False)
    assert (training.optimiser, training.lr, training.batch) == ("adam", 6e-6, 256)
    assert (training.epochs, training.schedule, training.warmup) == (200, "constant", 0.0)
    assert training.flip
    assert training.jitter > 0
    assert training.crop < 1
    assert (recipe.places.rule, recipe.places.cell, recipe.places.min_photos) == ("grid", 20.0, 10)
    assert loss.name == "low-visit-bias"
    assert (loss.settings["beta"], loss.settings["kappa"]) == (0.01, 0.05)
    assert recipe.search.rerank == "cfd"
    cfd = build_reranker(recipe.search.rerank)
    assert (cfd.alpha, cfd.frequencies) == (0.7, "paper")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["dapr-m-paper", "dapr-c"])
def test_the_recipes_of_the_paper_differ_in_their_search_alone(name: str) -> None:
    paper, recipe = read_recipe("dapr-m-paper"), read_recipe(name)
    assert (recipe.network, recipe.training, recipe.loss) == (
        paper.network,
        paper.training,
        paper.loss,
    )
    assert recipe.places == paper.places


def test_every_line_of_the_page_is_what_the_recipe_says() -> None:
    recipe = find_recipe("dapr-m", "paper")
    table = PAGE.read_text().partition("## The paper's settings")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:-1] for row in table.splitlines() if row.startswith("| “")]
    assert len(rows) >= 10
    for _, settings, _ in rows:
        for words in settings.strip().strip("`").split("` `"):
            assert recipe.changed([words]) == recipe, words
    _follows_the_paper(recipe)


def test_without_dinov2_the_sentence_names_what_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*words: object, **options: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setenv("EVENPLACE_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr("urllib.request.urlopen", offline)
    draw_town(tmp_path / "town")
    with pytest.raises(WeightsError, match=r"put the file from .*; or train dapr-m-paper-small"):
        Run(tmp_path / "run").train(
            read_photos(tmp_path / "town"),
            recipe=find_recipe("dapr-m", "paper").changed(["min_photos=1"]),
        )
