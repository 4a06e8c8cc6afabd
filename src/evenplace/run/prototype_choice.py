"""Which prototypes a run's places have: what its recipe says, or what its held-out photos settle.

V photos that ask
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.errors import RunError
from evenplace.retrieval.learned_prototypes import LEARNED
from evenplace.retrieval.manifest import NAME, Manifest
from evenplace.retrieval.prototypes import MEANS
from evenplace.retrieval.update import renew_prototypes
from evenplace.run.folds import Fold
from evenplace.run.run_folder import RunFolder
from evenplace.run.store import fill_store

BEST = "best"
_KINDS = (MEANS, *LEARNED)
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Choice:
    """The kind of prototypes that answers held-out photos best, and the figures in a sentence."""

    kind: str
    said: str


def with_prototypes(folds: Sequence[Fold], kind: str) -> list[Fold]:
    """The folds with prototypes of a kind made of the photos; with a network's as they are."""
    if kind not in _KINDS:
        return list(folds)
    return [
        fold
        if fold.index.manifest.prototypes == kind
        else replace(fold, index=renew_prototypes(fold.index.folder, kind))
        for fold in folds
    ]


def choose_prototypes(
    folds: Sequence[Fold], answer: Callable[[list[Fold]], Bools], show: Progress | None = None
) -> Choice:
    """Let every kind answer the same photos.

    Means stay unless another wins more photos from them than it loses by over twice what a fair
    coin would: they need no training, and a place that changes has its new one at once.
    answer: whether each photo finds its match.  (V,).
    """
    right: dict[str, Bools] = {}
    for number, kind in enumerate(_KINDS):
        folds = with_prototypes(folds, kind)
        right[kind] = answer(list(folds))
        if show:
            show(number + 1, len(_KINDS))
    best, lead, parts = MEANS, 0, []
    for kind in LEARNED:
        won, lost = (int((right[a] & ~right[b]).sum()) for a, b in ((kind, MEANS), (MEANS, kind)))
        parts.append(f"{kind} wins {won} and loses {lost}")
        if won - lost > max(lead, 2 * (won + lost) ** 0.5):
            best, lead = kind, won - lost
    verdict = "prototypes stay means" if best == MEANS else f"prototypes by {best}"
    asked = len(right[MEANS])
    return Choice(best, f"{verdict}: against means, {', '.join(parts)} of {asked} held-out photos")


def renew_index(run: RunFolder, kind: str) -> None:
    """Let the run's index, where it has one, follow its recipe's kind of prototypes."""
    if not (run / "index" / NAME).exists():
        return
    has = Manifest.read(run / "index").prototypes
    if kind not in _KINDS and has in LEARNED:
        if run.trained:
            raise RunError(
                f"{run / 'index'} has prototypes by {has}, the recipe now wants the network's; "
                f"index again: evenplace index {run.path} --database PHOTOS"
            )
        kind = MEANS
    if kind in _KINDS and kind != has:
        renew_prototypes(run / "index", kind)
        fill_store(run)
