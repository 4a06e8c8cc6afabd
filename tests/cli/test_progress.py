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


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console, "errors", Console(file=screen, force_terminal=True, width=100))
    with console.bars() as announce:
        announce("drawing")(7, 7)
    assert "━" in screen.getvalue()
    assert "7/7" in screen.getvalue()
