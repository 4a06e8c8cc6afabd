"""What was taken, and where."""

from evenplace.photos.pictures import open_picture
from evenplace.photos.read import read_photos
from evenplace.photos.table import Photos, Skipped, join_photos

__all__ = ["Photos", "Skipped", "join_photos", "open_picture", "read_photos"]
