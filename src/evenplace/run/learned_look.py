"""What `tune` learned of the second look, as a run keeps it: look.json."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.files import write_json
from evenplace.retrieval.confidence import LearnedConfidence
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.retrieval.second_look import LookWeights


@dataclass(frozen=True)
class LearnedLook:
    """What the folds taught of the second look, and the answers they were given with it."""

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
