"""What the tests of octctl calibrate share: mirrors before the synthetic spectrometer, and their truth."""
import json
import os

import h5py
import numpy as np

from octtest import at, ok, run

LINES = ["--set", "scan.lines=32"]
NUFFT = ["--set", "pipeline.interpolation=nufft"]


def mirrors(name, depths, *options):
    """Files of mirrors at these depths, made once; the true calibration is in the folder NAME-cal."""
    digits = 2 if len(depths) > 9 else 1
    files = [at(f"{name}-{i + 1:0{digits}}.h5") for i in range(len(depths))] if len(depths) > 1 \
        else [at(f"{name}.h5")]
    if not os.path.exists(files[-1]):
        ok("synth", at(f"{name}.h5"), "--mirror", ",".join(map(str, depths)), "--calibration",
           at(f"{name}-cal"), *LINES, *options)
    return files


def true_calibration(name):
    return ["--config", at(f"{name}-cal/calibration.ini")]


def truth(file, name):
    with h5py.File(file) as f:
        return f["truth/" + name][()]


def report(*arguments, status=0):
    """The JSON of octctl calibrate report, and what it said on stderr."""
    got, out, err = run("octctl", "calibrate", "report", *arguments, "--json")
    assert got == status, (arguments, got, out, err)
    return json.loads(out), err
