"""A run opened for questions: its recipe's search settings, and what `tune` learned for them."""

from typing import Any

import numpy as np

from evenplace.retrieval import Search, open_index
from evenplace.retrieval.calibration import Calibration, Way
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.retrieval.rerank import Fused, build_reranker
from evenplace.retrieval.second_look import LookWeights, SecondLook, refuse_absent, say_look
from evenplace.run.learned_look import LearnedLook
from evenplace.run.run_folder import RunFolder
from evenplace.run.store import open_store

_TRIED = 16  # photos looked for before it is said that none is there


def open_search(
    run: RunFolder, radius: float, heading: float | None, expected: int = 1, **changes: Any
) -> Search:
    """Open a run with its recipe's search settings, some of them changed.

    radius, heading: what makes an answer right, for its confidence to be that probability.
    expected: photos that will be asked.
    """
    settings = search_settings(run, radius, heading, changes)
    if run.second:
        settings.setdefault("ranked_by", open_index(run / "ranking"))
    describer = run.open_describer(expected=expected) if run.describes else None
    index = open_index(run / "index")
    store = open_store(run, settings.get("ranked_by", index))
    if settings["look"] is not None:
        settings["look"] = look = SecondLook(index, *settings["look"])
        if look.kept is None:
            some = np.arange(0, len(index), max(1, len(index) // _TRIED))
            refuse_absent(index.paths(some), "photos of the database, whose points nobody kept")
    return Search(index, describer, store=store, **settings)


def search_settings(
    run: RunFolder, radius: float, heading: float | None, changes: dict[str, Any]
) -> dict[str, Any]:
    """What the recipe says, what was changed, and what was learned for just that.

    What was learned of the classifier's own ranking says nothing of one by another network.
    look: how many candidates are looked at a second time, by what, and with which weights.
    """
    spec = run.recipe.search
    settings: dict[str, Any] = {
        "shortlist": spec.shortlist,
        "rerank": spec.rerank,
        "confidence": spec.confidence,
        "exact": spec.exact,
        "facing": heading is not None,
        "features": spec.features,
        **changes,
    }
    if settings["rerank"] == "fused":
        weighed = (run / "fused.json").exists() and not spec.describer
        score = Fused.read(run / "fused.json") if weighed else Fused()
        settings["rerank"] = score.without(spec.without)
    if settings.setdefault("centre", None) is None:  # a promise is of photos as they are rehearsed
        settings["centre"] = spec.centre and settings.get("min_precision") is None
    count, features = settings.pop("verify", None), settings.pop("features")
    count = spec.verify if count is None else count
    learned = learned_look(run) if count else None
    if learned is not None:
        settings["confidence"] = learned.judge(settings["confidence"])
    settings["look"] = (count, features, learned and learned.weights) if count else None
    settings.setdefault("calibration", find_calibration(run, settings, radius, heading))
    if settings["calibration"] is None and not _means_something(settings["confidence"]):
        settings["confidence"] = "mass"
    return settings


def _means_something(source: Any) -> bool:
    """Whether a confidence can be read without calibration: log odds cannot."""
    return isinstance(source, str) and source != "evidence"


def learned_look(run: RunFolder) -> LearnedLook | None:
    """What `tune` taught of the second look, if it did."""
    return LearnedLook.read(run / "look.json") if (run / "look.json").exists() else None


def find_calibration(
    run: RunFolder, settings: dict[str, Any], radius: float, heading: float | None
) -> Calibration | None:
    """The curve for answers found with these settings; None where they were not rehearsed."""
    rehearsed = _rehearsal(run, looks=settings["look"] is not None)
    if rehearsed is None:
        return None
    rule, source = settings["rerank"], settings["confidence"]
    rule = build_reranker(rule) if isinstance(rule, str) else rule
    asked = Way(
        rule=repr(rule),
        source=source if isinstance(source, str) else repr(source),
        shortlist=settings["shortlist"],
        exact=settings["exact"],
        look=_say(settings["look"]),
    )
    return rehearsed.calibrate(radius, heading) if rehearsed.fits(asked) else None


def _rehearsal(run: RunFolder, *, looks: bool) -> Rehearsal | None:
    if run.second or not (run / "calibration.json").exists():
        return None
    if not looks:
        return run.rehearsal
    learned = learned_look(run)
    return None if learned is None else learned.rehearsal


def _say(look: tuple[int, str, LookWeights | None] | None) -> str:
    if look is None:
        return ""
    count, features, weights = look
    return say_look(features, count, weights or LookWeights())
