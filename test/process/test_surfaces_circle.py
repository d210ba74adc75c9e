#!/usr/bin/python3
"""octctl surfaces of circle scans: the nerve fibres over the angle, in either eye, against the truth
and against those that a raster of the same eye has on the same circle."""
import csv
import h5py
import numpy as np
from octtest import *

W, UM, CENTRE = 3000.0, 2000.0, (150.0, -300.0)  # of the field; the circle's diameter and middle
CENTRED = dict(zip(("centre_x_um", "centre_y_um"), CENTRE))
CIRCLE = dict(lines=256, bscans=5, width_um=UM, height_um=W, pattern="circle", **CENTRED)
RASTER = dict(lines=100, bscans=100, width_um=W, height_um=W, **CENTRED)
MOST_UM = 5.0  # of difference in the mean; of the difference of the means 3


def volume(name, scan, *more):
    """Pictures of an eye at rest whose pit lies where circle and raster see it at one place."""
    ok("synth", at(name + ".in.h5"), *settings(scan=scan, camera=dict(samples=1024)), "--motion",
       "none", *more)
    ok("recon", at(name + ".in.h5"), at(name + ".h5"))
    ok("label", at(name + ".h5"), "--eye", "OD")
    return at(name + ".h5")


def measured(source, name, *options):
    said = json.loads(ok("surfaces", source, at(name), "--force", "--json", *options)[0])
    return said, h5py.File(at(name))


def angles(eye, up=1):
    """Of the A-lines, 0 temporal and 90 superior; x is to the right of a fundus, y downwards."""
    with h5py.File(at("circle.in.h5")) as file:
        x, y = (file["scan/" + n][0] - c for n, c in zip(("x_um", "y_um"), CENTRE))
    return np.degrees(np.arctan2(-up * y, -x if eye == "OD" else x)) % 360


@case
def the_truth():
    """the profile is the truth of the tissue on the circle, the mean of all B-scans"""
    source = volume("circle", CIRCLE)
    said, found = measured(source, "found.h5", "--csv", at("found.csv"), "--png", at("found.png"))
    angle, rnfl, lines = (found[n][:] for n in ("tsnit/angle_deg", "tsnit/rnfl_um",
                                                 "thickness/rnfl"))
    order = np.argsort(angles("OD"))
    assert np.allclose(angle, angles("OD")[order], atol=1e-3) and (np.diff(angle) > 0).all()
    assert np.allclose(rnfl, lines.astype("f8").mean(axis=0)[order], atol=1e-4)
    assert np.ptp(lines, axis=0).max() > 0  # they are several
    with h5py.File(at("circle.in.h5")) as file:
        px = file["truth/surfaces_px"]
        true = (px["nfl_gcl"][0] - px["ilm"][0])[order] * found.attrs["axis_spacing_um"][2]
    off = rnfl - true
    assert abs(off.mean()) < 3 and abs(off).mean() < MOST_UM, (off.mean(), abs(off).mean())
    assert np.corrcoef(rnfl, true)[0, 1] > 0.8, np.corrcoef(rnfl, true)[0, 1]
    assert abs(said["tsnit"]["G"]["mean_um"] - found["tsnit/mean_um"][0]) < 1e-9  # 15 digits
    assert "etdrs" not in said
    assert os.path.getsize(at("found.png")) > 5000
    with open(at("found.csv")) as file:
        rows = list(csv.DictReader(file))
    assert np.allclose([float(r["angle_deg"]) for r in rows[:256]], angles("OD"), atol=1e-3)
    assert np.allclose([float(r["rnfl_um"]) for r in rows], lines.ravel(), atol=1e-4)


@case
def the_same_as_a_raster():
    """a raster of the same eye has the same nerve fibres on that circle, to 5 um in the mean"""
    found = h5py.File(at("found.h5"))
    angle, rnfl = found["tsnit/angle_deg"][:], found["tsnit/rnfl_um"][:]
    raster = measured(volume("raster", RASTER), "raster.s.h5")[1]["thickness/rnfl"][:]
    x, y = (-np.cos(np.radians(angle)), -np.sin(np.radians(angle)))  # from the middle of both
    column, row = ((a * UM / 2 / W + 0.5) * 100 - 0.5 for a in (x, y))
    at_x, at_y = np.floor(column).astype(int), np.floor(row).astype(int)
    share_x, share_y = column - at_x, row - at_y
    on_circle = sum(raster[at_y + j, at_x + i] * np.abs(1 - i - share_x) * np.abs(1 - j - share_y)
                    for i in (0, 1) for j in (0, 1))
    off = rnfl - on_circle
    assert np.isfinite(off).mean() > 0.97
    assert abs(np.nanmean(off)) < 3 and np.nanmean(abs(off)) < MOST_UM, \
        (np.nanmean(off), np.nanmean(abs(off)))
    wrong = [np.nanmean(abs(rnfl - np.roll(on_circle, turn))) for turn in (64, 128, 192)]
    assert min(wrong) > 2 * np.nanmean(abs(off)), wrong  # it is not turned


@case
def both_eyes():
    """the A-lines of a left eye begin temporal, fall, and are turned round; so does an upward scan"""
    right = h5py.File(at("found.h5"))["thickness/rnfl"][:].astype("f8").mean(axis=0)
    for eye, superior, up in ("OS", "first", 1), ("OD", "last", -1), ("OS", "last", -1):
        ok("label", at("circle.h5"), "--eye", eye)
        found = measured(at("circle.h5"), "other.h5", "--superior", superior)[1]
        want = angles(eye, up)
        order = np.argsort(want)
        assert np.allclose(found["tsnit/angle_deg"][:], want[order], atol=1e-3), (eye, superior)
        assert np.allclose(found["tsnit/rnfl_um"][:], right[order], atol=1e-3), (eye, superior)
        assert found["tsnit"].attrs["eye"] == eye
        found.close()


@case
def which_eye_is_not_known():
    """of an unknown eye there is no profile, and a line says so; no word of B-scans' spacing"""
    ok("recon", at("circle.in.h5"), at("nobody.h5"))
    out, err = ok("surfaces", at("nobody.h5"), at("none.h5"))
    assert "tsnit" not in h5py.File(at("none.h5")) and "which eye is not known" in err, err
    assert "spacing" not in err and "ETDRS" not in err, err


main()
