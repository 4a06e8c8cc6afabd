"""Who finds most: the recommended system beside every method in small, and what it is made of.

`contest` is judged on test queries; `layer` asks what the tail layer adds to descriptors that it
did not choose.
"""

from evenplace.retrieval.rerank import Fused
from evenplace.study.spec import Study, System
from evenplace.training.recipe import recipe_names

OURS = "dapr-m"
EXACT = {"rerank": "l2", "confidence": "l2", "verify": 0, "exact": True}
LAYER = ("folds=5", "rerank=fused", "confidence=evidence", "exact=false", "verify=0")
PARTS = {
    "prototypes softmax": ("prototypes=softmax",),
    "prototypes low-visit bias": ("prototypes=low-visit-bias",),
    "prototypes as folds choose": ("prototypes=best",),
    "axes half-whitened": ("axes=half-whitened",),
    "axes learned": ("axes=learned",),
    "axes as folds choose": ("axes=best",),
    "without balance": ('without=["balance"]',),
    "without impostors": ('without=["impostor"]',),
    "without posterior": ('without=["posterior"]',),
}
_OTHERS = ("cosface", "cross-entropy")  # small by default


def contest() -> Study:
    """Every method that trains one network without a hub, under its own recipe."""
    pairs = ("dc-cosplace", "dapr-c-boq", "dapr-c-salad")  # two networks trained as two
    others = [name for name in recipe_names() if name.endswith("-small")]
    others = [name for name in others if not name.startswith(pairs)]
    systems = [System("recommended", OURS), System("one look", OURS, search={"verify": 0})]
    systems += [System(name, name) for name in (*_OTHERS, *others)]
    return Study(
        "contest",
        "Is the recommended system ahead of every method in small, overall and in each tier?",
        tuple(systems),
        tables=("recall", "gains"),
        figures=("steps",),
        note="Each method is trained and asked as its recipe says. Gains are a method's over the "
        "recommended system: below zero where it is beaten.",
    )


def layer() -> Study:
    """The same descriptors under L2, and with all that is learned of the places.

    Of the first, each part of the layer is switched in turn.
    """
    hosts = {"VLAD, frozen": (OURS, ("epochs=0",)), "NetVLAD": ("netvlad-small", ()),
             "MegaLoc": ("megaloc-small", ()), "CosPlace": ("cosplace-small", ())}  # fmt: skip
    layer, systems = (*LAYER, "prototypes=means"), []
    for name, (recipe, changes) in hosts.items():
        plain = f"{name} + L2"
        systems += [
            System(plain, recipe, (*changes, "folds=0", "verify=0"), search=EXACT, against=plain),
            System(f"{name} + tail layer", recipe, (*changes, *layer), against=plain),
        ]
    recipe, changes = hosts["VLAD, frozen"]
    whole = systems[1].name
    systems[2:2] = [
        System(part, recipe, (*changes, *layer, *switched), against=whole)
        for part, switched in PARTS.items()
    ]
    fixed = {"rerank": "fused", "scale": Fused().scale}
    systems.insert(2, System("fixed weights", recipe, (*changes, *layer), search=fixed,
                             against=whole))  # fmt: skip
    return Study(
        "layer",
        "What does the tail layer add to descriptors that it did not choose, by tier?",
        tuple(systems),
        tables=("recall", "gains", "confidence", "abstention"),
        figures=("steps",),
        note="L2 searches the whole database. The layer: places by the means of their photos, a "
        "score weighed on photos held out in turn, impostors, a calibrated confidence. The rows "
        "between the first two hosts change one part of the first one's layer each.",
    )
