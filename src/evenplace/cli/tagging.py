"""evenplace locate --write-exif, --sidecar and --undo: what is asked for, and what was done."""

from pathlib import Path
from typing import TYPE_CHECKING

from evenplace.cli.console import console
from evenplace.errors import RunError, SettingError

if TYPE_CHECKING:
    from evenplace.run.tagging import Tagged, Tagging


def how_to_tag(
    write_exif: bool,
    copies: Path | None,
    sidecar: str | None,
    replace: bool,
    min_precision: float | None,
) -> "Tagging | None":
    """What the options ask for; None where nothing is written into photos."""
    if sidecar not in (None, "xmp"):
        raise SettingError(f"--sidecar {sidecar} is no kind of sidecar; there is xmp")
    if write_exif and sidecar:
        raise SettingError("--write-exif and --sidecar write the same twice; choose one")
    if copies is None and not write_exif:
        raise SettingError("--in-place says where --write-exif writes; give both")
    if not write_exif and sidecar is None:
        return None
    if min_precision is None:
        raise SettingError(
            "positions are only written where they are sure enough; say how sure with "
            "--min-precision, such as 0.95"
        )
    from evenplace.run.tagging import Tagging

    return Tagging(exif=write_exif, copies=copies, replace=replace)


def say_tagged(tagged: "Tagged") -> None:
    """How many positions were written, and how many photos were left as they were, and why."""
    said = f"positions written: {len(tagged.written):,}"
    if tagged.written:
        said += f"; listed in {tagged.listed}, undone by --undo {tagged.listed}"
    console.print(said, markup=False, soft_wrap=True)
    for reason, count in tagged.left.most_common():
        console.print(f"left as they were: {count:,} {reason}", markup=False, soft_wrap=True)


def undo_positions(listed: Path) -> None:
    """Take back what was written, and refuse at the end if some of it could not be."""
    from evenplace.run.tagging import undo

    undone, changed = undo(listed)
    console.print(f"undone: {undone:,} of {listed}", markup=False, soft_wrap=True)
    if changed:
        raise RunError(
            f"{len(changed):,} files were changed after they were written and stay as they are, "
            f"for example {changed[0]}; look at them yourself"
        )
