"""Tables of tensors as our own files: written whole, with a checksum that reading compares."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, uint8

from evenplace.errors import RunError
from evenplace.photos.files import because, whole_file

ABOUT = "evenplace"  # one entry of the header, so that the same tensors give the same bytes


@dataclass(frozen=True)
class TensorFile:
    """What a file held: tensors by name, on the CPU, and what was said about them."""

    tensors: dict[str, Tensor]
    about: dict[str, Any]


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None
) -> None:
    """Write one file, whole or not at all, and wait until the disk has it."""
    plain = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    header = {**(about or {}), "sha256": _digest(plain, about or {})}
    with whole_file(path, RunError) as draft:
        try:
            save_file(plain, draft, metadata={ABOUT: json.dumps(header)})
        except SafetensorError as cause:  # its own words for a full or forbidden disk
            reason = because(OSError(_number(str(cause)), str(cause)))
            raise RunError(f"could not write {path}: {reason}") from None


def read_tensors(path: Path, remedy: str) -> TensorFile:
    """Read a file of ours; refuse a damaged one in one sentence that ends with the remedy."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(ABOUT, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise RunError(f"{path} does not exist; {remedy}") from None
    except (SafetensorError, ValueError, OSError) as cause:
        raise RunError(f"{path} is damaged ({_first_line(cause)}); {remedy}") from None
    if "sha256" in about and about.pop("sha256") != _digest(tensors, about):
        raise RunError(f"{path} is damaged (its checksum does not match); {remedy}")
    return TensorFile(tensors, about)


def _digest(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        found.update(tensors[name].flatten().view(uint8).numpy().data)
    return found.hexdigest()


def _number(text: str) -> int:
    """The operating system's number for an error, out of "… (os error 28)"."""
    _, _, rest = text.rpartition("os error ")
    digits = rest.rstrip(")} \"'")
    return int(digits) if digits.isdigit() else 0


def _first_line(cause: Exception) -> str:
    return (str(cause) or type(cause).__name__).splitlines()[0]
