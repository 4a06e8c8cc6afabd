"""One file, one photo: paths that are written differently and mean the same file."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenplace.arrays import Ints
from evenplace.photos.table import Photos

_ODD = r"//|(^|/)\.\.?(/|$)"  # ./a, a/../b, a//b


def canonical(paths: pa.ChunkedArray) -> pa.Array:
    """Paths that are equal if and only if they name the same file from here; links are not read.

    Paths that are all of one kind, as a data set's are, stay as they are: a million cost nothing.
    """
    whole = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    rooted = pc.starts_with(whole, os.sep)
    odd = pc.match_substring_regex(whole, _ODD)
    mixed = pc.any(rooted).as_py() and not pc.all(rooted).as_py()
    if mixed or pc.any(odd).as_py():
        odd = pc.or_(odd, pc.invert(rooted))
    if not pc.any(odd).as_py():
        return whole
    here = Path.cwd()
    spelt = [os.path.normpath(here / one) for one in whole.filter(odd).to_pylist()]
    return pc.replace_with_mask(whole, odd, pa.array(spelt, whole.type))


def first_of_each(photos: Photos) -> Ints:
    """Rows of the photos, each file once: where it came first."""
    if "path" not in photos.table.column_names:
        return np.arange(len(photos))
    names = canonical(photos.table.column("path"))
    table = pa.table({"name": names, "row": np.arange(len(photos))})
    first = table.group_by("name").aggregate([("row", "min")])
    return np.sort(first.column("row_min").to_numpy())
