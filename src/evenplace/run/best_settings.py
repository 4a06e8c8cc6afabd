"""What a run's descriptors are compared along and what finds its places, as held-out photos settle.

[search] axes and prototypes name a kind each, or `best`: then every kind answers the same photos.

V photos that ask
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evenplace.arrays import Bools
from evenplace.errors import RunError, SettingError
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.build import index_again
from evenplace.retrieval.codec import ALONG
from evenplace.retrieval.learned_prototypes import LEARNED
from evenplace.retrieval.manifest import NAME
from evenplace.retrieval.prototypes import MEANS
from evenplace.retrieval.update import renew_prototypes
from evenplace.run.folds import Fold
from evenplace.run.run_folder import RunFolder
from evenplace.run.store import fill_store
from evenplace.training.specs import SearchSpec

BEST, GIVEN = "best", "given"
CHOICES = {"axes": (GIVEN, *ALONG), "prototypes": (MEANS, *LEARNED)}  # the first stays in doubt


@dataclass(frozen=True)
class Choice:
    """The kind that answers held-out photos best, and the figures in a sentence."""

    setting: str
    kind: str
    said: str


def choose(setting: str, answer: Callable[[str], Bools]) -> Choice:
    """Let every kind of a setting answer the same photos.

    The first stays unless another wins more photos from it than it loses by over twice what a fair
    coin would: it needs no training.  answer: whether each photo finds its match.  (V,).
    """
    first, *others = CHOICES[setting]
    right = {kind: answer(kind) for kind in (first, *others)}
    best, lead, parts = first, 0, []
    for kind in others:
        won, lost = (int((right[a] & ~right[b]).sum()) for a, b in ((kind, first), (first, kind)))
        parts.append(f"{kind} wins {won} and loses {lost}")
        if won - lost > max(lead, 2 * (won + lost) ** 0.5):
            best, lead = kind, won - lost
    verdict = f"{setting} {'stay ' if best == first else ''}{best}"
    asked = len(right[first])
    said = f"{verdict}: against {first}, {', '.join(parts)} of {asked} held-out photos"
    return Choice(setting, best, said)


def with_prototypes(folds: Sequence[Fold], kind: str) -> list[Fold]:
    """The folds with prototypes of a kind made of the photos; with a network's as they are."""
    if kind not in CHOICES["prototypes"]:
        return list(folds)
    return [
        fold
        if fold.index.manifest.prototypes == kind
        else replace(fold, index=renew_prototypes(fold.index.folder, kind))
        for fold in folds
    ]


def with_axes(folds: Sequence[Fold], axes: str) -> list[Fold]:
    """The folds with descriptors along other axes than a network's own, fitted to the others."""
    if axes == GIVEN:
        return list(folds)
    return [
        replace(fold, index=index_again(fold.index, fold.index.folder / axes, keep=ALONG[axes]))
        for fold in folds
    ]


def kept_along(index: Index, axes: str) -> str:
    """How descriptors of an index are kept along such axes; what was rounded stays as it is."""
    turned = index.codec.name in ALONG.values() and "exact" in index.columns
    if axes == GIVEN:
        return "float16" if turned else index.codec.name
    if not turned and index.codec.name != "float16":
        raise SettingError(
            f"axes={axes} needs descriptors as they were given, and {index.folder} keeps them as "
            f"{index.codec.name}; index them again without --keep and --bytes"
        )
    return ALONG[axes]


def renew_index(run: RunFolder, spec: SearchSpec) -> None:
    """Let the run's index, where it has one, follow its recipe's kinds."""
    if not (run / "index" / NAME).exists():
        return
    index, kinds = open_index(run / "index"), CHOICES["prototypes"]
    has, kind = index.manifest.prototypes, spec.prototypes
    gone, codec = kind not in kinds and has in LEARNED, index.codec.name
    along = codec if codec in ALONG.values() else None
    if run.trained and (gone or along != ALONG.get(spec.axes)):
        raise RunError(
            f"{run / 'index'} has prototypes by {has} and descriptors as {codec}, which "
            f"the recipe no longer wants; index again: evenplace index {run.path} --database PHOTOS"
        )
    made = kind if kind in kinds else MEANS if gone else has
    keep = codec if run.trained else kept_along(index, spec.axes)
    if keep != codec:
        index_again(index, index.folder, keep=keep, learn=made, given=spec.axes != GIVEN)
    elif made != has:
        renew_prototypes(run / "index", made)
    else:
        return
    fill_store(run)
