"""What a backbone hands to an aggregator.

B batch · D channels · h, w cells of the feature map · E class token and registers · Q prompts
"""

from dataclasses import dataclass

from torch import Tensor

from evenplace.errors import SettingError


@dataclass(frozen=True)
class Features:
    """A photo as a map of local features, and, from a transformer, the tokens beside the map."""

    maps: Tensor  # (B, D, h, w)
    tokens: Tensor | None = None  # (B, E, D), the class token first
    prompts: Tensor | None = None  # (B, Q, D)

    @property
    def class_token(self) -> Tensor:
        """(B, D)."""
        if self.tokens is None:
            raise SettingError(
                "this aggregator reads the class token of a transformer, and a convolutional "
                "network has none; use a dinov2 backbone"
            )
        return self.tokens[:, 0]
