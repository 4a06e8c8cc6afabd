"""What lifts the tail: from the usual recipe to the recommended one in steps.

Every network here is frozen and cached whole, so a training is seconds and five seeds of three
cities are an evening's work for a laptop; `fine-tuning` unfreezes the last blocks once.
"""

from typing import Any

from evenplace.study.spec import Study, System

OURS = "dapr-m"
BANDED = "dapr-m-bands"  # the same on a smaller network
USUAL = ("cut=9", "views=1")  # the last layer of the frozen network, as it is
BANDS = ("backbone=efficientnet-lite0-bands", "aggregator=mean", "views=1")
PLAIN = ("backbone=efficientnet-lite0", "aggregator=gem", "power=1.0", "cut=9")
FIXED = ("folds=0", "verify=0")  # the score's weights as they are, nothing held out
L2: dict[str, Any] = {"rerank": "l2", "confidence": "l2", "verify": 0}
COSINE = {"name": "cross-entropy", "scale": 15.0}
PAIRS = {"name": "multi-similarity"}  # a place's prototype is then the mean of its photos


def tail() -> Study:
    """Each line changes one thing of the line before it, unless it says otherwise."""
    return Study(
        "tail",
        "What lifts the sparsely photographed places, and what does each part contribute?",
        (
            System("CosFace + L2", "cosface", USUAL, search=L2),
            System("cross-entropy + L2", "cross-entropy", USUAL, search=L2),
            System("dapr-m-paper-small", "dapr-m-paper-small", USUAL),
            System("frozen + L2", BANDED, (*PLAIN, *FIXED, "epochs=0"), search=L2),
            System("frozen, bands + L2", BANDED, (*FIXED, "epochs=0"), search=L2,
                   against="frozen + L2"),
            System("CosFace, bands + L2", "cosface", BANDS, search=L2),
            System("softmax from there + L2", BANDED, FIXED, loss=COSINE, search=L2,
                   against="frozen, bands + L2"),
            System("LB from there + L2", BANDED, FIXED, search=L2,
                   against="softmax from there + L2"),
            System("LB + CFD", BANDED, FIXED, search={"rerank": "cfd", "confidence": "distance"},
                   against="LB from there + L2"),
            System("LB + KDE", BANDED, FIXED, search={"rerank": "kde"},
                   against="LB from there + L2"),
            System("LB + fused, fixed weights", BANDED, FIXED, against="LB from there + L2"),
            System("LB + fused, learned weights", BANDED, against="LB + fused, fixed weights"),
            System("frozen, VLAD + L2", OURS, (*FIXED, "epochs=0"), search=L2,
                   against="frozen, bands + L2"),
            System("recommended, one look", OURS, search={"verify": 0},
                   against="frozen, VLAD + L2"),
            System("recommended", OURS, against="recommended, one look"),
        ),
        tables=("recall", "gains", "confidence", "abstention"),
        figures=("steps", "precision-recall", "reliability"),
        pairs=(
            ("recommended", "cross-entropy + L2"),
            ("recommended", "CosFace, bands + L2"),
            ("recommended", "LB + fused, learned weights"),
            ("recommended", "frozen, VLAD + L2"),
        ),
    )  # fmt: skip


def abstention() -> Study:
    """What a requested precision delivers, learned from the training photos alone."""
    return Study(
        "abstention",
        "Does an answer that is given when 95 % are to be right keep that promise?",
        (System("recommended", OURS),),
        tables=("recall", "abstention", "confidence"),
        figures=("reliability", "precision-recall"),
    )


def beyond() -> Study:
    """Other pools and other places under the recommended score."""
    return Study(
        "beyond",
        "Would more candidates, fewer, or places that know where they look find more?",
        (
            System("recommended", OURS),
            System("shortlist of 5", OURS, search={"shortlist": 5}),
            System("shortlist of 20", OURS, search={"shortlist": 20}),
            System("whole database", OURS, search={"exact": True}),
            System("places of 4 headings", OURS, ("heading_bins=4",)),
            System("places of 40 m", OURS, ("cell=40",)),
        ),
        note="Other places have other tiers: compare the overall recall of the last two. Terms "
        "that the score itself might gain are in `benchmarks/beyond.py`.",
    )


def choices() -> Study:
    """The recommended recipe with one setting moved at a time; ask it with --development."""
    moved = {
        "lr 1e-4": ("lr=1e-4",),
        "lr 1e-3": ("lr=1e-3",),
        "4 epochs": ("epochs=4",),
        "16 epochs": ("epochs=16",),
        "256 numbers": ("dim=256",),
        "1,024 numbers": ("dim=1024",),
        "softmax scale 30": ("scale=30",),
        "margin 0.2": ("margin=0.2",),
        "random start": ("start=random",),
        "EfficientNet-Lite1": ("backbone=efficientnet-lite1",),
        "a layer before": ("layer=4", "cut=5"),
        "a layer after": ("layer=6", "cut=7"),
        "clusters that train": ("projection_only=false",),
    }
    return Study(
        "choices",
        "Which settings would be chosen on photos that no test asks about?",
        (
            System("as recommended", OURS, FIXED),
            *(System(name, OURS, (*FIXED, *changes)) for name, changes in moved.items()),
            System("means of bands", BANDED, FIXED),
            System("last layer only", BANDED, (*FIXED, *PLAIN)),
            System("Multi-Similarity", OURS, FIXED, loss=PAIRS),
            System("Multi-Similarity, 16 epochs", OURS, (*FIXED, "epochs=16"), loss=PAIRS),
        ),
        figures=("steps",),
        development=True,
        note="With --development the queries are photos of the database and the test is unseen: "
        "what is chosen so can be judged on the test. Weights of the score are fixed.",
    )


def rewards() -> Study:
    """What training rewards, on the frozen bands: ranked by L2, nothing held out."""
    losses: dict[str, dict[str, Any]] = {
        "softmax": COSINE,
        **{f"CosFace m {m:g}": {"name": "cosface", "scale": 15.0, "margin": m}
           for m in (0.1, 0.2, 0.3, 0.4)},
        "LDAM": {"name": "ldam", "scale": 15.0},
        "logit adjustment": {"name": "logit-adjustment", "scale": 15.0},
        "focal": {"name": "focal", "scale": 15.0},
        **{f"LB β {beta:g} κ {kappa:g}": _bias(beta, kappa)
           for beta, kappa in ((0.01, 0.05), (0.25, 0.0), (0.0, 0.5), (0.25, 0.5), (0.25, 1.0),
                               (1.0, 0.5))},
    }  # fmt: skip
    systems = [System("frozen", BANDED, (*FIXED, "epochs=0"), search=L2)]
    systems += [System(name, BANDED, FIXED, loss=loss, search=L2) for name, loss in losses.items()]
    systems += [
        System(f"softmax, sampler {sampler}", BANDED, (*FIXED, f"sampler={sampler}"), loss=COSINE,
               search=L2)
        for sampler in ("place", "sqrt")
    ]  # fmt: skip
    pairs: dict[str, dict[str, Any]] = {
        "Multi-Similarity": PAIRS,
        "MS + LB pairs": {"name": "low-visit-bias-pairs"},
        "MS + LB pairs, centred": {"name": "low-visit-bias-pairs", "centred": True},
        "MS + constant shift": {"name": "low-visit-bias-pairs", "constant": True},
    }
    systems += [
        System(name, BANDED, FIXED, loss=loss, search={**L2, "exact": True},
               against="Multi-Similarity")
        for name, loss in pairs.items()
    ]  # fmt: skip
    return Study(
        "rewards",
        "When does training beat the frozen descriptor, by tier, and which loss does it best?",
        tuple(systems),
        figures=("steps",),
        note="Pair losses train no classifier, so they search the whole database.",
    )


def fine_tuning() -> Study:
    """The last blocks unfrozen: what the frozen network leaves on the table."""
    return Study(
        "fine-tuning",
        "Does training the last blocks end to end find more than the frozen network?",
        (
            System("frozen network", BANDED, FIXED),
            System("last blocks train", BANDED, (*FIXED, "cut=6", "views=2", "lr=1e-4")),
            System("CosFace, last blocks train", "cosface", (), search=L2),
        ),
    )


def _bias(beta: float, kappa: float) -> dict[str, Any]:
    return {"name": "low-visit-bias", "beta": beta, "kappa": kappa, "scale": 15.0, "margin": 0.0}
