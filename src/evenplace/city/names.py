"""File names that say where a photo was taken, in the layout of SF-XL."""

import utm

from evenplace.city.survey import ORIGIN, Shot

ZONE, LETTER = 31, "N"


def photo_name(shot: Shot) -> str:
    """Name a photo by where, when and how it was taken.

    `@east@north@zone@letter@lat@lon@id@tile@heading@pitch@roll@height@date@note@.jpg`

    Position, heading, pitch, height and date are the picture's own; roll is always 0.
    """
    camera = shot.camera
    east, north = camera.east + ORIGIN[0], camera.north + ORIGIN[1]
    latitude, longitude = utm.to_latlon(east, north, ZONE, LETTER)
    fields = [
        f"{east:010.2f}",
        f"{north:010.2f}",
        f"{ZONE:02d}",
        LETTER,
        f"{latitude:09.5f}",
        f"{longitude:010.5f}",
        shot.name,
        "00",
        f"{round(camera.heading) % 360:03d}",
        f"{round(camera.pitch):03d}",
        "000",
        f"{camera.height:.1f}",
        shot.day.date,
        shot.day.note,
    ]
    return "@" + "@".join(fields) + "@.jpg"
