"""Unpacks the recorded physics world for the `worlds` bench: ``physics.npz`` into ``target/physics.words``.

The archive holds 901 cubes of a rigid-body engine, frame by frame at 60 Hz, quantised as in Glenn Fiedler's
compression challenge: ``pos`` in steps of 1/512 m, the place of the rotation's ``largest`` component, the
``level`` of the other three (-255 to 255), and a flag, ``touched``. Each row becomes eight 16-bit
little-endian numbers in this order, after a head of two 32-bit ones: frames and rows.

Takes the archive's path; without one, it looks beside this file and in ``../shared/scenes``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLACES = (HERE / "physics.npz", ROOT.parent / "shared" / "scenes" / "physics.npz")


def unpack(source: Path, target: Path) -> None:
    """Writes the archive's rows as plain numbers."""
    archive = np.load(source)
    position, largest = archive["pos"], archive["largest"]
    frames, rows, _ = position.shape
    numbers = np.empty((frames, rows, 8), "<i2")
    numbers[..., 0:3] = position
    numbers[..., 3] = largest
    numbers[..., 4:7] = archive["level"]
    numbers[..., 7] = archive["touched"]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(np.array([frames, rows], "<u4").tobytes() + numbers.tobytes())


def main() -> None:
    places = [Path(argument) for argument in sys.argv[1:]] or [place for place in PLACES if place.exists()]
    if not places:
        raise SystemExit("physics.npz must lie beside this script or be named on the command line")
    unpack(places[0], ROOT / "target" / "physics.words")


if __name__ == "__main__":
    main()
