"""What the tests of octctl surfaces share: running it, a volume of a synthetic macula, and its truth."""
import json
import os

import h5py
import numpy as np

from octtest import folder, ok, refused_by

HERE = folder("surfaces")
V, M, CROP = 40, 110, 20
FIELD = ["--set", f"scan.lines={M}", "--set", f"scan.bscans={V}", "--set", "scan.width_um=1600",
         "--set", "scan.height_um=1500", "--seed", "6"]
SECTORS = ["centre", *(f"{ring} {side}" for ring in ("inner", "outer")
                       for side in ("superior", "nasal", "inferior", "temporal"))]


def path(name):
    return os.path.join(HERE, name)


def surfaces(*arguments):
    """What it printed; the line of --json read."""
    out, err = ok("surfaces", *arguments)
    return (json.loads(out) if "--json" in arguments else out), err


def refused(status, words, *arguments):
    """One line on stderr, no output and no rests."""
    refused_by("surfaces", status, words, *arguments)
    assert not os.path.exists(path("no.h5")), arguments


def volume(motion="bscans", eye="OD"):
    """A reconstructed volume; its truth stays in s_MOTION.h5."""
    made = path(f"r_{motion}{eye}.h5")
    if not os.path.exists(made):
        if not os.path.exists(path(f"s_{motion}{eye}.h5")):
            ok("synth", path(f"s_{motion}{eye}.h5"), "--motion", motion, *FIELD, "--set",
               f"record.eye={eye}", "--calibration", path("calibration"))
        ok("recon", path(f"s_{motion}{eye}.h5"), made, "--config",
           path("calibration/calibration.ini"), "--set", "output.sample=f32", "--set",
           f"pipeline.crop_first={CROP}", "--set", "pipeline.crop_last=600")
    return made


def truth(name, motion="bscans"):
    with h5py.File(path(f"s_{motion}OD.h5")) as f:
        return f[f"truth/surfaces_px/{name}"][:] - CROP


def border(name):
    """Where the root of the light changes fastest, px beside the middle of the bands of both."""
    return truth("ilm") - 2.5 if name == "ilm" else truth("rpe") + 4


def spread(values):
    """RMS about the mean."""
    return float(np.nanstd(values))


def write_bscans(name, bscans):
    with h5py.File(path(name), "w") as f:
        f["bscans"] = np.asarray(bscans, "f4")
    return path(name)
