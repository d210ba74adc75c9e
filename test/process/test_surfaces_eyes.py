#!/usr/bin/python3
"""octctl surfaces on real pictures: an eye traced by its device, with speckle; what is no retina."""
import csv
import os

import h5py
import numpy as np
from PIL import Image

from octtest import DATA, Skip, case, main, run
from surfacesrig import path, surfaces, write_bscans

EYES = os.path.join(DATA, "eyes")
SPACING = "3.872,15.6"


def need_data():
    if not os.path.isdir(EYES):
        raise Skip("../shared/data/eyes is not there")


def grey(name):
    return np.array(Image.open(os.path.join(EYES, name + ".png")).convert("L")).T / 255.0


def traced():
    with open(os.path.join(EYES, "peripapillary.csv")) as f:
        rows = list(csv.DictReader(f))
    return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows])
            for key in ("ilm_px", "nfl_px", "bm_px")}


def layers_of(db, *more):
    surfaces(write_bscans("eye.h5", db[None]), path("eye_o.h5"), "--force", *more)
    with h5py.File(path("eye_o.h5")) as f:
        return {name: f["layers/" + name][0] for name in ("ilm", "rnfl_gcl", "rpe")}


@case
def a_traced_eye_with_speckle():
    """an eye with speckle and noise of its own: ILM, RNFL and RPE lie where its device has them"""
    need_data()
    light, truth = grey("peripapillary") ** 4, traced()
    for seed, noise in (0, 0), (1, 1e-3), (2, 6e-3):
        random = np.random.default_rng(seed)
        field = np.sqrt(light / 2) * (random.standard_normal(light.shape) +
                                      1j * random.standard_normal(light.shape))
        field += np.sqrt(noise / 2) * (random.standard_normal(light.shape) +
                                       1j * random.standard_normal(light.shape))
        found = layers_of(10 * np.log10(abs(field) ** 2 + 1e-9), "--pixel-um", SPACING)
        for name, key, most in (("ilm", "ilm_px", 1.5), ("rnfl_gcl", "nfl_px", 3.5),
                                ("rpe", "bm_px", 2.2)):
            off = found[name] - truth[key]
            assert np.isfinite(off).mean() > (0.8 if name == "rnfl_gcl" else 0.97), (name, noise)
            assert np.nanmean(abs(off)) < most, (name, noise, np.nanmean(abs(off)))


@case
def what_is_no_retina_is_not_found():
    """a picture that folds over its top, a plate, a block, wood: no layer in more than 1 % of it"""
    need_data()
    surfaces(os.path.join(EYES, "second.png"), path("none.h5"), "--pixel-um", "3.872,11", "--force")
    pictures = [path("none.h5")]
    for name in "plate", "pdms", "wood":
        scan = ["--set", "camera.samples=1024", "--set", "scan.lines=1049", "--set", "scan.bscans=1",
                "--set", "file.header_bytes=552", "--set", "file.trailer_bytes=8192", "--set",
                "calibration.kmap=" + os.path.join(DATA, "sd2019_kmap.txt"), "--set",
                "calibration.dispersion=" + os.path.join(DATA, "sd2019_dispersion.txt")]
        status, _, err = run("octctl", "recon", os.path.join(DATA, name + ".raw"),
                             path(name + ".h5"), "--force", "--quiet", *scan)
        assert status == 0, err
        for spacing in "2,5", "2.5,5":
            out = path(f"{name}_{len(spacing)}.h5")
            surfaces(path(name + ".h5"), out, "--force", "--pixel-um", spacing)
            pictures.append(out)
    for out in pictures:
        with h5py.File(out) as f:
            for name in "ilm", "rnfl_gcl", "ipl_inl", "inl_opl", "opl_onl", "is_os", "rpe":
                share = np.isfinite(f["layers/" + name][:]).mean()
                assert share <= 0.01, (out, name, share)


main()
