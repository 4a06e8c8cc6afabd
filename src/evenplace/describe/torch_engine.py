"""A network run by torch, on whichever device there is.

B batch · H, W pixels · D descriptor
"""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.devices import choose_device, choose_precision, lower_precision
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork

# Photos at a time.  On a CPU more than eight push each other's maps out of the cache.
_BATCH = {"cpu": 8, "mps": 32, "cuda": 64}


class TorchEngine:
    """A network on a device, in the precision that suits it; see `engines.Engine`.

    compiled: by `torch.compile`, which takes a minute and a C++ compiler, once for each size of
    batch.
    """

    parallel = 1  # torch spreads one batch over the cores by itself

    def __init__(
        self,
        network: PlaceNetwork,
        device: str = "auto",
        precision: str = "auto",
        local: int = 0,
        compiled: bool = False,
    ) -> None:
        self.device = choose_device(device, local)
        self.precision = choose_precision(precision, self.device)
        self.network = network.to(self.device).eval()
        self._describe = torch.compile(self.network) if compiled else self.network
        self.dim, self.image_size, self.together = network.dim, network.image_size, network.batch
        self.batch = _BATCH[self.device.type]
        named = str(self.precision).removeprefix("torch.")
        self.chosen = f"{'compiled ' if compiled else ''}torch on {self.device} in {named}"

    @property
    def parameters(self) -> int:
        return sum(weights.numel() for weights in self.network.parameters())

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.network)

    def run(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        photos = torch.from_numpy(pixels)
        if self.device.type == "cuda":
            photos = photos.pin_memory()  # so that the copy need not be waited for
        photos = photos.to(self.device, non_blocking=True)
        with torch.inference_mode(), lower_precision(self.device, self.precision):
            found: NDArray[np.float32] = self._describe(photos).float().cpu().numpy()
        return found
