"""A drawn town with a long tail: streets and facades in 3-D, surveyed unevenly, asked about evenly.

plan, buildings         where streets and buildings are, and what they look like
canvas, facade, openings   walls drawn once, as textures
light, shading, ground, sprites, things   a day, and what stands in the street
camera, walls, render   one photo in true perspective
survey, draw            which photos, their names, all of them on disk
"""

from evenplace.city.draw import CityReport, draw_city

__all__ = ["CityReport", "draw_city"]
