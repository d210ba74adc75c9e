#!/usr/bin/python3
"""octctl surfaces on real pictures: an eye traced by its device, with speckle; what is no retina."""
import csv
import os
import struct

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


def layers_of(db, *more, names=("ilm", "rnfl_gcl", "rpe")):
    surfaces(write_bscans("eye.h5", db[None]), path("eye_o.h5"), "--force", *more)
    with h5py.File(path("eye_o.h5")) as f:
        return {name: f["layers/" + name][0] for name in names}


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
        for name, key, most in (("ilm", "ilm_px", 1.5), ("rnfl_gcl", "nfl_px", 2.0),
                                ("rpe", "bm_px", 2.2)):
            off = found[name] - truth[key]
            assert np.isfinite(off).mean() > (0.9 if name == "rnfl_gcl" else 0.97), (name, noise)
            assert np.nanmean(abs(off)) < most, (name, noise, np.nanmean(abs(off)))


@case
def every_border_where_fibres_are_thick():
    """a circle about the disc: all borders in an averaged eye, and where it has them with speckle"""
    need_data()
    light, fibres = grey("peripapillary") ** 4, traced()["nfl_px"]
    names = ("rnfl_gcl", "ipl_inl", "inl_opl", "opl_onl", "is_os")
    surfaces(os.path.join(EYES, "peripapillary.vol"), path("averaged_o.h5"))
    with h5py.File(path("averaged_o.h5")) as f:
        found = {name: np.isfinite(f["layers/" + name][0]).mean() for name in names}
        averaged = {name: f["layers/" + name + "_path"][0] for name in names}
    assert min(found.values()) > 0.75 and sorted(found.values())[1] > 0.95, found
    assert np.nanmean(abs(averaged["rnfl_gcl"] - fibres)) < 1.2
    assert (averaged["ipl_inl"] - averaged["rnfl_gcl"] > 3).mean() > 0.97
    random = np.random.default_rng(3)
    field = np.sqrt(light / 2) * (random.standard_normal(light.shape) +
                                  1j * random.standard_normal(light.shape))
    field += np.sqrt(1e-3 / 2) * (random.standard_normal(light.shape) +
                                  1j * random.standard_normal(light.shape))
    with_speckle = layers_of(10 * np.log10(abs(field) ** 2 + 1e-9), "--pixel-um", SPACING, names=names)
    for name, least, most in (("ipl_inl", 0.9, 1.6), ("inl_opl", 0.5, 1.6), ("opl_onl", 0.85, 1.2)):
        off = with_speckle[name] - averaged[name]
        assert np.isfinite(off).mean() > least, (name, np.isfinite(off).mean())
        assert np.nanmean(abs(off)) < most, (name, np.nanmean(abs(off)))


@case
def nerve_fibres_over_the_angle():
    """a circle about the disc: fibres from temporal on, as the device has them; turned, of a left eye, of no known one"""
    need_data()
    with open(os.path.join(EYES, "peripapillary.vol"), "rb") as f:
        volume = bytearray(f.read())
    place = 2048 + 768 * 768 + 16  # where the circle begins and has its centre, mm
    x, y, centre_x, centre_y = struct.unpack_from("<4d", volume, place)

    def profile(name, eye, x, y, *more):
        struct.pack_into("<2s", volume, 84, eye)
        struct.pack_into("<2d", volume, place, x, y)
        with open(path(name + ".vol"), "wb") as f:
            f.write(volume)
        found, said = surfaces(path(name + ".vol"), path(name + ".h5"), "--force", "--json", *more)
        with h5py.File(path(name + ".h5")) as f:
            if "tsnit" not in f:
                return said, None
            sectors = f["tsnit"].attrs["sectors"].split(", ")
            assert np.allclose([found["tsnit"][k]["mean_um"] for k in sectors], f["tsnit/mean_um"][:])
            device = (f["device/nfl"][0] - f["device/ilm"][0]) * f.attrs["axis_spacing_um"][2]
            return (f["tsnit/angle_deg"][:], f["tsnit/rnfl_um"][:], f["tsnit/mean_um"][:], device,
                    f["thickness/rnfl"][0])

    angle, rnfl, means, device, lines = profile("circle", b"OD", x, y, "--png", path("circle.png"))
    assert abs(np.nanmean(rnfl - device)) < 6 and np.nanmean(abs(rnfl - device)) < 9
    assert np.array_equal(rnfl, lines.astype("f8"), equal_nan=True)  # it begins temporal
    ends = {1: (-45, 45), 2: (45, 85), 3: (85, 125), 4: (125, 235), 5: (235, 275), 6: (275, 315)}
    for sector, (first, end) in ends.items():
        inside = ((angle - first) % 360) < end - first
        assert abs(means[sector] - np.nanmean(rnfl[inside])) < 1e-6, sector
        assert abs(means[sector] - np.nanmean(device[inside])) < 14, sector
    assert abs(means[0] - np.nanmean(rnfl)) < 1e-6 and means[2] > means[1] and means[6] > means[4]
    # It begins above the disc: a quarter later. Of a left eye what is left of the disc is nasal.
    turned = profile("turned", b"OD", centre_x, centre_y - (centre_x - x))
    assert np.allclose(np.roll(turned[1], -192), rnfl, equal_nan=True) and turned[0][0] == 0
    left = profile("left", b"OS", x, y)
    assert np.allclose(np.roll(left[1], -384), rnfl, equal_nan=True)
    said, none = profile("unknown", b"??", x, y)
    assert none is None and "which eye is not known" in said


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
