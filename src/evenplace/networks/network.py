"""A photo's way to its descriptor, and a descriptor's way to the places.

B batch · C places · D descriptor · A aggregate · N photos
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators import AGGREGATORS, Request
from evenplace.networks.build_backbone import Backbone, build_backbone
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.networks.methods import NetworkSpec
from evenplace.photos.pictures import height_width

_LONG = 4096  # beyond this a whole eigendecomposition takes minutes


class PlaceNetwork(nn.Module):
    """Backbone → aggregator → projection, if any → unit descriptor, and a prototype a place.

    The classifiers are there once the places are known (`attach_places`).
    """

    def __init__(self, backbone: Backbone, spec: NetworkSpec) -> None:
        super().__init__()
        if not 1 <= spec.dim <= 2**17:
            raise SettingError(f"dim={spec.dim} is no descriptor; use 64 to 2048")
        self.spec = spec
        self.backbone = backbone
        entry = AGGREGATORS.find(spec.aggregator)
        self.aggregator = entry.build(
            Request(backbone.spec.channels, spec.dim, self._cells(), spec.power)
        )
        self.projection: nn.Module = nn.Identity()
        if spec.projection and (entry.projected or self.aggregator.dim != spec.dim):
            self.projection = nn.Linear(self.aggregator.dim, spec.dim)
        elif self.aggregator.dim != spec.dim:
            raise SettingError(
                f"projection=false leaves the {self.aggregator.dim} numbers of {spec.aggregator}, "
                f"not dim={spec.dim}; use dim={self.aggregator.dim}, or projection=true"
            )
        self.classifiers: GroupClassifiers | LevelClassifiers = GroupClassifiers([], spec.dim)
        self.scale = 30.0  # what turns cosines to prototypes into logits; training sets its own

    @property
    def dim(self) -> int:
        return self.spec.dim

    @property
    def device(self) -> torch.device:
        """Where photos have to be for the backbone to see them."""
        return self.anchor.device

    @property
    def anchor(self) -> Tensor:
        """A tensor whose device and type are the network's own."""
        return self.backbone.mean

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the photos it is asked with."""
        return height_width(self.spec.image_size or self.backbone.spec.input_size)

    @property
    def batch(self) -> int | None:
        """How many photos must be described together; None if each is described for itself."""
        return self.aggregator.batch

    @property
    def place_count(self) -> int:
        return self.classifiers.place_count

    def forward(self, photos: Tensor) -> Tensor:
        """photos: (B, 3, H, W) uint8 -> unit descriptors (B, D)."""
        return self.describe(self.backbone.trunk(photos))

    def describe(self, maps: Tensor) -> Tensor:
        """Unit descriptors from the trunk's output, or from what was `pooled` of it before.

        Either may come from a cache.  maps: (B, D, h, w) or (B, A).
        """
        pooled = maps if maps.dim() == 2 else self.pooled(maps)
        return F.normalize(self.projection(pooled), dim=1)

    def pooled(self, maps: Tensor) -> Tensor:
        """What the projection sees.  -> (B, A)."""
        features = self.backbone.features(maps, self.aggregator.prompts())
        pooled: Tensor = self.aggregator(features)
        return pooled

    def attach_places(self, groups: Tensor) -> None:
        """Give each place a prototype.  groups: (C,) the softmax group of each place."""
        self.classifiers = GroupClassifiers(groups, self.dim).to(self.anchor)

    def attach_levels(self, parents: Tensor, combine: str) -> None:
        """Give each class of each level a prototype.  parents: (L, C) the classes of each place."""
        self.classifiers = LevelClassifiers(parents, self.dim, combine).to(self.anchor)

    @torch.no_grad()
    def project_onto_principal_axes(self, pooled: Tensor, *, whiten: float = 0.5) -> None:
        """Start the projection at the frozen features' principal axes.

        Each axis is divided by its standard deviation to the power `whiten`: 0 is PCA, where a
        few axes shared by all streets drown the rest; 1 is whitening, where noise counts as much
        as signal (NetVLAD's 4096 numbers); a half lies between.
        A network without a projection is left as it is.  pooled: (N, A).
        """
        if not isinstance(self.projection, nn.Linear):
            return
        pooled = pooled.cpu()  # in double precision, which not every device has
        mean = pooled.mean(dim=0)
        centred = (pooled - mean).double()
        spread, axes = _principal(centred, self.dim)  # (A,) or fewer, (A, the same)
        rank = min(self.dim, int((spread > spread[0] * 1e-4).sum()))
        weight = axes.T[:rank] / (spread[:rank, None] / spread[0]) ** whiten
        weight /= (centred @ weight.T).norm(dim=1).mean()
        self.projection.weight.zero_()
        self.projection.weight[:rank] = weight
        own = self.projection.weight
        self.projection.bias.copy_(-(own @ mean.to(own.device)))

    def _cells(self) -> int:
        """How many cells the feature map has at this network's input size."""
        spec, size = self.backbone.spec, self.image_size
        if any(side % spec.patch for side in size):
            fitting = [max(1, round(side / spec.patch)) * spec.patch for side in size]
            raise SettingError(
                f"image_size={self.spec.image_size} does not divide into patches of {spec.patch}; "
                f"use {fitting[0] if fitting[0] == fitting[1] else fitting}"
            )
        return spec.cells(size)


def _principal(centred: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
    """Standard deviations along the principal axes, and the axes, largest first.

    Of very long vectors only the first few hundred axes are looked for, at random; of fewer
    photos than numbers, those that the photos span.
    """
    photos, length = centred.shape
    if length > _LONG:
        kept = min(wanted, photos, length)
        _, values, axes = torch.svd_lowrank(centred.float(), q=kept, niter=3)
        return values.double() / photos**0.5, axes.double()
    if photos < length:
        variance, own = torch.linalg.eigh(centred @ centred.T / photos)  # ascending
        spread = variance.flip(0).clamp(min=1e-30).sqrt()
        return spread, centred.T @ own.flip(1) / (spread * photos**0.5)
    variance, axes = torch.linalg.eigh(centred.T @ centred / photos)
    return variance.flip(0).clamp(min=0).sqrt(), axes.flip(1)


def build_network(
    spec: NetworkSpec, weights: str | None = "imagenet", *, seed: int = 0
) -> PlaceNetwork:
    """Build a network from its parts, with pretrained weights in the backbone unless None.

    seed: of all that starts at random, the same in every process.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        backbone = build_backbone(
            spec.backbone, cut=spec.cut, layer=spec.layer, facet=spec.facet, weights=weights
        )
        return PlaceNetwork(backbone, spec)
