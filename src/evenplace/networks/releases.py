"""Weights their authors published: where they are, and how to have them on this machine.

A file is looked for in `$EVENPLACE_WEIGHTS`, by default `~/.cache/evenplace/weights`; what is
not there is fetched, its SHA-256 compared with the known one, and only then given its name.
Where nobody published a checksum, the first one seen is written beside the file and every
later use must match it.
"""

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenplace.errors import WeightsError, unknown_name

Progress = Callable[[int, int], None]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Release:
    """A published file.  sha256: whole, or the leading digits its publisher put in its name."""

    url: str
    sha256: str = ""
    by_hand: bool = False  # behind a page that must be clicked

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]


_TORCH = "https://download.pytorch.org/models/"
_DINO = "https://dl.fbaipublicfiles.com/dinov2/"
_GITHUB = "https://github.com/"
_DRIVE = "https://drive.google.com/file/d/"


def _torchvision(name: str) -> Release:
    return Release(f"{_TORCH}{name}.pth", sha256=name.rsplit("-", 1)[1])


def _dinov2(letter: str, registers: str = "", sha256: str = "") -> Release:
    folder = f"dinov2_vit{letter}14"
    return Release(f"{_DINO}{folder}/{folder}{registers}_pretrain.pth", sha256)


RELEASES: dict[str, Release] = {
    "resnet18": _torchvision("resnet18-f37072fd"),
    "resnet50": _torchvision("resnet50-0676ba61"),
    "resnet101": _torchvision("resnet101-63fe2227"),
    "resnet152": _torchvision("resnet152-394f9c45"),
    "vgg16": _torchvision("vgg16-397923af"),
    "efficientnet-b0": _torchvision("efficientnet_b0_rwightman-7f5810bc"),
    "efficientnet-b1": _torchvision("efficientnet_b1_rwightman-bac287d4"),
    "efficientnet-b2": _torchvision("efficientnet_b2_rwightman-c35c1473"),
    "efficientnet-b3": _torchvision("efficientnet_b3_rwightman-b3899882"),
    "efficientnet-b4": _torchvision("efficientnet_b4_rwightman-23ab8bcd"),
    "efficientnet-b5": _torchvision("efficientnet_b5_lukemelas-1a07897c"),
    "efficientnet-b6": _torchvision("efficientnet_b6_lukemelas-24a108a5"),
    "efficientnet-b7": _torchvision("efficientnet_b7_lukemelas-c5b4e57e"),
    "dinov2-small": _dinov2(
        "s", sha256="b938bf1bc15cd2ec0feacfe3a1bb553fe8ea9ca46a7e1d8d00217f29aef60cd9"
    ),
    "dinov2-base": _dinov2(
        "b", sha256="0b8b82f85de91b424aded121c7e1dcc2b7bc6d0adeea651bf73a13307fad8c73"
    ),
    "dinov2-large": _dinov2(
        "l", sha256="d5383ea8f4877b2472eb973e0fd72d557c7da5d3611bd527ceeb1d7162cbf428"
    ),
    "dinov2-giant": _dinov2("g"),
    "dinov2-small-reg": _dinov2("s", "_reg4"),
    "dinov2-base-reg": _dinov2("b", "_reg4"),
    "dinov2-large-reg": _dinov2("l", "_reg4"),
    "dinov2-giant-reg": _dinov2("g", "_reg4"),
    "salad": Release(
        f"{_GITHUB}serizba/salad/releases/download/v1.0.0/dino_salad.ckpt",
        "6b3f1720954293e83da6966c5cfcfc6713200d7fefadcca76fc51aeb80b3cada",
    ),
    "boq-dinov2": Release(
        f"{_GITHUB}amaralibey/Bag-of-Queries/releases/download/v1.0/dinov2_12288.pth"
    ),
    "boq-resnet50": Release(
        f"{_GITHUB}amaralibey/Bag-of-Queries/releases/download/v1.0/resnet50_16384.pth"
    ),
    "megaloc": Release("https://huggingface.co/gberton/MegaLoc/resolve/main/model.safetensors"),
    "cricavpr": Release(f"{_GITHUB}Lu-Feng/CricaVPR/releases/download/v1.0/CricaVPR.pth"),
    "image": Release(f"{_GITHUB}Lu-Feng/ImAge/releases/download/v1.0.0/ImAge_Merged.pth"),
    "sfrs": Release(f"{_GITHUB}yxgeee/OpenIBL/releases/download/v0.1.0-beta/vgg16_netvlad.pth"),
    "netvlad": Release("https://cvg-data.inf.ethz.ch/hloc/netvlad/Pitts30K_struct.mat"),
    "dc": Release(f"{_DRIVE}19XOV8AIHQE05I1rVeedtGZjU4hpiNFh0", by_hand=True),
    "cliquemining": Release(f"{_DRIVE}1B06ysb-Wjb4KDcNrl-7pyj1mJve1jqdk", by_hand=True),
}


def cosplace_release(system: str, backbone: str, dim: int) -> Release:
    """CosPlace's and EigenPlaces's files, one a backbone and dimension."""
    names = {"vgg16": "VGG16", "resnet18": "ResNet18", "resnet50": "ResNet50"}
    names |= {"resnet101": "ResNet101", "resnet152": "ResNet152"}
    owner = {"cosplace": "gmberton/CosPlace", "eigenplaces": "gmberton/EigenPlaces"}[system]
    if backbone not in names:
        raise unknown_name(f"backbone with {system} weights", backbone, names)
    file = f"{names[backbone]}_{dim}_{system}.pth"
    return Release(f"{_GITHUB}{owner}/releases/download/v1.0/{file}")


def weights_folder() -> Path:
    """Where weight files are kept."""
    chosen = os.environ.get("EVENPLACE_WEIGHTS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "evenplace" / "weights"


def fetch(release: str | Release, *, name: str = "", progress: Progress | None = None) -> Path:
    """The path of a published file, fetched and checked if it is not on this machine yet."""
    if isinstance(release, str):
        if release not in RELEASES:
            raise unknown_name("release", release, RELEASES)
        name, release = release, RELEASES[release]
    path = weights_folder() / name / release.file
    if not path.exists():
        _download(release, path, progress)
    _check(release, path)
    return path


def _download(release: Release, path: Path, progress: Progress | None) -> None:
    remedy = f"put the file from {release.url} at {path}"
    if release.by_hand:
        raise WeightsError(f"{path.name} can only be fetched through a browser; {remedy}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with urllib.request.urlopen(release.url, timeout=30) as answer, partial.open("wb") as file:
            _copy(answer, file, progress)
        partial.replace(path)
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise WeightsError(f"{release.file} cannot be fetched ({reason}); {remedy}") from None
    finally:
        partial.unlink(missing_ok=True)


def _copy(answer: Any, file: Any, progress: Progress | None) -> None:
    total, done = int(answer.headers.get("Content-Length") or 0), 0
    while block := answer.read(_CHUNK):
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)


def _check(release: Release, path: Path) -> None:
    note = path.with_name(path.name + ".sha256")
    known = release.sha256 or (note.read_text().strip() if note.exists() else "")
    if note.exists() and note.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        found = note.read_text().strip()
    else:
        found = _digest(path)
    if known and not found.startswith(known):
        raise WeightsError(
            f"{path} has SHA-256 {found[:16]}…, not {known[:16]}…; delete it and fetch it again"
        )
    if not note.exists():
        note.write_text(found + "\n")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
