#!/usr/bin/python3
"""scripts/volume_png.py: the pictures that it makes of volumes, by what they must show."""
import os, subprocess, sys
import h5py
import numpy as np
from PIL import Image
from octtest import TOP, case, folder, main

V, M, D = 12, 16, 20
rng = np.random.default_rng(12)


def volume(name, db, spacing=(np.nan,) * 3, u8=True, limits=None):
    """db [V][M][D], as octd would have written it: u8 by each B-scan's own limits, or floats."""
    path = os.path.join(folder("volumes"), name)
    limits = np.array([(p.min(), p.max()) for p in db]) if limits is None else limits
    lo, hi = limits[:, 0, None, None], limits[:, 1, None, None]
    grey = np.clip(np.round((db - lo) / (hi - lo) * 255), 0, 255).astype("u1")
    with h5py.File(path, "w") as f:
        f["bscans"] = grey if u8 else db.astype("f4")
        f["bscans"].attrs["axis_spacing_um"] = np.array(spacing, float)
        f["frames/lo"], f["frames/hi"] = limits[:, 0], limits[:, 1]
        f["frames/valid"] = np.ones(len(db), "u1")
        f["frames/line_valid"] = np.ones(db.shape[:2], "u1")
    return path


def picture(*arguments):
    out = os.path.join(folder("volumes"), "out.png")
    subprocess.run([sys.executable, TOP + "/scripts/volume_png.py", *map(str, arguments), out],
                   check=True, stdout=subprocess.DEVNULL)
    image = Image.open(out)
    assert image.mode == "L"
    return np.asarray(image).astype(float)


def scene():
    """A layer whose brightness rises over the B-scans, with one bright speck in B-scan 3."""
    db = 20 + rng.normal(0, 1, (V, M, D))
    db[:, :, 5:10] += np.linspace(5, 25, V)[:, None, None]
    db[3, 8, 15] = 90
    return db


@case
def square_where_unknown():
    """a spacing that is not known means square pixels, not a micrometre"""
    for spacing in ((np.nan, np.nan, np.nan), (np.nan, 3, np.nan), (5, 5, 5)):
        path = volume("square.h5", scene(), spacing)
        assert picture(path, "--slab", f"0:{D}").shape == (V, M), spacing
    path = volume("square.h5", scene(), (1, np.nan, 4))
    assert picture(path, "--bscan", 3).shape == (D, M)
    path = volume("known.h5", scene(), (6, 3, 2))
    assert picture(path, "--slab", f"0:{D}").shape == (2 * V, M)
    assert picture(path, "--bscan", 3).shape == (D, round(M * 1.5))


@case
def common_units():
    """en face, B-scans with limits of their own are averaged in decibels, as their floats are"""
    db = scene()
    want = picture(volume("f32.h5", db, u8=False), "--slab", "5:10")
    got = picture(volume("u8.h5", db), "--slab", "5:10")
    assert np.abs(want - got).max() <= 3, np.abs(want - got).max()
    rows = got.mean(axis=1)
    assert (np.diff(rows) > 0).all(), rows  # brighter from B-scan to B-scan, the third too
    fixed = volume("fixed.h5", db, limits=np.tile([(0., 90.)], (V, 1)))
    assert np.abs(picture(fixed, "--en-face", "5:10") - want).max() <= 6


@case
def missing_is_black():
    """en face, what never came is black and moves no limit"""
    db = scene()
    want = picture(volume("whole.h5", db, u8=False), "--slab", "5:10")
    for u8 in (True, False):
        path = volume("gaps.h5", db, u8=u8)
        with h5py.File(path, "r+") as f:
            f["bscans"][5] = 0 if u8 else -120
            f["frames/valid"][5] = f["frames/lo"][5] = f["frames/hi"][5] = 0
            f["bscans"][7, 4:9] = 0 if u8 else -120
            f["frames/line_valid"][7, 4:9] = 0
        got = picture(path, "--slab", "5:10")
        assert not got[5].any() and not got[7, 4:9].any()
        there = got > 0
        assert there.sum() > .85 * there.size
        assert np.abs(got - want)[there].max() <= 8, np.abs(got - want)[there].max()


@case
def foreign_files():
    """a file without /frames is shown as it is"""
    path = os.path.join(folder("volumes"), "plain.h5")
    with h5py.File(path, "w") as f:
        f["bscans"] = np.tile(np.arange(D, dtype="u1") * 9, (V, M, 1))
        f["bscans"][6] = 0
    assert picture(path, "--bscan", 0).shape == (D, M)
    image = picture(path, "--slab", f"0:{D}")
    assert image[6].max() == 0 and image[0].min() == 255


def refusal(path, *arguments):
    done = subprocess.run([sys.executable, TOP + "/scripts/volume_png.py", path, *arguments,
                           os.path.join(folder("volumes"), "none.png")], text=True,
                          capture_output=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, (done.returncode, done.stderr)
    assert not os.path.exists(os.path.join(folder("volumes"), "none.png"))
    return done.stderr


@case
def files_that_are_otherwise():
    """what does not fit is told in one line"""
    for spacing in (np.array([1., 2.]), "3 um", np.float64(3)):
        path = volume("odd.h5", scene())
        with h5py.File(path, "r+") as f:
            f["bscans"].attrs["axis_spacing_um"] = spacing
        for how in (("--bscan", "3"), ("--slab", "5:10")):
            assert "odd.h5: /bscans: axis_spacing_um must be three" in refusal(path, *how), spacing
    for name in ("lo", "hi", "valid", "line_valid"):
        for row in (np.zeros((V + 1, M), "f8") if name == "line_valid" else np.zeros(V - 1),
                    np.array([b"x"] * V), None):
            path = volume("odd.h5", scene())
            with h5py.File(path, "r+") as f:
                del f["frames/" + name]
                if row is None:
                    f.create_group("frames/" + name)
                else:
                    f["frames/" + name] = row
            assert f"odd.h5: /frames/{name} must be numbers [{V}]" in \
                refusal(path, "--slab", "5:10"), name
    path = volume("odd.h5", scene())
    assert "B-scans 0 to 11" in refusal(path, "--bscan", str(V))
    assert "depths 0 to 20" in refusal(path, "--slab", f"0:{D + 1}")
    with h5py.File(path, "r+") as f:
        del f["bscans"]
        f["bscans"] = np.zeros(4)
    assert "/bscans must be numbers [B-scan]" in refusal(path, "--bscan", "0")


main()
