"""A run opened for questions: its recipe's search settings, and what `tune` learned for them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.errors import RunError
from evenplace.photos.files import write_json
from evenplace.retrieval import Search, open_index
from evenplace.retrieval.calibration import Calibration, Way
from evenplace.retrieval.confidence import LearnedConfidence
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.retrieval.rerank import Fused, build_reranker
from evenplace.retrieval.second_look import LookWeights, SecondLook, refuse_absent, say_look
from evenplace.run.run_folder import RunFolder
from evenplace.run.store import open_store

_TRIED = 16  # photos looked for before it is said that none is there


@dataclass(frozen=True)
class LearnedLook:
    """What the folds taught of the second look, and their answers with it: look.json."""

    weights: LookWeights
    confidence: LearnedConfidence
    rehearsal: Rehearsal

    def judge(self, source: str) -> str | LearnedConfidence:
        """The source of confidence of that name: evidence is weighed with the matches."""
        return self.confidence if source == "evidence" else source

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "LearnedLook":
        try:
            kept = json.loads(path.read_text())
            heard = kept["confidence"]
            return cls(
                weights=LookWeights(**kept["weights"]),
                confidence=LearnedConfidence(tuple(heard["weights"]), float(heard["offset"])),
                rehearsal=Rehearsal.from_dict(kept["rehearsal"]),
            )
        except (ValueError, KeyError, TypeError) as cause:
            raise RunError(
                f"{path} is no second look ({cause}); learn it again: evenplace tune {path.parent}"
            ) from cause


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
    source = settings["confidence"]
    if settings["calibration"] is None and (source == "evidence" or not isinstance(source, str)):
        settings["confidence"] = "mass"  # log odds cannot be read without calibration
    return settings


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
    said, rule = "", build_reranker(rule) if isinstance(rule, str) else rule
    if settings["look"] is not None:
        count, features, weights = settings["look"]
        said = say_look(features, count, weights or LookWeights())
    asked = Way(
        rule=repr(rule),
        source=source if isinstance(source, str) else repr(source),
        shortlist=settings["shortlist"],
        exact=settings["exact"],
        look=said,
    )
    return rehearsed.calibrate(radius, heading) if rehearsed.fits(asked) else None


def _rehearsal(run: RunFolder, *, looks: bool) -> Rehearsal | None:
    if run.second or not (run / "calibration.json").exists():
        return None
    if not looks:
        return run.rehearsal
    learned = learned_look(run)
    return None if learned is None else learned.rehearsal
