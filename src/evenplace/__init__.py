"""EvenPlace: find where a photo was taken, on the quiet street as on the busy avenue."""

__version__ = "0.1.0"
