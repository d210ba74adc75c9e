"""napari's reader of recordings. napari.json tells napari of it; it needs no napari itself."""
from __future__ import annotations

import os
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

from ._errors import Error
from ._recording import Recording, of_axes


class Decibels:
    """Pictures in dB, f32 [V][D][M]: depth downwards. What is indexed is read, and no more."""

    dtype, ndim = np.dtype(np.float32), 3

    def __init__(self, recording: Recording) -> None:
        if recording.bscans is None:
            raise Error(f"{recording.path}: holds spectra and no pictures: octctl recon makes them",
                        "state")
        self._recording = recording
        n_rows, n_lines, depth = recording.bscans.shape
        self.shape = (n_rows, depth, n_lines)

    def __getitem__(self, key: Any) -> NDArray[np.float32]:
        rows, depths, lines = of_axes(key)
        values = self._recording.db(rows, lines, depths)
        is_plane = all(isinstance(of, slice) or np.ndim(of) == 1 for of in (depths, lines))
        return values.swapaxes(-1, -2) if is_plane else values

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


def read(path: str) -> list[tuple[Any, dict[str, Any], str]]:
    """The layer of a recording; where the file knows no spacing its axis is in pixels."""
    recording = Recording(path)
    bscan, line, depth = recording.spacing_um
    scale = np.array([bscan, depth, line])
    known = scale > 0
    return [(Decibels(recording), {
        "name": os.path.splitext(os.path.basename(path))[0],
        "scale": np.where(known, scale, 1).tolist(),
        "units": ["um" if k else "pixel" for k in known],
        "axis_labels": ["bscan", "depth", "line"],
    }, "image")]


def reader(path: Any) -> Optional[Callable[[str], Any]]:
    """What reads it, or None: it is no recording, or several paths."""
    try:
        with Recording(path):
            return read
    except Error as why:
        return read if why.kind == "state" else None  # without h5py, read says what is missing
