"""What every aggregator is."""

from torch import Tensor, nn

from evenplace.networks.backbone import Features


class Aggregator(nn.Module):
    """Local features → one vector a photo.

    dim: length of that vector.  batch: how many photos must be described together, where a
    photo's vector depends on the others; None for everything else.
    """

    dim: int
    batch: int | None = None

    def forward(self, features: Features) -> Tensor:
        """(B, dim)."""
        raise NotImplementedError

    def prompts(self) -> Tensor | None:
        """Tokens that join the photo's own at the backbone's cut.  (1, Q, D)."""
        return None

    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Start from data.  locals_: (N, D) local features.  Nothing to do for most."""


def local_features(features: Features) -> Tensor:
    """The map as a bag of vectors.  -> (B, h·w, D)."""
    return features.maps.flatten(2).transpose(1, 2)
