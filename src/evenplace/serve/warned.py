"""What decoders warn about: counted, never printed, because a stranger chooses the words.

A crafted EXIF block makes Pillow warn thousands of times, each time with other words, which the
warnings module prints and remembers for good.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import PIL

_DECODERS = str(Path(PIL.__file__).parent)


@contextmanager
def count_warnings(count: Callable[[], None]) -> Iterator[None]:
    """Count Pillow's warnings for as long as the context lasts; others are shown as ever."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", module=r"PIL\.")  # "default" remembers every text
        shown = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if filename.startswith(_DECODERS):
                count()
            else:
                shown(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
