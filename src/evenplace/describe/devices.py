"""Where to compute, and in which precision: cuda, then mps, then cpu, unless told."""

from contextlib import AbstractContextManager, nullcontext

import torch

from evenplace.errors import SettingError, unknown_name

DEVICES = ("auto", "cuda", "mps", "cpu")


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

    bfloat16 where the GPU has it, because it needs no scaling of the loss.
    """
    if wanted != "auto":
        return getattr(torch, wanted)  # type: ignore[no-any-return]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


def lower_precision(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Multiply in `dtype` for as long as this lasts; nothing at all for float32."""
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def loss_scaler(device: torch.device, dtype: torch.dtype) -> torch.amp.GradScaler:
    """What keeps small gradients above zero in float16; it does nothing in any other type."""
    return torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
