"""Photograph our pages for the documents.

python docs/make_screenshots.py           the demo's report, for the README; after make demo
python docs/make_screenshots.py paper     a thumbnail of each table and figure of the paper's page;
                                          after evenplace study paper --data town
python docs/make_screenshots.py folder PAGE ADDRESS PHOTOS
                                          a page of answers and the service's tab for many photos,
                                          on a desk and a phone, by day and by night; after
                                          evenplace locate RUN PHOTOS --out PAGE, with
                                          evenplace serve RUN at ADDRESS
python docs/make_screenshots.py matches REPORT ADDRESS PHOTO
                                          what matches, in a run's report and on the service's page
"""

import io
import itertools
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "runs" / "demo" / "report" / "index.html"
PAPER = ROOT / "runs" / "studies" / "paper-town" / "index.html"
PICTURES = ROOT / "docs" / "pictures"
SHOWN = ("Head, middle, tail", "Where")  # sections, one below the other
SIDES = (280, 190)  # pixels of a thumbnail
COLOURS = 32
WINDOWS = {"desk": (1280, 900), "phone": (390, 844)}
LONG = 2.0  # windows: what is below that is cut off


@contextmanager
def opened(address: str, size: tuple[int, int] = (1000, 900), **how: Any) -> Iterator[Any]:
    """A page in a window."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": size[0], "height": size[1]}, **how)
        window.goto(address)
        yield window
        browser.close()


def photograph(report: Path = REPORT, out: Path = PICTURES / "report.png") -> Path:
    """The head of the page and the sections that the README speaks of."""
    with opened(report.resolve().as_uri()) as page:
        page.wait_for_selector(".leaflet-container")
        page.evaluate(
            """shown => document.querySelectorAll("main section").forEach((section, number) => {
                const title = section.querySelector("h2")?.textContent;
                if (number && !shown.includes(title)) section.style.display = "none";
            })""",
            list(SHOWN),
        )
        page.wait_for_timeout(1000)
        page.screenshot(path=out, full_page=True)
    return out


def thumbnails(paper: Path = PAPER, out: Path = PICTURES / "paper") -> Path:
    """The first figure of every section, or else its table, named by the paper's number."""
    out.mkdir(parents=True, exist_ok=True)
    with opened(paper.resolve().as_uri()) as page:
        for section in page.query_selector_all("main section"):
            number, item, _ = section.query_selector("h2").text_content().partition(":")
            if not item:  # what it took
                continue
            kinds = ("figure > svg", ".gallery figure:not([hidden])", ".scroll")
            found = [section.query_selector(kind) for kind in kinds]
            shown = next(one for one in found if one is not None)
            name = re.sub(r"[^a-z0-9]+", "-", number.lower())
            _shrink(shown.screenshot()).save(out / f"{name}.png", optimize=True)
    return out


def many(answers: str, address: str, photos: str, out: Path = PICTURES / "folder") -> Path:
    """Both pages of a folder of photos in every window and light, named page-window-light."""
    out.mkdir(parents=True, exist_ok=True)
    for (window, size), light in itertools.product(WINDOWS.items(), ("light", "dark")):
        how = {"color_scheme": light, "is_mobile": window == "phone"}
        with opened(Path(answers).resolve().as_uri(), size, **how) as page:
            page.wait_for_selector(".leaflet-container")
            _save(page, out / f"answers-{window}-{light}.jpg", size)
        with opened(f"{address}/#many", size, **how) as page:
            page.wait_for_selector("body[data-ready]")
            page.set_input_files("#files", sorted(map(str, Path(photos).iterdir())))
            page.wait_for_selector("#many-list li")
            page.wait_for_selector("#many-stop", state="hidden", timeout=600_000)
            _save(page, out / f"service-{window}-{light}.jpg", size)
    return out


def matches(report: str, address: str, photo: str, out: Path = PICTURES / "matches") -> Path:
    """The report's gallery and the page's answer, with the lines between points that match."""
    out.mkdir(parents=True, exist_ok=True)
    for (window, size), light in (*zip(WINDOWS.items(), ("light", "dark"), strict=True),):
        how = {"color_scheme": light, "is_mobile": window == "phone"}
        with opened(Path(report).resolve().as_uri(), size, **how) as page:
            page.locator(".gallery figure:not([hidden]) line").first.wait_for(state="attached")
            section = page.locator("section:has(.gallery)").first
            section.evaluate(
                """all => [...all.querySelectorAll(".gallery figure:not([hidden])")].forEach(
                    (one, number) => {
                        one.hidden = number > 2;
                        one.querySelectorAll("details").forEach(node => (node.open = true));
                    })"""
            )
            _save(section, out / f"report-{window}-{light}.jpg", size, page)
        with opened(address, size, **how) as page:
            page.wait_for_selector("body[data-ready]")
            page.set_input_files("#file", photo)
            page.wait_for_selector("#why-drawing line", state="attached")
            _save(page, out / f"service-{window}-{light}.jpg", size)
    return out


def _save(shot: Any, out: Path, size: tuple[int, int], page: Any = None) -> None:
    """A page, or what is part of one, as far as two windows reach."""
    (page or shot).wait_for_timeout(1000)
    whole_page = {} if page else {"full_page": True}
    whole = Image.open(io.BytesIO(shot.screenshot(**whole_page))).convert("RGB")
    shown = whole.crop((0, 0, whole.width, min(whole.height, int(LONG * size[1]))))
    shown.save(out, quality=75, optimize=True, progressive=True)


def _shrink(picture: bytes) -> Image.Image:
    """Fitted into a thumbnail, a long one cut off below, in few colours: some kilobytes."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    wide, high = SIDES
    height = min(whole.height, round(whole.width * high / wide))
    small = whole.crop((0, 0, whole.width, height)).copy()
    small.thumbnail(SIDES, Image.Resampling.LANCZOS)
    return small.quantize(COLOURS, dither=Image.Dither.NONE)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] in (["folder"], ["matches"]):
        print((many if words[0] == "folder" else matches)(*words[1:]))
    else:
        make = thumbnails if words[:1] == ["paper"] else photograph
        print(make(*(Path(word) for word in words if word != "paper")))
