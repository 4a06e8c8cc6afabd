"""What runs a network: torch on a device.

B batch · H, W pixels · D descriptor
"""

from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.devices import choose_device, choose_precision, lower_precision
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork

Floats = NDArray[np.float32]
# Photos at a time.  On a CPU more than eight push each other's maps out of the cache.
_BATCH = {"cpu": 8, "mps": 32, "cuda": 64}


class Engine(Protocol):
    """One network, ready to describe."""

    @property
    def dim(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the photos it is asked with."""

    @property
    def together(self) -> int | None:
        """How many photos must be described together; None if each is described for itself."""

    @property
    def batch(self) -> int:
        """How many photos at a time suit the device."""

    @property
    def parameters(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def chosen(self) -> str:
        """Where and how it runs, in a few words."""

    def run(self, pixels: NDArray[np.uint8]) -> Floats:
        """(B, 3, H, W) -> unit descriptors (B, D)."""


class TorchEngine:
    """A network on a device, in the precision that suits it."""

    def __init__(
        self, network: PlaceNetwork, device: str = "auto", precision: str = "auto", local: int = 0
    ) -> None:
        self.device = choose_device(device, local)
        self.precision = choose_precision(precision, self.device)
        self.network = network.to(self.device)

    @property
    def dim(self) -> int:
        return self.network.dim

    @property
    def image_size(self) -> tuple[int, int]:
        return self.network.image_size

    @property
    def together(self) -> int | None:
        return self.network.batch

    @property
    def batch(self) -> int:
        return _BATCH[self.device.type]

    @property
    def parameters(self) -> int:
        return sum(weights.numel() for weights in self.network.parameters())

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.network)

    @property
    def chosen(self) -> str:
        return f"torch on {self.device} in {str(self.precision).removeprefix('torch.')}"

    def run(self, pixels: NDArray[np.uint8]) -> Floats:
        photos = torch.from_numpy(pixels)
        if self.device.type == "cuda":
            photos = photos.pin_memory()  # so that the copy need not be waited for
        photos = photos.to(self.device, non_blocking=True)
        with torch.inference_mode(), lower_precision(self.device, self.precision):
            found: Floats = self.network.eval()(photos).float().cpu().numpy()
        return found
