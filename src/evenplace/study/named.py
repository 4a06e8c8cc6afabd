"""The named studies: every table and figure of the paper, and what we set beside it.

`evenplace study NAME` runs one.  `dapr-m-paper-small` is the paper's loss and distance to the
letter on the embedded network, `dapr-m-paper` with its DINOv2.
"""

from collections.abc import Callable
from typing import Any

from evenplace.errors import unknown_name
from evenplace.study import paper
from evenplace.study.contest import contest, descriptors, layer
from evenplace.study.elsewhere import elsewhere, second_look
from evenplace.study.spec import Study, System
from evenplace.study.tail import abstention, beyond, choices, fine_tuning, rewards, tail
from evenplace.training.recipe import find_recipe
from evenplace.training.variants import with_loss

PAPER, OURS = "dapr-m-paper-small", "dapr-m"
BETAS = (0.0, 0.01, 0.03, 0.05, 0.07, 0.09, 0.25, 1.0)
KAPPAS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    return STUDIES[name]()


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


def losses() -> Study:
    """Table 6: the same mixed pipeline, trained with each loss."""
    others = [_plain("cross-entropy"), _plain("logit-adjustment"), _plain("focal"), None]
    return Study(
        "losses",
        "Which loss finds the tail, everything else equal?",
        (
            *(
                System(name, PAPER, loss=loss, paper=theirs)
                for (name, theirs), loss in zip(paper.LOSSES.items(), others, strict=True)
            ),
            System("recommended", OURS),
        ),
        figures=("ranks",),
        note="Table 6. The paper's rows are DINOv2 on SF-XL; ours rank by CFD as its rows do.",
    )


def _plain(name: str, **settings: float) -> dict[str, Any]:
    """Another loss at the scale of the paper's."""
    return {"name": name, "scale": find_recipe(PAPER).loss.settings["scale"], **settings}


def modules() -> Study:
    """Table 5: what each part adds."""
    table, cross = paper.MODULES, _plain("cross-entropy")
    return Study(
        "modules",
        "What does each part of the paper add?",
        (
            System("CE + L2", PAPER, loss=cross, search={"rerank": "l2"}, paper=table["CE + L2"]),
            System("LB + L2", PAPER, search={"rerank": "l2"}, paper=table["LB + L2"]),
            System("LB + CFD", PAPER, search={"rerank": "cfd"}, paper=table["LB + CFD"]),
            System("recommended + L2", OURS, search={"rerank": "l2", "verify": 0}),
            System("recommended", OURS),
        ),
        figures=("ranks",),
        note="Table 5. The paper's rows are DINOv2 on SF-XL.",
    )


def plug_in() -> Study:
    """Tables 2 to 4 and the supplement's grid: host methods with and without LB."""
    systems: list[System] = []
    for host, recipe in _HOSTS.items():
        rank = {"shortlist": 20} if host == "D&C mixed" else {}  # D&C alone keeps one place
        losses: dict[str, dict[str, Any] | None] = {host: None}
        for preset, name in (("paper", f"{host} + LB"), ("recommended", f"{host} + LB up")):
            biased = with_loss(find_recipe(recipe), "low-visit-bias", preset).loss
            losses[name] = {"name": biased.name, **biased.settings}
        systems += [
            System(name, recipe, loss=loss, search=rank, paper=paper.PLUG_INS.get(name, {}),
                   against=host)
            for name, loss in losses.items()
        ]  # fmt: skip
    return Study(
        "plug-in",
        "Does low-visit bias help the methods it is plugged into?",
        tuple(systems),
        figures=("hosts",),
        note="Tables 2 to 4, each host against itself: LB at the paper's strengths, “LB up” at the "
        "recommended ones. LR@N is the classifier alone: what the paper has for D&C. The hosts are "
        "small here; the paper's use larger networks and SF-XL or GSV-Cities.",
    )


def sensitivity() -> Study:
    """Supplement: β, κ and α, one at a time."""
    base = find_recipe(PAPER).loss.settings
    systems = [System("DAPR-M", PAPER)]
    for name, values in (("beta", BETAS), ("kappa", KAPPAS)):
        systems += [
            System(f"{name} {value:g}", PAPER, at=(name, value),
                   changes=() if value == base[name] else (f"loss.{name}={value}",))
            for value in values
        ]  # fmt: skip
    systems += [
        System(f"alpha {a:g}", PAPER, search={"rerank": "cfd", "alpha": a}, at=("alpha", a))
        for a in ALPHAS
    ]
    return Study(
        "sensitivity",
        "How much do the strengths of the loss and the weight of the amplitude matter?",
        tuple(systems),
        figures=("lines",),
        note="Supplement, Figure B1: the paper finds its peak at beta .01 and alpha .3 to .7 even.",
    )


def partition() -> Study:
    """Grid against kd-tree: evening the counts moves the imbalance into the areas."""
    cross = _plain("cross-entropy")
    tree = ("places.rule=kd-tree", "places.max_photos=20")
    return Study(
        "partition",
        "Does cutting the map into equally photographed places even the recall?",
        (
            System("grid", PAPER, loss=cross, search={"rerank": "l2"}),
            System("kd-tree", PAPER, tree, loss=cross, search={"rerank": "l2"}),
            System("grid + LB", PAPER, search={"rerank": "l2"}),
            System("kd-tree + LB", PAPER, tree, search={"rerank": "l2"}),
        ),
        tables=("recall", "gains", "areas"),
        figures=("tiers", "areas"),
        note="Section 4.4: on CPlaNet's kd-tree of SF-XL (131,080 leaves) the paper's per-class "
        "R@1 falls from 14.3 to 12.6 with the extent of the leaf.",
    )


def margin() -> Study:
    """Supplement: the cosine margin without the prior, L2 ranking."""
    alone = _plain("cosface", margin=find_recipe(PAPER).loss.settings["margin"])
    rank = {"rerank": "l2"}
    return Study(
        "margin",
        "What does the prior add to a cosine margin, and the margin to the prior?",
        (
            System("margin alone", PAPER, loss=alone, search=rank),
            System("margin + prior (LB)", PAPER, search=rank),
            System("neither", PAPER, loss=_plain("cross-entropy"), search=rank),
            System("prior alone", PAPER, ("loss.margin=0.0",), search=rank),
        ),
        note="Supplement, Figure B3, drawn without numbers in the text.",
    )  # fmt: skip


def distance() -> Study:
    """Figure 5 and the supplement: ranking rules on one and the same network."""
    rules = {"CFD multiscale": "cfd-multiscale", "CFD matched": "cfd-matched", "KDE": "kde",
             "fused": "fused"}  # fmt: skip
    return Study(
        "distance",
        "Which rule ranks the shortlist best, by tier?",
        (
            System("L2", PAPER, search={"rerank": "l2"}, paper=paper.DISTANCES["L2"]),
            System("CFD", PAPER, search={"rerank": "cfd"}, paper=paper.DISTANCES["CFD"]),
            *(System(name, PAPER, search={"rerank": rule}) for name, rule in rules.items()),
            *(
                System(
                    f"D&C, {rule}",
                    "dc-small",
                    against="D&C, L2",
                    search={"rerank": rule.lower(), "shortlist": 20},
                )
                for rule in ("L2", "CFD")
            ),
        ),
        note="Supplement: tail R@1 of DAPR-M with DINOv2 on SF-XL. Figure 5 is of D&C, whose "
        "places are other squares: compare its rows with each other.",
    )


def confidence() -> Study:
    """Supplement: AUC-PR of every source on the same retrieval."""
    return Study(
        "confidence",
        "Which number says best whether an answer is right?",
        (
            System("DAPR-M, L2 ranking", PAPER, search={"rerank": "l2"}),
            System("DAPR-M, CFD ranking", PAPER, search={"rerank": "cfd"}),
            System("recommended", OURS),
        ),
        tables=("recall", "uncertainty", "confidence"),
        figures=("precision-recall", "risk", "reliability"),
        note="The paper's AUC-PR is DINOv2's on whole data sets.",
    )


def cost() -> Study:
    """Table 1's times, for what is here."""
    return Study(
        "cost",
        "What does an answer cost, and where does the time go?",
        (
            System("whole database, L2", PAPER, search={"rerank": "l2", "exact": True},
                   paper=paper.TIMES["whole database, L2"]),
            System("shortlist, L2", PAPER, search={"rerank": "l2"},
                   paper=paper.TIMES["shortlist, L2"]),
            System("shortlist, CFD", PAPER, search={"rerank": "cfd"},
                   paper=paper.TIMES["shortlist, CFD"]),
            System("recommended", OURS),
        ),
        tables=("cost", "recall"),
        figures=("stages",),
        note="Table 1: SF-XL's 2.8 million photos, a GPU; ours on this machine's processor.",
        timed=100,
    )  # fmt: skip


_HOSTS = {
    "CosPlace": "cosplace-small",
    "D&C": "dc-small",
    "D&C mixed": "dc-small",
    "SALAD": "salad-small",
    "BoQ": "boq-small",
    "CliqueMining": "cliquemining-small",
    "CricaVPR": "cricavpr-small",
    "MegaLoc": "megaloc-small",
    "ImAge": "image-small",
}
STUDIES: dict[str, Callable[[], Study]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        pipelines, losses, modules, plug_in, sensitivity, partition, margin, distance, confidence,
        cost, tail, abstention, beyond, choices, rewards, fine_tuning, contest, layer, descriptors,
        second_look, elsewhere,
    )
}  # fmt: skip
