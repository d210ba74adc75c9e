"""octd from Python: reconstruction of OCT spectra with octd's engine, recordings as arrays, and a
running octd.

    pictures = octd.recon(spectra, kmap=kmap)            # u16 [B][M][N] -> u8 or f32 [B][M][D]
    with octd.open("volume.h5") as recording: ...        # HDF5 recordings, read lazily
    for header, picture in octd.subscribe("tcp://127.0.0.1:5702"): ...
    octd.Control("tcp://127.0.0.1:5703").status()
    octd.Camera("tcp://127.0.0.1:5701", samples=832)     # a camera driver

Shapes: B B-scans, M A-lines a B-scan, N samples an A-line, D depth pixels; arrays are row-major, an
A-line is contiguous. Lengths are micrometres. Only NumPy is needed to reconstruct; h5py to read
recordings, pyzmq to talk to octd. `docs/python.md` has the whole of it.
"""
from __future__ import annotations

from ._camera import Camera, Counters
from ._control import Control
from ._errors import Error, Timeout
from ._library import library_path, library_version
from ._recon import Reconstructor, recon
from ._recording import Recording, open  # noqa: A004  octd.open, as h5py.File or wave.open
from ._subscribe import Subscription, subscribe

__version__ = "0.1.0"

__all__ = [
    "Camera", "Control", "Counters", "Error", "Reconstructor", "Recording", "Subscription",
    "Timeout", "library_path", "library_version", "open", "recon", "subscribe",
]
