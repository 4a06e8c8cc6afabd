"""A zip of photos, unpacked once into a folder beside it, where its photos stay."""

import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path

from evenplace.errors import PhotoError
from evenplace.photos.files import because

_OURS = ".unpacked"  # in a folder that was made of an archive, and may be made anew


def is_archive(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".zip" and Path(path).is_file()


def unpacked(archive: Path) -> Path:
    """The folder of an archive's files, NAME.zip → NAME.unzipped; made if it is not there.

    Whole or not at all: it is unpacked under another name first.  An archive newer than its
    folder is unpacked again.
    """
    folder = archive.with_suffix(".unzipped")
    if folder.is_dir() and folder.stat().st_mtime >= archive.stat().st_mtime:
        return folder
    if folder.exists() and not (folder / _OURS).exists():
        raise PhotoError(f"{folder} is in the way of {archive}; rename one of them")
    try:
        with zipfile.ZipFile(archive) as files:
            wanted = sum(one.file_size for one in files.infolist())
            free = shutil.disk_usage(archive.parent).free
            if wanted > free:
                raise PhotoError(
                    f"{archive} unpacks to {wanted / 1e9:,.1f} GB and {free / 1e9:,.1f} GB are "
                    "free; make room, or unpack a part of it by hand"
                )
            draft = Path(tempfile.mkdtemp(dir=archive.parent, prefix=f".{archive.stem}."))
            try:
                files.extractall(draft)
                (draft / _OURS).touch()
                shutil.rmtree(folder, ignore_errors=True)
                draft.chmod(0o755)
                draft.touch()
                draft.replace(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as cause:
        raise PhotoError(f"{archive} cannot be unpacked ({cause}); make it again") from cause
    except OSError as cause:
        raise PhotoError(f"could not unpack {archive}: {because(cause)}") from cause
    return folder
