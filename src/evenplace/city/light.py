"""Days: sun, sky, haze, season and weather, for the survey's passes and for the queries."""

from dataclasses import dataclass

import numpy as np

Tone = tuple[float, float, float]


@dataclass(frozen=True)
class Day:
    """One outing's light and weather; `number` tells days apart and seeds what moves."""

    number: int
    date: str  # YYYYMM
    note: str  # day, dusk or night
    season: str  # summer, autumn, winter or spring
    ground: str  # dry, wet or snow
    sun_azimuth: float  # degrees clockwise from north
    sun_height: float  # degrees above the horizon
    sun: Tone  # light of the sun on a wall it faces
    ambient: Tone
    zenith: Tone  # sky colours, 0..1
    skyline: Tone
    clouds: float  # 0 clear .. 1 overcast
    haze: float  # metres over which contrast falls to 1/e
    lit_windows: float  # share of panes with a lamp behind them
    lamps: float  # light of the street lamps

    @property
    def sun_direction(self) -> tuple[float, float]:
        """Unit vector (east, north) towards the sun."""
        turn = np.radians(self.sun_azimuth)
        return float(np.sin(turn)), float(np.cos(turn))


CLEAR: tuple[Tone, Tone] = ((0.33, 0.53, 0.82), (0.74, 0.84, 0.93))
PALE: tuple[Tone, Tone] = ((0.52, 0.66, 0.84), (0.86, 0.89, 0.91))
GREY: tuple[Tone, Tone] = ((0.66, 0.69, 0.73), (0.82, 0.83, 0.84))
DUSK: tuple[Tone, Tone] = ((0.24, 0.30, 0.50), (0.93, 0.66, 0.50))
NIGHT: tuple[Tone, Tone] = ((0.03, 0.045, 0.10), (0.13, 0.12, 0.16))


def survey_days() -> tuple[Day, ...]:
    """The passes of the survey: five days between spring and autumn, by daylight."""
    return (
        _sunny(0, "201405", "spring", azimuth=135, height=42, clouds=0.35),
        _sunny(1, "201407", "summer", azimuth=215, height=55, clouds=0.15),
        _grey(2, "201410", "autumn", ground="dry"),
        _sunny(3, "201506", "summer", azimuth=255, height=34, clouds=0.5),
        _sunny(4, "201509", "autumn", azimuth=160, height=38, clouds=0.65),
    )


def query_days() -> tuple[Day, ...]:
    """The days of the queries, none of them a day of the survey: rain, snow, dusk and night too."""
    return (
        _sunny(10, "201704", "spring", azimuth=100, height=30, clouds=0.45),
        _sunny(11, "201708", "summer", azimuth=235, height=46, clouds=0.25),
        _grey(12, "201711", "winter", ground="wet"),
        _grey(13, "201801", "winter", ground="snow"),
        _sunny(14, "201802", "winter", azimuth=190, height=24, clouds=0.3),
        _sunny(15, "201810", "autumn", azimuth=150, height=33, clouds=0.55),
        _grey(16, "201805", "summer", ground="wet"),
        _dusk(17, "201809"),
        _night(18, "201811"),
    )


def _sunny(
    number: int, date: str, season: str, *, azimuth: float, height: float, clouds: float
) -> Day:
    warm = 1.0 - 0.16 * (1 - min(1.0, (height - 15) / 40))
    zenith, skyline = CLEAR if clouds < 0.4 else PALE
    strength = 0.74 - 0.25 * clouds
    return Day(
        number, date, "day", season, "dry",
        sun_azimuth=azimuth, sun_height=height,
        sun=(strength * 1.04, strength * (0.5 + 0.5 * warm), strength * warm * 0.9),
        ambient=(0.50, 0.54, 0.60), zenith=zenith, skyline=skyline, clouds=clouds,
        haze=420, lit_windows=0.02, lamps=0.0,
    )  # fmt: skip


def _grey(number: int, date: str, season: str, *, ground: str) -> Day:
    zenith, skyline = GREY
    return Day(
        number, date, "day", season, ground,
        sun_azimuth=180, sun_height=50, sun=(0.06, 0.06, 0.06),
        ambient=(0.76, 0.78, 0.80), zenith=zenith, skyline=skyline, clouds=0.9,
        haze=320 if ground == "dry" else 260, lit_windows=0.1, lamps=0.0,
    )  # fmt: skip


def _dusk(number: int, date: str) -> Day:
    zenith, skyline = DUSK
    return Day(
        number, date, "dusk", "autumn", "dry",
        sun_azimuth=275, sun_height=15, sun=(0.22, 0.12, 0.06),
        ambient=(0.38, 0.37, 0.46), zenith=zenith, skyline=skyline, clouds=0.5,
        haze=300, lit_windows=0.3, lamps=0.2,
    )  # fmt: skip


def _night(number: int, date: str) -> Day:
    zenith, skyline = NIGHT
    return Day(
        number, date, "night", "winter", "wet",
        sun_azimuth=180, sun_height=40, sun=(0.0, 0.0, 0.0),
        ambient=(0.24, 0.25, 0.31), zenith=zenith, skyline=skyline, clouds=0.3,
        haze=300, lit_windows=0.34, lamps=0.55,
    )  # fmt: skip
