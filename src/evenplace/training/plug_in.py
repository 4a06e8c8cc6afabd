"""Low-visit bias on any method: the plug-in that the paper is about, as one change of a recipe."""

from dataclasses import replace
from typing import Any

from evenplace.errors import SettingError
from evenplace.losses import loss_settings, loss_takes
from evenplace.training.recipe import Recipe
from evenplace.training.specs import LossSpec

# beta, kappa: the paper's are of its main text and supplement; ours hold up on photographs.
# A triplet's offset is a distance and a pair's a cosine, so kappa is small for both.
_STRENGTH = {
    ("recommended", "cosines"): {"beta": 0.25, "kappa": 0.5},
    ("recommended", "descriptors"): {"beta": 0.25, "kappa": 0.02},
    ("paper", "cosines"): {"beta": 0.01, "kappa": 0.05},
    ("paper", "descriptors"): {"beta": 0.01, "kappa": 0.01},
}
_BIASED = {
    "cosface": "low-visit-bias",
    "multi-similarity": "low-visit-bias-pairs",
}  # hosts whose biased form has a name of its own


def with_loss(recipe: Recipe, loss: str, preset: str = "recommended") -> Recipe:
    """The recipe with another loss; `low-visit-bias` takes the form that its own loss has.

    A softmax keeps its scale and margin, a loss on pairs its temperatures and miner; any other
    name replaces the loss, with that one's own settings.
    """
    if loss != "low-visit-bias":
        return replace(recipe, loss=LossSpec(loss), name=f"{recipe.name}+{loss}")
    host = recipe.loss
    strength: dict[str, Any] = dict(_STRENGTH[preset, loss_takes(host.name)])
    name = _BIASED.get(host.name, host.name)
    if name == "low-visit-bias-pairs" and preset == "recommended":
        strength["centred"] = True
    if not {"beta", "kappa"} <= loss_settings(name):
        raise SettingError(
            f"{host.name} has no low-visit-bias form; use a recipe with cross-entropy, cosface, "
            "arcface, aamc, multi-similarity, contrastive, triplet or sare"
        )
    settings = {**host.settings, **strength}
    return replace(recipe, loss=LossSpec(name, settings), name=f"{recipe.name}+lb")
