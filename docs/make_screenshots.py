"""Photograph the demo's report for the README: python docs/make_screenshots.py, after make demo"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "runs" / "demo" / "report" / "index.html"
PICTURES = ROOT / "docs" / "pictures"
SHOWN = ("Head, middle, tail", "Where")  # sections, one below the other


def photograph(report: Path = REPORT, out: Path = PICTURES / "report.png") -> Path:
    """The head of the page and the sections that the README speaks of, 1,000 pixels wide."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(report.resolve().as_uri())
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
        browser.close()
    return out


if __name__ == "__main__":
    print(photograph(*(Path(word) for word in sys.argv[1:])))
