"""The page in a real browser: drop, read, abstain, browse, on a phone, with keys, signed in."""

import base64
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from evenplace.serve.app import create_app
from evenplace.serve.settings import Settings
from tests.serve.conftest import Town, listening

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
TOKEN = "a-token-of-some-length"
DROP = """async ([data, type]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "dropped", { type }));
  const target = document.getElementById("drop");
  const event = { bubbles: true, cancelable: true, dataTransfer: transfer };
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, event));
}"""
PASTE = """([data]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "pasted.jpg", { type: "image/jpeg" }));
  document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="no chromium; install Debian's package chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with a camera that films a test picture."""
    films = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with playwright.sync_playwright() as started:
        # No sandbox: tests run as root in containers; the page is our own.
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", *films])
        yield opened
        opened.close()


class Visit:
    """A page, what it asked of other machines, and what it complained about."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.strangers: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self._note(request.url, address))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.page.goto(address)

    def _note(self, url: str, address: str) -> None:
        if not url.startswith((address, "blob:", "data:")):
            self.strangers.append(url)

    def _hear(self, message: Any) -> None:
        if "Content Security Policy" in message.text or message.type == "error":
            self.complaints.append(message.text)

    def ready(self) -> Any:
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    opened = Visit(browser, address)
    yield opened
    assert opened.strangers == [], "no request leaves the machine"
    assert opened.complaints == []
    opened.close()


def drop(page: Any, photo: bytes, kind: str = "image/jpeg") -> None:
    page.evaluate(DROP, [base64.b64encode(photo).decode(), kind])


def answered(page: Any) -> Any:
    page.wait_for_selector("#spent:not([hidden])")
    return page


def test_drop_a_photo_and_read_the_answer(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    assert page.inner_text("#verdict h2") in ("Here", "Probably here", "Only a guess")
    assert "times in 100" in page.inner_text("#verdict")
    assert page.locator("#verdict [role=meter]").get_attribute("aria-valuenow")
    assert page.locator("#hits li").count() == 6, "the photo and five like it"
    assert page.locator("#map .pin").count() == 5
    assert page.locator("#map .here").count() == 1
    assert page.locator("#map path.ellipse").count() == 1
    assert page.locator("#places li").count() >= 3
    assert "describing it" in page.inner_text("#times")
    loaded = "() => [...document.querySelectorAll('#hits img')].every((i) => i.naturalWidth > 0)"
    page.locator("#hits li").last.scroll_into_view_if_needed()
    page.wait_for_function(loaded)


def test_an_uncertain_answer_looks_uncertain(visit: Visit, town: Town) -> None:
    page = visit.ready()
    for number in range(len(town.queries)):
        drop(page, town.photo(number))
        page.wait_for_selector("#verdict:not(.wait)")
        answered(page)
        if page.locator("#verdict.guess").count():
            break
    assert page.inner_text("#verdict h2") == "Only a guess"
    assert "It might also be" in page.inner_text("#verdict")
    dashes = page.eval_on_selector("path.ellipse", "e => getComputedStyle(e).strokeDasharray")
    assert dashes != "none"
    border = page.eval_on_selector("#verdict", "e => getComputedStyle(e).borderTopStyle")
    assert border == "dashed"


def test_a_photo_and_its_pin_point_at_each_other(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    page.locator("#hits button").nth(2).hover()
    assert "lit" in page.locator("#map .pin").nth(2).get_attribute("class")
    page.locator("h1").hover()
    assert "lit" not in page.locator("#map .pin").nth(2).get_attribute("class")
    page.locator("#map .pin").nth(1).focus()
    assert "lit" in page.locator("#hits li").nth(2).get_attribute("class")
    page.locator("#hits button").nth(4).focus()
    assert "lit" in page.locator("#map .pin").nth(4).get_attribute("class")


def test_paste_a_photo(visit: Visit, town: Town) -> None:
    page = visit.ready()
    page.evaluate(PASTE, [base64.b64encode(town.photo(1)).decode()])
    answered(page)
    assert page.locator("#query").is_visible()


def test_choose_a_photo(visit: Visit, town: Town) -> None:
    page = visit.ready()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a photo").click()
    chooser.value.set_files(str(town.queries[0]))
    answered(page)


def test_take_a_photo(browser: Any, address: str) -> None:
    opened = Visit(browser, address, permissions=["camera"])
    page = opened.ready()
    page.get_by_role("button", name="Use the camera").click()
    page.wait_for_function("() => document.getElementById('video').videoWidth > 0")
    page.get_by_role("button", name="Take the photo").click()
    answered(page)
    assert not page.locator("#viewfinder").is_visible()
    assert opened.complaints == []
    opened.close()


def test_what_is_no_photo_is_refused_with_a_remedy(browser: Any, address: str) -> None:
    opened = Visit(browser, address)
    page = opened.ready()
    drop(page, b"this is no photo", "image/png")
    page.wait_for_selector("#verdict.failed")
    assert "no picture" in page.inner_text("#verdict")
    assert "What to do: Send a JPEG, PNG or WebP." in page.inner_text("#verdict")
    assert page.locator("#seen").is_hidden()
    opened.close()


def test_abstain(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run, min_precision=0.97))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, town.photo())
        answered(page)
        assert page.inner_text("#verdict h2") == "No answer"
        assert "precision" in page.inner_text("#verdict")
        assert "What would help:" in page.inner_text("#verdict")
        assert page.locator("#map .here").count() == 0
        assert page.locator("#map path.ellipse").count() == 0
        assert page.locator("#map .pin").count() == 5, "the candidates are shown"
        assert opened.complaints == []
        opened.close()


def test_switch_tab_and_browse_the_database(visit: Visit) -> None:
    page = visit.ready()
    page.get_by_role("tab", name="The database").click()
    assert page.locator("#find").is_hidden()
    page.wait_for_selector("#list button")
    assert "40" in page.inner_text("#tiles")
    page.locator("#list button").first.click()
    page.wait_for_selector("#shots img")
    assert "photo" in page.inner_text("#cell-caption")
    page.get_by_label("density").check()
    assert "1 photo" in page.inner_text("#atlas-legend")
    page.select_option("#tier", "tail")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#list .mark')].every((m) => m.matches('.tail'))"
    )
    page.locator("#shots button").first.click()
    answered(page)
    assert page.locator("#find").is_visible(), "asked with a photo of the database"


def test_a_cell_on_the_map_opens(visit: Visit) -> None:
    page = visit.ready()
    page.goto(page.url.rstrip("#") + "#browse")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#list button")
    page.wait_for_timeout(300)
    box = page.locator("#atlas").bounding_box()
    found = False
    for across in range(1, 12):
        page.mouse.click(box["x"] + box["width"] * across / 12, box["y"] + box["height"] / 2)
        page.wait_for_timeout(60)
        found = found or page.locator("#cell-title").inner_text().startswith("Place")
    assert found


def test_tabs_obey_the_arrow_keys(visit: Visit) -> None:
    page = visit.ready()
    page.locator("#tab-find").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-browse"
    assert page.locator("#browse").is_visible()
    assert page.locator("#tab-find").get_attribute("tabindex") == "-1"
    page.keyboard.press("ArrowRight")
    assert page.locator("#find").is_visible()


def test_every_control_has_a_name(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    page.get_by_role("tab", name="The database").click()
    page.wait_for_selector("#list button")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input:not([hidden]), img')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title
          || e.hasAttribute('alt') || (e.labels && e.labels.length)))
        .map((e) => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    browser: Any, address: str, town: Town, scheme: str
) -> None:
    opened = Visit(
        browser, address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True,
        color_scheme=scheme,
    )  # fmt: skip
    page = opened.ready()
    drop(page, town.photo())
    answered(page)
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    for chosen in ("#choose", "#camera", "#tab-browse"):
        assert page.locator(chosen).bounding_box()["height"] >= 40, "a finger's height"
    page.get_by_role("tab", name="The database").click()
    page.wait_for_selector("#list button")
    assert page.evaluate(wide) <= 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(18, 21, 27)") == (scheme == "dark")
    assert opened.complaints == []
    opened.close()


def test_the_page_asks_for_the_token_once(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run, token=TOKEN))) as address:
        opened = Visit(browser, address)
        page = opened.page
        page.wait_for_selector("#signin[open]")
        page.fill("#token", "not the token at all")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_function("() => document.getElementById('signin-error').textContent")
        page.fill("#token", TOKEN)
        page.get_by_role("button", name="Sign in").click()
        opened.ready()
        drop(page, town.photo())
        answered(page)
        page.wait_for_function("() => document.querySelectorAll('#hits img')[1].naturalWidth > 0")
        assert page.evaluate("document.cookie") == "", "scripts cannot read it"
        opened.close()


def test_a_service_that_stopped_is_said_to_have(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
    drop(page, town.photo())
    page.wait_for_selector("#verdict.failed")
    assert "does not answer" in page.inner_text("#verdict")
    opened.close()
