"""The tables of a recipe, as frozen dataclasses: how the map is cut, what training rewards, how.

A setting outside its range is refused here, where it is written, not hours later.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from evenplace.errors import SettingError, unknown_name
from evenplace.networks.methods import METHODS, as_size
from evenplace.photos.pictures import Size

_MANY = 10**9
_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}
EVENING = ("photo", "place", "sqrt")  # how often a place is met
MINED = ("cliques", "triplets", "generations")  # batches that descriptors choose
SAMPLERS = EVENING + MINED
TRIPLET_LOSSES = ("triplet", "sare")
RULES = ("grid", "focal-grid", "kd-tree", "quadtree", "hierarchy", "intersection", "given")
SCHEDULES = ("cosine", "linear", "constant", "steps", "plateau")
STARTS = ("principal", "random")
OPTIMISERS = ("adamw", "adam", "sgd")
PROTOTYPES = ("cosine", "raw", "means", "softmax", "low-visit-bias", "best")
AXES = ("given", "half-whitened", "learned", "best")
TERMS = ("impostor", "posterior", "balance")  # of the fused score, beside the likeness of photos
FAVOURED = ("queries", "places")
PRECISIONS = ("auto", "float64", "float32", "bfloat16", "float16")


def check_settings(table: str, kind: type[Any], values: Mapping[str, Any]) -> None:
    """Refuse the first value that is of another kind than `kind` has it, or not allowed.

    A type is annotated with what is: the least and the largest number, or all words.
    """
    hints = get_type_hints(kind, include_extras=True)
    for name, value in values.items():
        hint, allowed = hints[name], None
        if get_origin(hint) is Annotated:
            hint, allowed = get_args(hint)
        if not _fits(value, hint):
            raise SettingError(f"{table}.{name}={value!r} must be {_words(hint)}")
        if hint is str and allowed and value not in allowed:
            raise unknown_name(name, value, allowed)
        low, high = allowed if allowed and hint is not str else (-math.inf, math.inf)
        for number in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(number, Real) and float(number) < low:
                raise SettingError(f"{table}.{name}={number} must be at least {low}")
            if isinstance(number, Real) and float(number) > high:
                raise SettingError(f"{table}.{name}={number} must be at most {high}")


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        inside = get_args(hint)[0]
        return isinstance(value, (tuple, list)) and all(_fits(one, inside) for one in value)
    if hint is float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and math.isfinite(float(value))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if isinstance(hint, UnionType):
        return " or ".join(_words(one) for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) is tuple:
        return "a list, each " + _words(get_args(hint)[0])
    return _WORDS[hint]


@dataclass(frozen=True)
class PlacesSpec:
    """Eq. 1: square cells of `cell` metres; groups of N x N interleaved cells, one softmax each.

    rule: other ways to cut the map; `given` takes the places the data set brings, by `column`,
    and squares where photos have no such column; `max_photos` is for the trees, `heading_bins`
    for CosPlace, `tolerance` (degrees) for EigenPlaces' views.  groups_in_use: 0 is all of them.
    """

    cell: Annotated[float, (0.01, 10**6)] = 20.0
    min_photos: Annotated[int, (1, _MANY)] = 1
    groups: Annotated[int, (1, 1000)] = 1
    rule: Annotated[str, RULES] = "grid"
    max_photos: Annotated[int, (1, _MANY)] = 320
    heading_bins: Annotated[int, (1, 360)] = 1
    heading_groups: Annotated[int, (1, 360)] = 1
    groups_in_use: Annotated[int, (0, 10**6)] = 0
    tolerance: Annotated[float, (0, 180)] = 45.0
    column: str = "place"

    def __post_init__(self) -> None:
        check_settings("places", PlacesSpec, vars(self))


@dataclass(frozen=True)
class LossSpec:
    """A loss by name; every other key of the table is handed to it."""

    name: str = "cross-entropy"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise SettingError(f"loss.{name}={value!r} must be a finite number")


@dataclass(frozen=True)
class TrainingSpec:
    """How the network is trained.

    sampler: how often a place is met; `cliques`, `triplets`, `generations` choose batches by
    descriptors (`MiningSpec`).  views: how many crops of each photo are cached.  steps: batches
    an epoch, 0 for one pass.  train_size: of the photos in a batch, where it is not the network's
    `image_size`.  batch: photos, or, where the loss compares photos, places times
    `photos_per_place`.  within_city: photos that are compared, or negatives of each other, are of
    one city, as GSV-Cities' trainers have it.  warmup: epochs.  min_lr: training ends once the
    rate has fallen below it.  average: decay of a moving average of the weights.  validation:
    share of the spots held out; refit: train again on all photos for the number of epochs that
    was best on them.  checkpoint: seconds between two within an epoch.  projection_only: the
    aggregator keeps the clusters it started with, so that its output is computed once a photo.
    """

    epochs: Annotated[int, (0, 10**6)] = 10
    batch: Annotated[int, (1, 10**6)] = 64
    lr: Annotated[float, (0, 100)] = 1e-4
    lr_classifier: Annotated[float, (0, 100)] = 1e-2
    weight_decay: Annotated[float, (0, 100)] = 0.0
    sampler: Annotated[str, SAMPLERS] = "photo"
    views: Annotated[int, (1, 1000)] = 2
    cached: bool = True
    augment: bool = True
    flip: bool = False
    start: Annotated[str, STARTS] = "principal"
    seed: Annotated[int, (0, 2**32 - 1)] = 0
    steps: Annotated[int, (0, _MANY)] = 0
    photos_per_place: Annotated[int, (2, 10**4)] = 4
    within_city: bool = False
    crop: Annotated[float, (0, 1)] = 0.5
    jitter: Annotated[float, (0, 1)] = 0.4
    hue: Annotated[float, (0, 0.5)] = 0.0
    randaugment: Annotated[int, (0, 100)] = 0
    optimiser: Annotated[str, OPTIMISERS] = "adamw"
    momentum: Annotated[float, (0, 1)] = 0.9
    schedule: Annotated[str, SCHEDULES] = "cosine"
    warmup: Annotated[float, (0, 10**6)] = 0.5
    final: Annotated[float, (0, 1)] = 0.0
    factor: Annotated[float, (0, 1)] = 0.1
    milestones: Annotated[tuple[float, ...], (0, 10**6)] = ()
    patience: Annotated[int, (1, 10**6)] = 10
    accumulate: Annotated[int, (1, 10**6)] = 1
    average: Annotated[float, (0, 1)] = 0.0
    precision: Annotated[str, PRECISIONS] = "auto"
    validation: Annotated[float, (0, 0.9)] = 0.0
    refit: bool = True
    checkpoint: Annotated[float, (0, _MANY)] = 300.0
    tensorboard: bool = False
    train_size: Annotated[Size | None, (8, 4096)] = None
    min_lr: Annotated[float, (0, 100)] = 0.0
    projection_only: bool = False

    def __post_init__(self) -> None:
        check_settings("training", TrainingSpec, vars(self))
        object.__setattr__(self, "milestones", tuple(self.milestones))
        object.__setattr__(self, "train_size", as_size(self.train_size))
        if self.train_size is not None and self.cached:
            raise SettingError(
                f"train_size={self.train_size} beside cached=true: the cache keeps photos at the "
                "size they are asked at; use cached=false, or leave train_size out"
            )
        if self.projection_only and (self.views > 1 or not self.cached):
            raise SettingError(
                f"projection_only=true beside views={self.views}, cached={self.cached}: it keeps "
                "one pooled view of each photo; use views=1 and cached=true"
            )


@dataclass(frozen=True)
class MiningSpec:
    """Which photos meet in a batch, where their descriptors decide it.

    triplets: `queries` an epoch, each with its best positive within `positive` metres and
    `negatives` of the nearest photos beyond `negative` metres, out of a random `pool` of them (0
    is all: full mining), found anew every `refresh` queries.  generations: SFRS; each takes the
    one before as teacher at its `temperatures`, on `positives` photos and their regions, with
    `soft_weight`.  cliques: places are drawn around one, `alike` of them most similar to it, and
    photos of a place lie within `reach` metres of each other.
    """

    queries: Annotated[int, (1, _MANY)] = 5000
    negatives: Annotated[int, (1, 10**4)] = 10
    positive: Annotated[float, (0, 10**6)] = 10.0
    negative: Annotated[float, (0, 10**6)] = 25.0
    pool: Annotated[int, (0, _MANY)] = 0
    refresh: Annotated[int, (1, _MANY)] = 1000
    generations: Annotated[int, (1, 1000)] = 4
    positives: Annotated[int, (1, 10**4)] = 4
    temperatures: Annotated[tuple[float, ...], (1e-6, 1000)] = (0.07, 0.07, 0.06, 0.05)
    soft_weight: Annotated[float, (0, 1000)] = 0.5
    alike: Annotated[int, (1, 10**6)] = 15
    reach: Annotated[float, (0, 10**6)] = 25.0

    def __post_init__(self) -> None:
        check_settings("mining", MiningSpec, vars(self))
        object.__setattr__(self, "temperatures", tuple(self.temperatures))
        if not 0 < self.positive <= self.negative:
            raise SettingError(
                f"positive={self.positive} and negative={self.negative}: photos must count as one "
                "place nearer than as two; use 10 and 25"
            )


@dataclass(frozen=True)
class SearchSpec:
    """How a query is answered: places kept by the classifier, and what ranks their photos.

    exact: rank the whole database, as retrieval without a classifier does.  folds: how many parts
    of the training photos are held out in turn to learn the fused score's weights and what its
    confidence is worth; 0 keeps the weights as they are, and confidence uncalibrated.
    describer: a method whose network, instead of the trained one, ranks what was shortlisted.
    prototypes: places score by their cosine to what training made of them, or by the raw product,
    in which a prototype's length counts (Divide&Classify); or by what the database's descriptors
    give, whoever made those: the means of a place's photos, or what softmax or low-visit bias
    moves them to; `best` lets the folds choose among these three.
    axes: what descriptors that others computed are compared along: as they were given, or at most
    1,024 principal axes, half-whitened, or learned from there so that what parts photos of one
    place counts for less; `best` lets the folds choose.
    without: terms that the fused score leaves out (impostor, posterior with its balance, balance).
    verify: candidates that are looked at a second time, by the points their pictures share with
    the query's; 0 looks at none.  features: what finds those points.
    favour: what the learned weights serve: queries as they come, or every place alike.
    centre: photos that are asked together have season, light and camera in common; what sets all of
    them apart from the database is taken out before they are compared.
    """

    shortlist: Annotated[int, (1, _MANY)] = 20
    rerank: str = "l2"
    confidence: str = "mass"
    exact: bool = False
    folds: Annotated[int, (0, 1000)] = 0
    describer: str | None = None
    prototypes: Annotated[str, PROTOTYPES] = "cosine"
    axes: Annotated[str, AXES] = "given"
    verify: Annotated[int, (0, 1000)] = 0
    features: str = "xfeat"
    favour: Annotated[str, FAVOURED] = "queries"
    centre: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_settings("search", SearchSpec, vars(self))
        object.__setattr__(self, "without", tuple(self.without))
        for term in self.without:
            if term not in TERMS:
                raise unknown_name("term of the fused score", term, TERMS)
        if self.folds == 1:
            raise SettingError("folds=1 holds nothing out; use 0, or 2 and more")
        if self.describer and self.folds:
            raise SettingError(
                f"folds={self.folds} would tune a ranking by the trained network, and "
                f"{self.describer} ranks; use folds=0"
            )
        if self.describer:
            METHODS.find(self.describer)
