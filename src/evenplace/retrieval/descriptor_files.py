"""Descriptors that others computed: .npy files, and HDF5 as hloc writes it.

N photos · D descriptor
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.table import Photos

_DATASET = "global_descriptor"


class HdfDescriptors:
    """Rows of an hloc file of global features: a group a photo, named by its path.

    A photo is looked up by its path and by the ends of its path, so that photos read from
    `town/database` find features that hloc named below `town`.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        import h5py

        self.path, self._file = path, h5py.File(path, "r")
        self._names = [self._find(name) for name in names]
        first = self._file[self._names[0]][_DATASET] if self._names else np.empty(0)
        self.shape = (len(self._names), int(np.prod(first.shape)))

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        wanted = np.arange(len(self._names))[rows]
        found = [np.asarray(self._file[self._names[row]][_DATASET]).ravel() for row in wanted]
        return np.stack(found).astype(np.float32)

    def _find(self, name: str) -> str:
        parts = Path(name).parts
        for start in range(len(parts)):
            key = "/".join(parts[start:]).lstrip("/")
            if key in self._file and _DATASET in self._file[key]:
                return key
        raise IndexFileError(
            f"{self.path} has no {_DATASET} for {name}; extract it, or leave the photo out"
        )


def read_descriptor(path: str | Path) -> NDArray[np.float32]:
    """The descriptor of one photo, kept in a .npy file.  -> (D,)."""
    found = read_descriptors(path, Photos.from_arrays(east=[0.0], north=[0.0]))
    if found.size != max(found.shape):
        raise IndexFileError(f"{path} has shape {found.shape}; keep the descriptor of one photo")
    return np.array(found, np.float32).ravel()


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
        if path.suffix in (".h5", ".hdf5"):
            return HdfDescriptors(path, photos.paths)
    except (ValueError, OSError) as cause:
        raise IndexFileError(f"{path} cannot be read ({cause}); write it again") from cause
    raise IndexFileError(f"{path} is neither .npy nor .h5; convert it to one of them")
