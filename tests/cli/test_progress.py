"""Where there is no terminal, lines say what is being done and how far it is."""

import io
import time

import pytest
from rich.console import Console

from evenplace.cli import console, progress
from evenplace.cli.progress import Lines


class Clock:
    """Seconds that pass when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_line_says_what_starts_and_the_next_how_far_it_is(clock: Clock) -> None:
    said: list[str] = []
    lines = Lines(said.append, clock)
    show = lines.announce("describing the database")
    clock.now += 14
    lines.tell()  # too soon to say more
    clock.now += 1
    lines.tell()
    show(1200, 6000)
    clock.now += 15
    lines.tell()
    show(6000, 6000)
    clock.now += 15
    lines.tell()  # it has ended: nothing to say
    assert said == [
        "describing the database",
        "describing the database: 15 s",
        "describing the database: 1,200 of 6,000, 40/s",
    ]


def test_the_stage_that_moves_is_the_one_told(clock: Clock) -> None:
    said: list[str] = []
    lines = Lines(said.append, clock)
    first, second = lines.announce("training"), lines.announce("fold 1")
    second(3, 3)
    first(2, 8)
    clock.now += 20
    lines.tell()
    assert said[-1] == "training: 2 of 8, 0.1/s"


def test_a_log_gets_a_line_every_so_often_while_a_verb_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(console, "errors", Console(file=log, width=40))
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with console.bars() as announce:
        announce("drawing [red] towns")(3, 7)
        until = time.monotonic() + 20
        while "3 of 7" not in log.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    lines = log.getvalue().splitlines()
    assert lines[0] == "drawing [red] towns"
    assert lines[1].startswith("drawing [red] towns: 3 of 7, ")
    said = log.getvalue()
    time.sleep(0.05)
    assert log.getvalue() == said  # and none once it has ended


def printed(monkeypatch: pytest.MonkeyPatch, width: int, systems: int) -> list[str]:
    """The lines of a table of so many systems, on a screen so wide."""
    screen = io.StringIO()
    monkeypatch.setattr(console, "console", Console(file=screen, width=width))
    rows = [(f"system {one}", "85.5 [80.3, 90.4]", "80.4 [70.2, 89.4]") for one in range(systems)]
    console.print_table(("system", "R@1", "tail R@1"), rows, "200 queries, all with a match")
    return [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]


def test_a_table_that_fits_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    said = printed(monkeypatch, 50, 2)
    assert said[0] == "200 queries, all with a match"
    assert said[1].split("  ")[0].strip() == "system"
    assert said[-1] == " system 1   85.5 [80.3, 90.4]   80.4 [70.2, 89.4]"


def test_a_table_that_does_not_fit_lies_on_its_side(monkeypatch: pytest.MonkeyPatch) -> None:
    said = printed(monkeypatch, 49, 1)
    assert said[0] == "200 queries, all with a match"
    assert [line.split("  ")[0].strip() for line in said] == [
        "200 queries, all with a match", "system", "─" * 28, "R@1", "tail R@1",
    ]  # fmt: skip
    assert said[-1] == " tail R@1   80.4 [70.2, 89.4]"


def test_a_table_that_fits_in_neither_way_wraps_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = printed(monkeypatch, 40, 3)
    assert sum("system" in line for line in said) == 4, "a line each, and the heading"
    assert "".join(said).count("90.4]") == 3


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console, "errors", Console(file=screen, force_terminal=True, width=100))
    with console.bars() as announce:
        announce("drawing")(7, 7)
    assert "━" in screen.getvalue()
    assert "7/7" in screen.getvalue()
