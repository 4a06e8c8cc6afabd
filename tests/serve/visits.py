"""A browser's visit to the page, and hands that drop and paste."""

import base64
import shutil
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="no chromium; install Debian's package chromium"),
]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
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


class Visit:
    """A page, what it asked of other machines, and what it complained about."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.bring_to_front()  # keys go to the page in front
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


def drop(page: Any, photo: bytes, kind: str = "image/jpeg") -> None:
    page.evaluate(DROP, [base64.b64encode(photo).decode(), kind])


def paste(page: Any, photo: bytes) -> None:
    page.evaluate(PASTE, [base64.b64encode(photo).decode()])


def answered(page: Any) -> Any:
    page.wait_for_selector("#spent:not([hidden])")
    return page
