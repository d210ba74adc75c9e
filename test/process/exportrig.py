"""The samples that test/rig/export_rig.c makes, the files that a C test writes of them, and what
dciodvfy says of DICOM."""
import os, subprocess

import h5py, numpy as np

from octtest import PATIENCE_S, folder, program
from recordingrig import u8_recording


def samples(kind, dims):
    i = np.arange(np.prod(dims), dtype=np.uint64)
    if kind == "u8":
        return ((37 * i + 11) % 251).astype(np.uint8).reshape(dims)
    if kind == "u16":
        return ((9973 * i + 7) % 65521).astype(np.uint16).reshape(dims)
    values = (0.25 * i.astype(np.float64) - 4).astype(np.float32)
    values[3:4] = np.nan
    return values.reshape(dims)


def written_by(test, *more):
    """The folder with the files that build/test/TEST writes."""
    path = folder(test)
    done = subprocess.run([program("test/" + test), path, *more], capture_output=True, text=True,
                          timeout=10 * PATIENCE_S)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return lambda name: os.path.join(path, name)


def same(a, b):
    """The same bytes in the same shape; NaN is NaN."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def recording_of(eye, path, **more):
    """A recording of this eye, for octctl export."""
    u8_recording(path, **more)
    with h5py.File(path, "r+") as f:
        f.attrs["eye"] = np.bytes_(eye) if eye else h5py.Empty("S1")
    return path


# The class says by numbers of one that it is no part of a concatenation (PS3.3 C.8.17.7, types 1),
# which C.7.6.16 allows it by name. dciodvfy asks for them in one module and forbids them in
# another.
KNOWN = ("ConcatenationFrameOffsetNumber", "InConcatenationNumber", "InConcatenationTotalNumber")


def judged(path, words=()):
    """What dciodvfy says must be of the contradiction above, and warnings of these words."""
    done = subprocess.run(["dciodvfy", path], stderr=subprocess.PIPE)
    lines = done.stderr.decode().splitlines()
    assert "OphthalmicTomographyImage" in lines, lines
    for line in lines:
        if line.startswith("Error"):
            assert any(f"<{word}>" in line for word in KNOWN), line
        elif line != "OphthalmicTomographyImage":
            assert any(word in line for word in (*words, "Detector Type")), line
