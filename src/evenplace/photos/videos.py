"""Frames of a video, a few a second."""

import os
from collections.abc import Iterator

from PIL import Image

from evenplace.errors import PhotoError

VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v")


def read_frames(path: str, every: float = 1.0) -> Iterator[tuple[float, Image.Image]]:
    """Yield a frame every so many seconds, and the second it is of, turned upright."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # its complaints are not sentences
    import cv2

    film = cv2.VideoCapture(path)
    rate, number, given = film.get(cv2.CAP_PROP_FPS) or 25.0, 0, 0
    try:
        while film.grab():
            second = number / rate
            number += 1
            if second < given * every - 1e-9:
                continue
            good, pixels = film.retrieve()
            if good:
                given += 1
                yield second, Image.fromarray(pixels[:, :, ::-1])
    finally:
        film.release()
    if not given:
        raise PhotoError(
            f"{path} is no video that can be decoded; convert it to MP4 (H.264) or to frames"
        )
