"""Descriptors that others computed: .npy files, HDF5 as hloc writes it, and what Python holds.

N photos · D descriptor
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.table import Photos
from evenplace.retrieval.codec import Descriptors

_DATASET = "global_descriptor"
_HDF = (".h5", ".hdf5")
_NUMBERS = "fiu"  # numpy's kinds of real numbers


class HdfDescriptors:
    """Rows of an hloc file of global features: a group a photo, named by its path.

    A photo is looked up by its path and by the ends of its path, so that photos read from
    `town/database` find features that hloc named below `town`.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        import h5py

        self.path, self._file = path, h5py.File(path, "r")
        self._names = [self._find(name) for name in names]
        self.shape = (len(self._names), self._read(0).size if self._names else 0)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        wanted = np.arange(len(self._names))[rows]
        return np.stack([self._read(row, self.shape[1]) for row in wanted]).astype(np.float32)

    def _read(self, row: int, width: int | None = None) -> NDArray[Any]:
        """One photo's numbers, however many axes they have in the file."""
        found = np.asarray(self._file[self._names[row]][_DATASET]).ravel()
        if found.dtype.kind not in _NUMBERS or found.size != (width or found.size):
            like = f"{width} numbers" if width else "real numbers"
            raise IndexFileError(
                f"{_DATASET} of {self._names[row]} in {self.path} is {found.size} values of "
                f"{found.dtype}, not {like}; extract it again"
            )
        return found

    def _find(self, name: str) -> str:
        parts = Path(name).parts
        for start in range(len(parts)):
            key = "/".join(parts[start:]).lstrip("/")
            if hasattr(self._file.get(f"{key}/{_DATASET}"), "dtype"):
                return key
        raise IndexFileError(
            f"{self.path} has no {_DATASET} for {name}; extract it, or leave the photo out"
        )


def read_descriptor(path: str | Path) -> NDArray[np.float32]:
    """The descriptor of one photo, kept in a .npy file.  -> (D,)."""
    if Path(path).suffix in _HDF:
        raise IndexFileError(f"{path} holds photos by name; keep the descriptor of one as .npy")
    found = read_descriptors(path, Photos.from_arrays(east=[0.0], north=[0.0]))
    return one_descriptor(found, str(path))


def one_descriptor(given: Any, named: str = "what was asked with") -> NDArray[np.float32]:
    """The descriptor of one photo, alone or as a row or column of its own.  -> (D,)."""
    found = as_array(given)
    if not found.shape or found.size != max(found.shape):
        raise IndexFileError(f"{named} has shape {found.shape}; give the descriptor of one photo")
    return np.asarray(given_rows(found.reshape(1, -1))[0], np.float32)


def read_descriptors(path: str | Path, photos: Photos) -> Any:
    """Open descriptors for these photos: (N, D) rows read as they are needed.

    .npy: one row a photo, in the order of the photos; mapped, not read.  .h5, .hdf5: hloc's
    global features, found by path.
    """
    path = Path(path)
    if not path.exists():
        raise IndexFileError(f"{path} does not exist; check the path of the descriptors")
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r")
        if path.suffix in _HDF:
            return HdfDescriptors(path, photos.paths)
    except (ValueError, OSError, EOFError) as cause:
        raise IndexFileError(f"{path} cannot be read ({cause}); write it again") from cause
    raise IndexFileError(f"{path} is neither .npy nor .h5; convert it to one of them")


def as_array(given: Any) -> NDArray[Any]:
    """Numbers that a tensor, a table or a list holds."""
    try:
        if hasattr(given, "detach"):  # a tensor: numpy has no bfloat16, and takes no gradient
            given = given.detach().cpu().float().numpy()
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as cause:
        raise IndexFileError(
            f"descriptors as {type(given).__name__} cannot be read ({cause}); give an array of one "
            "row a photo"
        ) from cause


def in_blocks(given: Any) -> bool:
    """Whether descriptors come as blocks of rows, one after the other."""
    if isinstance(given, list | tuple):
        return bool(given) and np.ndim(given[0]) == 2
    return hasattr(given, "__next__")


def given_rows(given: Any, count: int | None = None, *, width: int | None = None) -> Any:
    """Descriptors as anybody holds them: (N, D) real numbers, read as they are needed.

    Tensors, tables and lists of rows become arrays; arrays, memory maps and what
    `read_descriptors` opens stay as they are.  count, width: how many N and D there must be.
    """
    ours = isinstance(given, np.ndarray | Descriptors)
    if not ours and (hasattr(given, "__array__") or not hasattr(given, "shape")):
        given = as_array(given)
    kind, shape = getattr(given, "dtype", np.dtype(np.float32)), tuple(given.shape)
    if kind.kind not in _NUMBERS:
        raise IndexFileError(f"descriptors are {kind}; give real numbers, one row a photo")
    if len(shape) != 2 or shape[0] != (shape[0] if count is None else count):
        there = "" if count is None else f", but there are {count} photos"
        raise IndexFileError(f"descriptors have shape {shape}{there}; give one row a photo")
    if shape[1] != (width or shape[1]):
        raise IndexFileError(
            f"descriptors have {width} numbers a photo at first and {shape[1]} later; give rows "
            "of one length"
        )
    return given
