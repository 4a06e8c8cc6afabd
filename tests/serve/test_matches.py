"""Why we believe it: the page draws the points that a photo and a hit share."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenplace.arrays import Doubles
from evenplace.photos import read_photos
from evenplace.retrieval.point_matching import REFUTED, VERIFIED
from evenplace.run.run import Run
from evenplace.serve.app import create_app
from evenplace.serve.client import Client
from evenplace.serve.settings import Settings
from tests.serve.conftest import listening
from tests.serve.visits import IN_A_BROWSER, PHONE, Visit, answered, drop
from tests.standins import Standins

pytestmark = IN_A_BROWSER
ENDS = """() => {
  const number = (node, name) => Number(node.getAttribute(name));
  const read = (kind, names) => [...document.querySelectorAll(`#why-drawing ${kind}`)]
    .map((node) => names.map((name) => number(node, name)));
  return [read("image", ["x", "y", "width", "height"]), read("line", ["x1", "y1", "x2", "y2"])];
}"""


@dataclass(frozen=True)
class Looking:
    """A service that looks twice, and a photo cut out of one of its database."""

    address: str
    photo: bytes


@pytest.fixture(scope="module")
def looking(standins: Standins, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looking]:
    folder = tmp_path_factory.mktemp("looking")
    some = read_photos(standins.photos)[np.arange(0, 36, 3)]
    Run(folder / "run").index_method(
        some, "dapr-m-bands", "imagenet", image_size=64, dim=64, verify=5
    )
    with Image.open(some.paths[0]) as whole:
        whole.crop((0, whole.height // 6, whole.width, whole.height)).save(folder / "cut.png")
    with listening(create_app(Settings(folder / "run"))) as where:
        yield Looking(where, (folder / "cut.png").read_bytes())


@pytest.fixture(params=[{}, PHONE], ids=["desk", "phone"])
def page(browser: Any, looking: Looking, request: pytest.FixtureRequest) -> Iterator[Any]:
    opened = Visit(browser, looking.address, **request.param)
    drop(opened.ready(), looking.photo, "image/png")
    yield answered(opened.page)
    opened.close()
    assert opened.complaints == []


def drawn(page: Any, number: int) -> Doubles:
    """Where lines to a hit end, as shares of both pictures.  (M, 4)."""
    page.wait_for_selector(f'#why-drawing svg[aria-label$="database photo {number + 1}"]')
    (left, right), lines = page.evaluate(ENDS)
    corners, sides = (np.array(left[at] + right[at]) for at in (slice(2), slice(2, 4)))
    ends: Doubles = (np.array(lines).reshape(-1, 4) - corners) / sides
    return ends


def test_lines_end_at_the_points_that_match_of_the_answer_and_of_any_hit(
    page: Any, looking: Looking
) -> None:
    with Client(looking.address) as client:
        hits = client.locate(looking.photo, matches=5).hits
    assert [len(hit.pairs or []) for hit in hits] == [hit.inliers for hit in hits]
    assert len(hits[0].pairs or []) > 30
    assert f"{hits[0].inliers} points of your photo lie in the best photo" in page.inner_text(
        "#why"
    )
    for number in (0, 4):
        if number:
            page.locator("#hits button").nth(number).click()
        ends, told = drawn(page, number), np.array(hits[number].pairs).reshape(-1, 4)
        assert len(ends) == len(told) or 80 <= len(ends) <= 81
        apart = np.abs(ends[:, None] - told).max(axis=2)
        assert apart.min(axis=1, initial=1).max(initial=0) < 1e-3


def test_a_hit_that_is_chosen_is_compared_in_sight(page: Any) -> None:
    page.locator("#hits button").last.scroll_into_view_if_needed()
    page.locator("#hits button").last.click()
    drawn(page, 4)
    page.wait_for_function(
        """() => {
          const { top, bottom } = document.getElementById("why-drawing").getBoundingClientRect();
          return top >= 0 && top < innerHeight - 100;
        }""",
        timeout=5000,
    )


def test_a_photo_that_nobody_can_look_at_is_not_said_to_differ(
    browser: Any, looking: Looking
) -> None:
    def lose(route: Any) -> None:
        said = route.fetch()
        body = said.json()
        body["answers"][0]["hits"][2].update(inliers=None, pairs=None)
        route.fulfill(response=said, json=body)

    visit = Visit(browser, looking.address)
    visit.page.route("**/locate?*", lose)
    drop(visit.ready(), looking.photo, "image/png")
    page = answered(visit.page)
    assert "show the same thing" in page.inner_text("#why")
    page.locator("#hits button").nth(2).click()
    assert "Nobody can look at photo 3 a second time." in page.inner_text("#why")
    assert "different" not in page.inner_text("#why")
    page.wait_for_function("!document.querySelector('#why-drawing line')")
    visit.close()


def test_the_page_and_the_report_call_the_same_verified_and_refuted() -> None:
    script = (resources.files("evenplace.serve") / "assets" / "matches.js").read_text()
    assert f"SAME = {VERIFIED}, CHANCE = {REFUTED};" in script
