"""Two networks that answer together: the classifier finds places, the describer ranks their photos.

B batch · H, W pixels · D the classifier's descriptor · E the describer's
"""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from evenplace.networks.network import NetworkSpec, PlaceNetwork


class PairedNetwork(nn.Module):
    """A photo is decoded once, at the larger input size, and resized for the other network."""

    def __init__(self, classifier: PlaceNetwork, describer: PlaceNetwork) -> None:
        super().__init__()
        self.classifier, self.describer = classifier, describer

    @property
    def spec(self) -> tuple[NetworkSpec, NetworkSpec]:
        return self.classifier.spec, self.describer.spec

    @property
    def dim(self) -> int:
        return self.classifier.dim + self.describer.dim

    @property
    def device(self) -> torch.device:
        return self.classifier.device

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width, each the larger of the two networks'."""
        sizes = self.classifier.image_size, self.describer.image_size
        return max(size[0] for size in sizes), max(size[1] for size in sizes)

    @property
    def batch(self) -> int | None:
        """How many photos must be described together; None if each is described for itself."""
        return self.describer.batch or self.classifier.batch

    def split(self, descriptors: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """The classifier's descriptors and the describer's.  (B, D + E) -> (B, D), (B, E)."""
        return np.split(descriptors, [self.classifier.dim], axis=1)

    def forward(self, photos: Tensor) -> Tensor:
        """Two unit descriptors side by side.  (B, 3, H, W) uint8 -> (B, D + E)."""
        seen = [net(resized(photos, net.image_size)) for net in (self.classifier, self.describer)]
        return torch.cat(seen, dim=1)


Describing = PlaceNetwork | PairedNetwork


def resized(photos: Tensor, size: tuple[int, int]) -> Tensor:
    """Photos at another size, by the filter that loading resizes with.  uint8 -> uint8."""
    if photos.shape[-2:] == size:
        return photos
    shrunk = F.interpolate(photos.float(), size, mode="bicubic", antialias=True)
    return shrunk.round().clamp(0, 255).byte()
