"""A run opened for questions: its recipe's search settings, and what `tune` learned for them."""

from typing import Any

from evenplace.retrieval import Search, open_index
from evenplace.retrieval.calibration import Calibration, Way
from evenplace.retrieval.rerank import build_reranker
from evenplace.run.folder import RunFolder
from evenplace.run.store import open_store
from evenplace.run.tune import read_fused


def open_search(run: RunFolder, radius: float, heading: float | None, **changes: Any) -> Search:
    """Open a run with its recipe's search settings, some of them changed.

    radius, heading: what makes an answer right, for its confidence to be that probability.
    """
    settings = search_settings(run, radius, heading, changes)
    if run.second:
        settings.setdefault("ranked_by", open_index(run / "ranking"))
    describer = run.open_describer() if run.describes else None
    index = open_index(run / "index")
    store = open_store(run, settings.get("ranked_by", index))
    return Search(index, describer, store=store, **settings)


def search_settings(
    run: RunFolder, radius: float, heading: float | None, changes: dict[str, Any]
) -> dict[str, Any]:
    """What the recipe says, what was changed, and what was learned for just that.

    What was learned of the classifier's own ranking says nothing of one by another network.
    """
    spec = run.recipe.search
    settings: dict[str, Any] = {
        "shortlist": spec.shortlist,
        "rerank": spec.rerank,
        "confidence": spec.confidence,
        "exact": spec.exact,
        "facing": heading is not None,
        **changes,
    }
    if settings["rerank"] == "fused" and (run / "fused.json").exists() and not spec.describer:
        settings["rerank"] = read_fused(run / "fused.json")
    settings.setdefault("calibration", find_calibration(run, settings, radius, heading))
    if settings["calibration"] is None and settings["confidence"] == "evidence":
        settings["confidence"] = "mass"  # log odds that nobody has calibrated
    return settings


def find_calibration(
    run: RunFolder, settings: dict[str, Any], radius: float, heading: float | None
) -> Calibration | None:
    """The curve for answers found with these settings; None where they were not rehearsed."""
    if run.second or not (run / "calibration.json").exists():
        return None
    rehearsed = run.rehearsal
    rule = settings["rerank"]
    rule = build_reranker(rule) if isinstance(rule, str) else rule
    asked = Way(repr(rule), settings["confidence"], settings["shortlist"], settings["exact"])
    return rehearsed.calibrate(radius, heading) if rehearsed.fits(asked) else None
