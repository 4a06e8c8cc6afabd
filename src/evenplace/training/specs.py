"""The tables of a recipe, as frozen dataclasses: how the map is cut, what training rewards, how.

A setting outside its range is refused here, where it is written, not hours later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenplace.errors import SettingError, unknown_name
from evenplace.networks.methods import METHODS
from evenplace.networks.spec import as_size
from evenplace.photos.pictures import Size
from evenplace.training.ranges import check_finite, check_settings

EVENING = ("photo", "place", "sqrt")  # how often a place is met
MINED = ("cliques", "triplets", "generations")  # batches that descriptors choose
SAMPLERS = EVENING + MINED
TRIPLET_LOSSES = ("triplet", "sare")
RULES = ("grid", "focal-grid", "kd-tree", "quadtree", "hierarchy", "intersection", "given")
SCHEDULES = ("cosine", "linear", "constant", "steps", "plateau")
OPTIMISERS = ("adamw", "adam", "sgd")
PROTOTYPES = ("cosine", "raw")
FAVOURED = ("queries", "places")
PRECISIONS = ("auto", "float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class PlacesSpec:
    """Eq. 1: square cells of `cell` metres; groups of N x N interleaved cells, one softmax each.

    rule: other ways to cut the map; `given` takes the places the data set brings, by `column`,
    and squares where photos have no such column; `max_photos` is for the trees, `heading_bins`
    for CosPlace, `tolerance` (degrees) for EigenPlaces' views.  groups_in_use: 0 is all of them.
    """

    cell: float = 20.0
    min_photos: int = 1
    groups: int = 1
    rule: str = "grid"
    max_photos: int = 320
    heading_bins: int = 1
    heading_groups: int = 1
    groups_in_use: int = 0
    tolerance: float = 45.0
    column: str = "place"

    def __post_init__(self) -> None:
        check_settings("places", PlacesSpec, vars(self))
        _known(self, "rule", RULES)


@dataclass(frozen=True)
class LossSpec:
    """A loss by name; every other key of the table is handed to it."""

    name: str = "cross-entropy"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_finite("loss", self.settings)


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

    epochs: int = 10
    batch: int = 64
    lr: float = 1e-4
    lr_classifier: float = 1e-2
    weight_decay: float = 0.0
    sampler: str = "photo"
    views: int = 2
    cached: bool = True
    augment: bool = True
    flip: bool = False
    start: str = "principal"
    seed: int = 0
    steps: int = 0
    photos_per_place: int = 4
    within_city: bool = False
    crop: float = 0.5
    jitter: float = 0.4
    hue: float = 0.0
    randaugment: int = 0
    optimiser: str = "adamw"
    momentum: float = 0.9
    schedule: str = "cosine"
    warmup: float = 0.5
    final: float = 0.0
    factor: float = 0.1
    milestones: tuple[float, ...] = ()
    patience: int = 10
    accumulate: int = 1
    average: float = 0.0
    precision: str = "auto"
    validation: float = 0.0
    refit: bool = True
    checkpoint: float = 300.0
    tensorboard: bool = False
    train_size: Size | None = None
    min_lr: float = 0.0
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
        _known(self, "sampler", SAMPLERS)
        _known(self, "start", ("principal", "random"))
        _known(self, "schedule", SCHEDULES)
        _known(self, "optimiser", OPTIMISERS)
        _known(self, "precision", PRECISIONS)


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

    queries: int = 5000
    negatives: int = 10
    positive: float = 10.0
    negative: float = 25.0
    pool: int = 0
    refresh: int = 1000
    generations: int = 4
    positives: int = 4
    temperatures: tuple[float, ...] = (0.07, 0.07, 0.06, 0.05)
    soft_weight: float = 0.5
    alike: int = 15
    reach: float = 25.0

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
    prototypes: places score by their cosine, or by the raw product, in which a prototype's length
    counts (Divide&Classify).
    verify: candidates that are looked at a second time, by the points their pictures share with
    the query's; 0 looks at none.  features: what finds those points.
    favour: what the learned weights serve: queries as they come, or every place alike.
    """

    shortlist: int = 20
    rerank: str = "l2"
    confidence: str = "mass"
    exact: bool = False
    folds: int = 0
    describer: str | None = None
    prototypes: str = "cosine"
    verify: int = 0
    features: str = "xfeat"
    favour: str = "queries"

    def __post_init__(self) -> None:
        _known(self, "prototypes", PROTOTYPES)
        _known(self, "favour", FAVOURED)
        check_settings("search", SearchSpec, vars(self))
        if self.folds == 1:
            raise SettingError("folds=1 holds nothing out; use 0, or 2 and more")
        if self.describer and self.folds:
            raise SettingError(
                f"folds={self.folds} would tune a ranking by the trained network, and "
                f"{self.describer} ranks; use folds=0"
            )
        if self.describer:
            METHODS.find(self.describer)


def _known(spec: Any, name: str, known: tuple[str, ...]) -> None:
    if getattr(spec, name) not in known:
        raise unknown_name(name, getattr(spec, name), known)
