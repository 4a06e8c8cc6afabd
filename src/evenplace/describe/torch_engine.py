"""A network run by torch: where, cuda, then mps, then cpu, unless told, and in which precision.

B batch · H, W pixels · D descriptor
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import torch
from torch import Tensor

from evenplace.arrays import Bytes, Floats
from evenplace.errors import SettingError, unknown_name
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork

DEVICES = ("auto", "cuda", "mps", "cpu")
# Photos at a time.  On a CPU more than eight push each other's maps out of the cache.
_BATCH = {"cpu": 8, "mps": 32, "cuda": 64}


def choose_device(name: str = "auto", local_rank: int = 0) -> torch.device:
    """The device of a name; `auto` takes the fastest there is.  Each rank of a machine has its own.

    A name may carry a number, as torch's do: cuda:1.
    """
    kind, _, number = name.partition(":")
    if kind not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind == "auto":
        kind = next((one for one, found in there.items() if found), "cpu")
    elif not there.get(kind, True):
        found = ", ".join(["cpu", *(one for one, here in there.items() if here)])
        raise SettingError(f"torch finds no {kind} here; use one of {found}")
    if kind == "cuda":
        return torch.device("cuda", int(number) if number else local_rank)
    return torch.device(kind)


def choose_precision(wanted: str, device: torch.device) -> torch.dtype:
    """The type to multiply in: half on a GPU, where it is several times faster, float32 on a CPU.

    bfloat16 where the GPU has it, because it needs no scaling of the loss.  float64 tells a
    mistake from rounding: two ways to compute the same agree in it to nine digits.
    """
    if wanted == "float64" and device.type == "mps":
        raise SettingError("precision=float64 is not to be had on mps; use --device cpu")
    if wanted != "auto":
        return getattr(torch, wanted)  # type: ignore[no-any-return]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


def lower_precision(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Multiply in `dtype` for as long as this lasts; nothing where weights have that type."""
    if dtype in (torch.float32, torch.float64):
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def weight_type(dtype: torch.dtype) -> torch.dtype:
    """The type weights are kept in while training multiplies in `dtype`."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def carry(tensor: Tensor, to: Tensor) -> Tensor:
    """Bring numbers to where `to` is, in its type; whole numbers keep theirs.

    To a GPU from pinned memory, without waiting: the copy runs beside the step before it.
    """
    if to.device.type == "cuda":
        tensor = tensor.pin_memory()
    dtype = to.dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.to(to.device, dtype, non_blocking=to.device.type == "cuda")


def loss_scaler(device: torch.device, dtype: torch.dtype) -> torch.amp.GradScaler:
    """What keeps small gradients above zero in float16; it does nothing in any other type."""
    return torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)


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
        self.parameters = sum(weights.numel() for weights in network.parameters())
        named = str(self.precision).removeprefix("torch.")
        self.chosen = f"{'compiled ' if compiled else ''}torch on {self.device} in {named}"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.network)

    def run(self, pixels: Bytes) -> Floats:
        photos = torch.from_numpy(pixels)
        if self.device.type == "cuda":
            photos = photos.pin_memory()  # so that the copy need not be waited for
        photos = photos.to(self.device, non_blocking=True)
        with torch.inference_mode(), lower_precision(self.device, self.precision):
            found: Floats = self._describe(photos).float().cpu().numpy()
        return found
