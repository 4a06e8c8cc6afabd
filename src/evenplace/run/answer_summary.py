"""What can be said of answers without the truth: how many, how sure, and whether matches agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenplace.run.locate_many import UNREADABLE, Located

NEAR = 25.0  # metres within which two matches say the same


@dataclass(frozen=True)
class Unlabelled:
    """Figures of photos whose positions nobody knows."""

    photos: int
    unreadable: int
    answered: int
    calibrated: bool
    doubt: str  # why it is not
    confidence: tuple[float, float, float]  # quartiles, of all that could be read
    expected: float  # share of the answers given that is right, by their own confidence
    agreement: float  # share of the best five matches within 25 m of the first


def judge_unlabelled(lines: Sequence[Located]) -> Unlabelled:
    """Count what was answered, and how far it can be trusted as far as it says itself."""
    read = [line for line in lines if line.matches]
    sure = np.array([line.confidence for line in read] or [0.0])
    given = np.array([line.confidence for line in read if line.answered] or [0.0])
    low, middle, high = np.percentile(sure, [25, 50, 75]).tolist()
    return Unlabelled(
        photos=len(lines),
        unreadable=sum(line.status == UNREADABLE for line in lines),
        answered=sum(line.answered for line in lines),
        calibrated=bool(read) and read[0].calibrated,
        doubt=read[0].doubt if read else "",
        confidence=(low, middle, high),
        expected=float(given.mean()),
        agreement=float(np.mean([_agreement(line) for line in read] or [0.0])),
    )


def _agreement(line: Located) -> float:
    spots = np.array([(one.east, one.north) for one in line.matches[:5]])
    return float(np.mean(np.linalg.norm(spots - spots[0], axis=1) <= NEAR))
