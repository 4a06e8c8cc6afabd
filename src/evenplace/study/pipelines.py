"""Table 1: classification, retrieval and mixed pipelines side by side."""

from evenplace.study import paper
from evenplace.study.spec import Study, System
from evenplace.training.recipe import find_recipe
from evenplace.training.variants import with_loss


def pipelines() -> Study:
    """Every row of Table 1 in small; * is the same with low-visit bias."""
    systems = []
    for kind, named in paper.KINDS.items():
        for name, recipe in named.items():
            biased = with_loss(find_recipe(recipe), "low-visit-bias", "paper").loss
            systems.append(
                System(
                    name,
                    recipe,
                    loss={"name": biased.name, **biased.settings} if "*" in name else None,
                    search={"exact": True} if kind == "retrieval" else {},
                    paper=paper.PIPELINES.get(name, {}),
                    against="CosPlace",
                )
            )
    return Study(
        "pipelines",
        "What do the three kinds of pipeline find, and what do they cost?",
        tuple(systems),
        tables=("pipelines", "tiers", "gains"),
        figures=("steps",),
        note="Table 1. The paper's rows are published networks on SF-XL's 2.8 million photos and a "
        "GPU; ours are the same methods in small. Classifiers answer by their best place's photos.",
        timed=30,
    )
