"""A recipe's [places] → the map cut into places."""

from dataclasses import fields

from evenplace.photos.table import Photos
from evenplace.places import Given, Grid, Intersection, KdTree, Places, Quadtree
from evenplace.training.specs import PlacesSpec

_LEVELS = (5, 2, 1)  # HGE: at most 5000, 2000 and 1000 photos a cell


def cut_places(spec: PlacesSpec, photos: Photos) -> Places:
    """Cut the map where the photos are, as the recipe says.

    hierarchy: HGE's nested quadtrees; the places are the finest cells, and `extra["level_0"]` …
    say which coarser ones hold each.  intersection: CPlaNet's; places are where the cells of a
    kd-tree, a quadtree and a grid meet.  focal-grid: EigenPlaces' cells; its two views are cut
    while training.  given: the data set's own places; squares where it has none.
    """
    if spec.rule == "given" and spec.column in photos.table.column_names:
        return Given(spec.column, spec.min_photos).partition(photos)
    if spec.rule == "kd-tree":
        return KdTree(spec.max_photos, spec.min_photos).partition(photos)
    if spec.rule == "quadtree":
        return Quadtree(spec.max_photos, spec.min_photos).partition(photos)
    if spec.rule == "hierarchy":
        rule = Quadtree(spec.max_photos, spec.min_photos)
        return rule.hierarchy(photos, [times * spec.max_photos for times in _LEVELS])
    if spec.rule == "intersection":
        coarse = (KdTree(spec.max_photos), Quadtree(spec.max_photos), Grid(spec.cell))
        return Intersection(coarse, spec.min_photos).partition(photos)
    return _grid(spec).partition(photos)


def spec_of(places: Places) -> PlacesSpec:
    """The [places] of a recipe for places that were cut without one."""
    about = {"rule": places.rule.name, **places.rule.settings()}
    known = [one.name for one in fields(PlacesSpec) if about.get(one.name) is not None]
    return PlacesSpec(**{name: type(getattr(PlacesSpec, name))(about[name]) for name in known})


def _grid(spec: PlacesSpec) -> Grid:
    return Grid(
        spec.cell,
        spec.min_photos,
        spec.groups,
        heading_bins=spec.heading_bins,
        heading_groups=spec.heading_groups,
        groups_in_use=spec.groups_in_use or None,
    )
