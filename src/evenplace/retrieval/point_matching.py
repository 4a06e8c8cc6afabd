"""Two pictures → how many of their points agree on one view of one thing.

Points are matched where each is the other's nearest and clearly nearer than the next, or as their
kind says; a robust fit (MAGSAC, by OpenCV) keeps those that one camera movement explains.  A
facade is flat, so a homography asks more than a fundamental matrix, and takes half its time.

    K points of the query · L points of a candidate · M matches · D descriptor
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenplace.arrays import Floats
from evenplace.describe.onnx_engine import open_session
from evenplace.errors import unknown_name
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.local_features import XFEAT, Features, LocalFeatures, Matching

PRODUCTS = XFEAT.with_name("products.onnx")  # one Gemm, its second matrix transposed
FITS = ("homography", "fundamental")
RATIO = 0.9  # a match is so much nearer than the query point's next best
VERIFIED, REFUTED = 30, 12  # inliers from which two photos show one thing; up to which nothing
_PIXELS = 480.0  # of the longer side while fitting: OpenCV's fits expect pixels
_OFF = 7.0  # pixels that a match may lie from where the fit puts it
_CHANCE = 10.0  # inliers
_LEAST = 8  # matches: fewer are explained by anything
_DRAWS, _SURE = 500, 0.995
_STRETCH = 10.0  # a plane seen more aslant than that is no view of it


@dataclass(frozen=True)
class Match:
    """What two pictures have in common: points in shares of each one's longer side."""

    query: Floats  # (inliers, 2)
    candidate: Floats  # (inliers, 2)

    @property
    def inliers(self) -> int:
        return len(self.query)


def worth(inliers: ArrayLike) -> NDArray[np.float64]:
    """What so many inliers say: log(1 + those beyond chance).  (N,) -> (N,).

    Pictures that share nothing have up to ten: whether eight or none, it means the same.
    """
    return np.log1p(np.maximum(np.asarray(inliers, np.float64) - _CHANCE, 0))


def verify(
    query: Features,
    candidate: Features,
    kind: LocalFeatures | None = None,
    fit: str = "homography",
) -> Match:
    """Match the points of two pictures and keep those that one view explains.

    kind: what found them, which may have its own way to match; nearest neighbours otherwise.
    """
    return keep_view(match_points(query, candidate, kind), fit)


def match_points(query: Features, candidate: Features, kind: LocalFeatures | None = None) -> Match:
    """Points of two pictures that may be the same, whatever view that would be."""
    if isinstance(kind, Matching):
        mine, other = kind.match(query, candidate)
    else:
        mine, other = mutual_matches(query.descriptors, candidate.descriptors)
    return Match(query=query.points[mine], candidate=candidate.points[other])


def keep_view(match: Match, fit: str = "homography") -> Match:
    """Those of the matches that one view explains."""
    if fit not in FITS:
        raise unknown_name("fit", fit, FITS)
    kept = np.zeros(match.inliers, bool)
    if match.inliers >= _LEAST:
        robust = _homography if fit == "homography" else _fundamental
        kept = robust(match.query * np.float32(_PIXELS), match.candidate * np.float32(_PIXELS))
    return Match(query=match.query[kept], candidate=match.candidate[kept])


def mutual_matches(query: Floats, candidate: Floats, ratio: float = RATIO) -> tuple[Rows, Rows]:
    """Rows of points that are each other's nearest, the second best clearly farther.

    (K, D), (L, D) unit -> (M,), (M,).
    """
    if not len(query) or len(candidate) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    cosines = _products(query, candidate)  # (K, L)
    here, nearest = np.arange(len(query)), cosines.argmax(axis=1)
    best = cosines[here, nearest]  # (K,)
    mutual = best == cosines.max(axis=0)[nearest]
    cosines[here, nearest] = -2  # in place: a copy of the matrix costs more than all of this
    kept = np.flatnonzero(mutual & (1 - best < ratio**2 * (1 - cosines.max(axis=1))))
    return kept, nearest[kept]


def _products(query: Floats, candidate: Floats) -> Floats:
    """query @ candidate.T on the thread that asks.  (K, D), (L, D) -> (K, L).

    numpy's threads wait by spinning: 818 x 818 points of 32 numbers took 12 ms of two cores, and
    1.7 of one in blocks so small that none began; onnxruntime takes 0.7.
    """
    asked = {"query": np.ascontiguousarray(query), "candidate": np.ascontiguousarray(candidate)}
    found: Floats
    (found,) = _multiplication().run(None, asked)
    return found


@cache
def _multiplication() -> Any:
    return open_session(PRODUCTS, threads=1)


def _homography(start: Floats, end: Floats) -> NDArray[np.bool_]:
    import cv2

    found, kept = _robust(
        cv2.findHomography, start, end, cv2.USAC_MAGSAC, _OFF, None, _DRAWS, _SURE
    )
    if found is None or not kept.any() or not _is_view(found, start[kept].mean(axis=0)):
        return np.zeros(len(start), bool)
    return kept


def _robust(fit: Callable[..., Any], start: Floats, *rest: Any) -> tuple[Any, NDArray[np.bool_]]:
    """What one of OpenCV's fits finds, None for nothing, and the matches that it keeps."""
    import cv2

    try:
        found, kept = fit(start, *rest)
    except cv2.error:  # it asserts that a model came of its last polishing: not of every dozen
        found, kept = None, None
    if found is None or kept is None:
        return None, np.zeros(len(start), bool)
    return found, kept.ravel() > 0


def _is_view(homography: NDArray[np.float64], at: Floats) -> bool:
    """Whether a camera can see a plane so: not mirrored, not flattened to a line.

    Looks at the derivative of the homography in the middle of its inliers.
    """
    x, y, depth = homography @ np.array([*at, 1.0])
    if not abs(depth) > 1e-9:
        return False
    outer = np.outer([x, y], homography[2, :2]) / depth
    local = (homography[:2, :2] - outer) / depth  # (2, 2)
    large, small = np.linalg.svd(local, compute_uv=False)
    return bool(np.linalg.det(local) > 0 and large < _STRETCH * small)


def _fundamental(start: Floats, end: Floats) -> NDArray[np.bool_]:
    import cv2

    fit = cv2.findFundamentalMat
    return _robust(fit, start, end, cv2.USAC_MAGSAC, _OFF / 2, _SURE, _DRAWS)[1]
