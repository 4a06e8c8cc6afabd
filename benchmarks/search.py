"""Search at a city's size: speed, memory, growth, updates; the claims of docs/deploy.md.

    python -m benchmarks.search [--photos 2800000] [--growth 10000000] [--only PART] [--check]

    build      a file of descriptors to an index
    spectra    the same with spectra of all places for CFD
    open       seconds and memory of a process that opens it and answers
    query      one query by every rule, 64 at once, what the shortlist loses
    cfd        the cost of CFD over L2, on 200,000 photos
    flat       against faiss IndexFlatL2 on the same vectors in the same run
    growth     100,000 and --growth photos at the same density
    updates    16 threads ask while a writer changes the index
    kills      kill -9 at 200 random moments of builds and updates
    impostors  the impostor term of a large index against all pairs
    update     seconds to add one photo in a hundred
    exact      exact evaluation of 1,000 × 1,000,000 × 512 within 2 GB, beside faiss
    bytes      what 8,448 numbers lose in 512 bytes

Vectors are drawn (`search_town.py`).  With --folder, vectors and indexes stay there for the next
part; --draw makes them and measures nothing.  Each part renews its section of
benchmarks/results/search.md; with --check, exits 1 unless the figures of the issue are reached.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import search_parts as parts
from benchmarks import search_size as size
from benchmarks.search_table import Cell, write_section
from benchmarks.search_updates import kills, updates


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--photos", type=int, default=2_800_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--growth", type=int, default=10_000_000, metavar="PHOTOS")
    parser.add_argument("--growth-dim", type=int, default=768)
    parser.add_argument("--only", metavar="PART", help="one of the parts above")
    parser.add_argument("--folder", type=Path, help="keep vectors and indexes here")
    parser.add_argument("--draw", action="store_true", help="make the files of --only, no more")
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare:
        folder = wanted.folder or Path(spare)
        city = parts.City(wanted.photos, wanted.dim, folder)
        small = parts.City(100_000, wanted.growth_dim, folder)
        large = parts.City(wanted.growth, wanted.growth_dim, folder)
        known: dict[str, Callable[[], list[Cell]]] = {
            "build": lambda: parts.build(city),
            "spectra": lambda: parts.spectra(city),
            "open": lambda: parts.opening(city),
            "query": lambda: parts.query(city),
            "cfd": lambda: parts.cfd(parts.City(200_000, wanted.dim, folder)),
            "flat": lambda: parts.flat(city),
            "growth": lambda: parts.growth(small, large),
            "updates": lambda: updates(folder),
            "kills": lambda: kills(folder),
            "impostors": lambda: parts.impostors(folder),
            "update": lambda: size.update(city),
            "exact": lambda: size.exact(folder),
            "bytes": lambda: size.fewer_bytes(folder),
        }
        if wanted.only and wanted.only not in known:
            parser.error(f"--only {wanted.only} is none of {', '.join(known)}")
        if wanted.draw:
            for one in (small, large) if wanted.only == "growth" else (city,):
                one.index()
            return 0
        failed = False
        for name in [wanted.only] if wanted.only else known:
            cells = known[name]()
            write_section(name, cells)
            failed |= any(ok is False for *_, ok in cells)
    return int(failed and wanted.check)


if __name__ == "__main__":
    sys.exit(main())
