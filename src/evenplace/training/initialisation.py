"""Where training starts: at the frozen descriptor, with each place at its photos' mean.

A random projection throws away what ImageNet taught and a few epochs on a small city do not
bring it back; starting from the principal axes keeps it, and a prototype at the mean of its
photos is a nearest-mean classifier before the first step.

Clusters, vocabularies and tokens start from photos too.

    N photos, or local features · C places · D descriptor or channels
"""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.arrays import Ints
from evenplace.describe.decoding import load_batches
from evenplace.describe.torch_engine import carry
from evenplace.errors import PhotoError, WeightsError
from evenplace.networks.aggregators import Aggregator
from evenplace.networks.aggregators.base import local_features
from evenplace.networks.methods import METHODS
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.places.table import Places
from evenplace.training.photo_source import PhotoSource
from evenplace.training.recipe import Recipe

_CHUNK = 256
_ENOUGH_FOR_PCA = 20_000
_ENOUGH_FOR_CLUSTERS = 200


def starting_network(recipe: Recipe) -> PlaceNetwork:
    """The recipe's network with pretrained weights; where they cannot be had, what would do."""
    try:
        return build_network(recipe.network, seed=recipe.training.seed)
    except WeightsError as error:
        small = f"{recipe.name.partition('+')[0]}-small"
        if small not in METHODS:
            raise
        raise WeightsError(
            f"{error}; or train {small} (--method {small}), whose weights pip brings"
        ) from None


@torch.no_grad()
def start_from_frozen(network: PlaceNetwork, source: PhotoSource, rows: Ints, labels: Ints) -> None:
    """Set projection and prototypes from the photos.  rows, labels: (N,) photos with a place."""
    network.eval()
    kept, pooled = source.pooled(rows, _CHUNK)  # (n,), (n, channels)
    step = max(1, len(pooled) // _ENOUGH_FOR_PCA)
    network.project_onto_principal_axes(pooled[::step])
    descriptors = F.normalize(network.projection(pooled), dim=1)
    network.classifiers.set_prototypes(
        place_means(descriptors, torch.from_numpy(labels[kept]), network.place_count)
    )


def fit_if_needed(network: PlaceNetwork, source: PhotoSource, rows: Ints) -> None:
    """Clusters and tokens start from photos, whatever else starts at random."""
    if type(network.aggregator).fit is not Aggregator.fit:
        some = rows[:: max(1, len(rows) // _ENOUGH_FOR_CLUSTERS)]
        if not fit_on_maps(network, source.maps(some)):
            raise PhotoError(f"none of {len(some)} photos could be decoded; check the paths")


@torch.no_grad()
def set_place_means(network: PlaceNetwork, source: PhotoSource, rows: Ints, places: Places) -> None:
    """Leave each place at the mean of its photos, where training made no prototypes."""
    found = torch.from_numpy(source.look(rows))
    means = place_means(found, torch.from_numpy(places.labels[rows]), len(places))
    network.classifiers.set_prototypes(means)


def place_means(descriptors: Tensor, labels: Tensor, places: int) -> Tensor:
    """Sum of each place's unit descriptors; only its direction is used.  -> (C, D)."""
    sums = torch.zeros(places, descriptors.shape[1], dtype=descriptors.dtype)
    return sums.index_add_(0, labels, descriptors.cpu())


def fit_aggregator(
    network: PlaceNetwork, paths: Sequence[str], *, per_photo: int = 100, seed: int = 0
) -> None:
    """Start NetVLAD's clusters, AnyLoc's vocabulary or ImAge's tokens from these photos.

    The others have nothing to start and stay as they are.  AnyLoc must be fitted, or given its
    published vocabulary, before it means anything.
    """
    batches = (batch for batch in load_batches(paths, network.image_size) if batch.rows)
    pixels = (carry(torch.from_numpy(batch.pixels), network.anchor) for batch in batches)
    trunk = (network.backbone.trunk(one) for one in pixels)
    if not fit_on_maps(network, trunk, per_photo=per_photo, seed=seed):
        raise PhotoError(f"none of the {len(paths)} photos could be decoded; check the paths")


@torch.no_grad()
def fit_on_maps(
    network: PlaceNetwork, trunk: Iterable[Tensor], *, per_photo: int = 100, seed: int = 0
) -> int:
    """The same from the trunk's output; draws `per_photo` local features of each photo.

    Returns how many photos there were.
    """
    network.eval()
    generator = torch.Generator().manual_seed(seed)
    drawn: list[Tensor] = []
    for maps in trunk:
        for photo in local_features(network.backbone.features(maps)):  # (h·w, D)
            chosen = torch.randperm(len(photo), generator=generator)[:per_photo]
            drawn.append(photo[chosen].cpu())
    if drawn:
        network.aggregator.fit(torch.cat(drawn), seed=seed)
    return len(drawn)
