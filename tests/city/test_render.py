"""True perspective: pixels computed by hand, steps aside that change the picture as outside."""

import io
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from evenplace.city import facade
from evenplace.city.buildings import Building, Wall, draw_style
from evenplace.city.camera import Camera
from evenplace.city.draw import QUALITY
from evenplace.city.light import query_days, survey_days
from evenplace.city.plan import Street, plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import plan_survey
from evenplace.city.walls import cast, gather_walls

DAY = survey_days()[2]


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(0, 64)


def look(renderer: Renderer, camera: Camera) -> NDArray[np.float64]:
    return np.asarray(renderer.take(camera, DAY), np.float64)


def facing_wall(north: float, west: float, east: float) -> Building:
    """A building with one wall that looks south, from `west` to `east`, at `north`."""
    style = draw_style(np.random.default_rng(0), "street")
    start, end = np.array([west, north]), np.array([east, north])
    return Building(style, (Wall(start, end, "facade"),))


def test_wall_corner_lands_on_the_pixel_computed_by_hand() -> None:
    # Looking north with a 90 degree field, 200 pixels wide: focal length 100, horizon at 100.
    # A corner 3 m to the right, 10 m ahead and 6.7 m up, seen from 1.7 m:
    # column 100 + 100 * 3/10 = 130, row 100 - 100 * 5/10 = 50.
    camera = Camera(5.0, 7.0, heading=0.0, height=1.7, field=90.0, pitch=0.0)
    pixel = camera.project(camera.see(np.array([8.0, 17.0])), 6.7, 200)
    assert pixel == pytest.approx([130.0, 50.0], abs=1e-3)


def test_heading_turns_clockwise_from_north() -> None:
    # Looking east, what lies 4 m north of the camera is on its left.
    camera = Camera(0.0, 0.0, heading=90.0, height=0.0, field=90.0, pitch=0.0)
    assert camera.see(np.array([10.0, 4.0])) == pytest.approx([-4.0, 10.0], abs=1e-5)


def test_pitch_moves_the_horizon_down_by_its_tangent() -> None:
    # tan(45 degrees) = 1: the horizon is one focal length (100 pixels) below the middle.
    assert Camera(0, 0, 0, field=90.0, pitch=45.0).horizon(200) == pytest.approx(200.0)


def test_columns_meet_the_wall_where_its_ends_project() -> None:
    # A wall 10 m ahead from 2 m left to 3 m right: columns 100 - 20 = 80 up to 100 + 30 = 130.
    camera = Camera(0.0, 0.0, heading=0.0, field=90.0, pitch=0.0)
    layers = cast(gather_walls((facing_wall(10.0, -2.0, 3.0),)), camera, 200)
    met = np.flatnonzero(np.isfinite(layers.depth[0]))
    assert (met[0], met[-1]) == (80, 129)
    assert layers.depth[0, met] == pytest.approx(10.0, abs=1e-4)
    assert layers.place[0, 100] == pytest.approx(2.05, abs=1e-4)  # half a pixel right of 2 m


def test_near_wall_hides_an_equally_tall_far_one_but_not_the_reverse() -> None:
    near, far = facing_wall(10.0, -1.0, 1.0), facing_wall(20.0, -9.0, 9.0)
    camera = Camera(0.0, 0.0, heading=0.0, field=90.0, pitch=0.0)
    for buildings in ((near, far), (far, near)):
        layers = cast(gather_walls(buildings), camera, 200)
        assert layers.depth[0, 100] == pytest.approx(10.0, abs=1e-4)
        assert not np.isfinite(layers.depth[1, 100])
        assert layers.depth[0, 130] == pytest.approx(20.0, abs=1e-4)


def test_wall_seen_from_behind_does_not_show() -> None:
    camera = Camera(0.0, 20.0, heading=180.0, field=90.0, pitch=0.0)
    layers = cast(gather_walls((facing_wall(10.0, -2.0, 3.0),)), camera, 200)
    assert not np.isfinite(layers.depth).any()


def stand(spot: NDArray[np.float64], heading: float) -> Camera:
    return Camera(float(spot[0]), float(spot[1]), heading, height=1.7, field=75.0, pitch=9.0)


def busy_street() -> Street:
    return next(street for street in plan_town(0).streets if street.kind == "avenue")


def test_step_aside_changes_the_picture_little_by_little(renderer: Renderer) -> None:
    street = busy_street()
    across = float(np.degrees(np.arctan2(*street.along))) + 90
    differences = []
    for step in (0.1, 0.5, 2.0, 8.0):
        gaps = []
        for place in np.linspace(16, street.length - 26, 6):
            here, there = (
                street.start + (place + move) * street.along + 5 * street.left
                for move in (0.0, step)
            )
            first, second = (look(renderer, stand(spot, across)) for spot in (here, there))
            gaps.append(np.abs(first - second).mean())
        differences.append(float(np.mean(gaps)))
    assert differences == sorted(differences)
    assert differences[-1] > 2 * differences[0]


def test_other_light_changes_colours_and_night_is_dark(renderer: Renderer) -> None:
    street = busy_street()
    camera = stand(street.start + 20 * street.along, 30.0)
    brightness = {
        day.note: float(np.asarray(renderer.take(camera, day), np.float64).mean())
        for day in query_days()
    }
    assert brightness["night"] < brightness["dusk"] < brightness["day"]


def test_camera_out_of_town_sees_sky_and_ground(renderer: Renderer) -> None:
    photo = look(renderer, Camera(-400.0, -400.0, 225.0, 1.7, 75.0, 9.0))
    assert photo[:20].mean() > photo[-8:].mean()


def test_photo_is_the_same_twice(renderer: Renderer) -> None:
    camera = stand(busy_street().end, 200.0)
    assert (look(renderer, camera) == look(renderer, camera)).all()


def test_full_memory_does_not_change_a_photo(monkeypatch: pytest.MonkeyPatch) -> None:
    camera = stand(busy_street().end, 200.0)
    kept = Renderer(0, 32)
    first = look(kept, camera)
    monkeypatch.setattr(facade, "MEMORY", 0)
    assert (look(kept, stand(busy_street().start, 20.0)) != first).any()
    assert (look(kept, camera) == first).all()


@pytest.mark.long  # beside neighbours a ratio wavers too
def test_drawing_a_photo_costs_little_more_than_enlarging_one() -> None:
    """Some 100 a second and core: 1.1 times twice the size, blurred and written as JPEG."""
    renderer = Renderer(0, 224)
    survey = sorted(plan_survey(plan_town(0), 6000, 0), key=lambda shot: shot.cell)
    shots = survey[2000:2160]
    taken = [renderer.take(shot.camera, shot.day) for shot in shots]  # walls are drawn once

    def draw() -> None:
        for shot in shots:
            renderer.take(shot.camera, shot.day).save(io.BytesIO(), "JPEG", quality=QUALITY)

    def enlarge() -> None:
        for photo in taken:
            larger = photo.resize((448, 448), Image.Resampling.LANCZOS)
            larger.filter(ImageFilter.GaussianBlur(2)).save(io.BytesIO(), "JPEG", quality=QUALITY)

    ratios = [processor_seconds(draw) / processor_seconds(enlarge) for _ in range(3)]
    assert min(ratios) < 2.5


def processor_seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
