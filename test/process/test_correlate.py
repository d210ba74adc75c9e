#!/usr/bin/python3
"""octctl correlate as its users see it: pictures of all kinds in, sums computed here directly, in
double precision, against what it writes."""
import json
import os
import signal
import subprocess
import time

import h5py
import numpy as np
from PIL import Image

from octtest import PATIENCE_S, at, case, main, program, refused_by, run

rng = np.random.default_rng(20261122)


def save(name, pixels):
    Image.fromarray(pixels).save(at(name))
    return at(name)


def smooth(shape, wavelength, seed):
    """A field of one wavelength: noise behind a ring in the plane of frequencies."""
    noise = np.random.default_rng(seed).normal(size=shape)
    fy, fx = np.fft.fftfreq(shape[0])[:, None], np.fft.fftfreq(shape[1])[None, :]
    ring = np.exp(-((np.hypot(fy, fx) - 1 / wavelength) / (0.1 / wavelength)) ** 2)
    field = np.fft.ifft2(np.fft.fft2(noise) * ring).real
    return field / field.std()


def overlap(f, g, dy, dx):
    """Those parts of f and g that lie over each other: f(p) and g(p + d)."""
    (h, w), (gh, gw) = f.shape, g.shape
    y0, y1, x0, x1 = max(0, -dy), min(h, gh - dy), max(0, -dx), min(w, gw - dx)
    return f[y0:y1, x0:x1], g[y0 + dy:y1 + dy, x0 + dx:x1 + dx]


def direct(f, g, radius, norm, f_valid=None, g_valid=None, keep_mean=False):
    """C of every shift, and N(0) / N(d), by the definition."""
    f, g = f.astype(float), g.astype(float)
    f_valid = np.ones(f.shape) if f_valid is None else f_valid.astype(float)
    g_valid = np.ones(g.shape) if g_valid is None else g_valid.astype(float)
    f, g = np.where(f_valid > 0, f, 0), np.where(g_valid > 0, g, 0)
    if not keep_mean:
        f = (f - f.sum() / f_valid.sum()) * f_valid
        g = (g - g.sum() / g_valid.sum()) * g_valid
    c, ratio = np.zeros((2 * radius + 1,) * 2), np.zeros((2 * radius + 1,) * 2)
    scale = np.sqrt((f * f).sum() * (g * g).sum())
    n_0 = np.sqrt(f_valid.sum() * g_valid.sum())
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            a, b = overlap(f, g, dy, dx)
            m_a, m_b = overlap(f_valid, g_valid, dy, dx)
            m = m_a * m_b
            n, p = m.sum(), (a * b).sum()
            at = dy + radius, dx + radius
            ratio[at] = n_0 / n if n else np.inf
            if norm == "eq1":
                c[at] = p / scale
            elif norm == "overlap":
                c[at] = (p / n) / (scale / n_0) if n else np.nan
            else:
                s_f, s_g = (a * m).sum(), (b * m).sum()
                v_f = (a * a * m).sum() - s_f * s_f / n
                v_g = (b * b * m).sum() - s_g * s_g / n
                c[at] = (p - s_f * s_g / n) / np.sqrt(v_f * v_g)
    return c, ratio


def correlate(*arguments, out="out.h5"):
    """Runs it with --c2d; returns the open file's arrays and attributes as a dict."""
    status, said, errors = run("octctl", "correlate", *arguments, at(out), "--force", "--c2d",
                               "--backend", "cpu")
    assert status == 0, errors
    with h5py.File(at(out), "r") as f:
        data = {}
        f.visititems(lambda name, o: data.update({name: o[()]}) if hasattr(o, "dtype") else None)
        data["attributes"] = dict(f.attrs)
    data["said"] = said
    return data


def assert_close(got, want, ratio, norm):
    if norm == "eq1":
        bound = np.full(want.shape, 1e-6)
    elif norm == "overlap":
        bound = 1e-6 * ratio
    else:
        bound = np.where(ratio <= 1 / 0.3, 1e-5, np.inf)
    known = np.isfinite(want) & np.isfinite(bound)
    assert (np.abs(got - want)[known] <= bound[known]).all(), np.nanmax((np.abs(got - want) / bound)[known])
    assert np.isfinite(got[known]).all()


def pictures():
    blobs = smooth((37, 52), 9, 1)
    return {
        "u8.png": np.clip(120 + 40 * blobs, 0, 255).astype("u1"),
        "narrow.png": (250 + rng.integers(0, 6, (31, 33))).astype("u1"),
        "u16.tif": np.clip(60000 + 50 * blobs, 0, 65535).astype("u2"),
        "f32.tif": (blobs * 1e-3).astype("f4"),
        "db.tif": (60 + 10 * blobs).astype("f4"),
    }


@case
def kinds():
    """u8, u16, f32 and dB pictures agree with direct sums in all norms"""
    for name, pixels in pictures().items():
        file, radius = save(name, pixels), min(pixels.shape) // 3
        for norm in "overlap", "eq1", "zncc":
            got = correlate(file, "--norm", norm)
            assert got["correlation/c2d"].shape == (1, 2 * radius + 1, 2 * radius + 1)
            want, ratio = direct(pixels, pixels, radius, norm)
            assert_close(got["correlation/c2d"][0], want, ratio, norm)
            assert got["attributes"]["norm"] == norm and got["attributes"]["mean"] == "global"
            assert got["attributes"]["max_shift_px"] == radius
            assert got["attributes"]["software"].startswith("octd ")
            assert got["attributes"]["source"] == file


@case
def whole_window():
    """shifts up to the side less one, and pictures as they are with --mean none"""
    pixels = pictures()["u8.png"]
    file, radius = save("u8.png", pixels), min(pixels.shape) - 1
    for norm in "overlap", "eq1":
        got = correlate(file, "--norm", norm, "--mean", "none", "--max-shift", radius)
        want, ratio = direct(pixels, pixels, radius, norm, keep_mean=True)
        assert_close(got["correlation/c2d"][0], want, ratio, norm)


@case
def least_overlap():
    """zncc of less than 0.3 of the largest overlap is NaN, and of more it is not"""
    pixels = pictures()["u8.png"]
    file, radius = save("u8.png", pixels), min(pixels.shape) - 1
    got = correlate(file, "--norm", "zncc", "--max-shift", radius)
    want, ratio = direct(pixels, pixels, radius, "zncc")
    assert_close(got["correlation/c2d"][0], want, ratio, "zncc")
    assert np.array_equal(np.isnan(got["correlation/c2d"][0]), 0.3 * ratio > 1)


@case
def masks():
    """--mask, --invalid and NaN leave pixels out, and do not fill them"""
    pixels = pictures()["u8.png"].copy()
    valid = np.ones(pixels.shape, bool)
    valid[5:12, 20:40] = False
    valid[30] = False
    mask = save("mask.png", valid.astype("u1"))
    invalid = np.where(valid, np.where(pixels == 7, 8, pixels), 7).astype("u1")
    nan = np.where(valid, pixels, np.nan).astype("f4")
    for arguments, used in (((save("u8.png", pixels), "--mask", mask), pixels),
                            ((save("invalid.png", invalid), "--invalid", 7), invalid),
                            ((save("nan.tif", nan),), nan)):
        for norm in "overlap", "eq1", "zncc":
            got = correlate(*arguments, "--norm", norm)
            want, ratio = direct(used, used, 12, norm, valid, valid)
            assert_close(got["correlation/c2d"][0], want, ratio, norm)


@case
def exact():
    """--exact gives the direct integer sum in every bit, of u8 and u16, with masks and without"""
    for seed in range(5):
        r = np.random.default_rng(seed)
        h, w = r.integers(16, 60, 2)
        valid = r.random((h, w)) > 0.2
        save("mask.png", valid.astype("u1"))
        for name, top in ("e8.png", 256), ("e16.tif", 65536):
            pixels = r.integers(0, top, (h, w)).astype("u1" if top == 256 else "u2")
            radius = int(min(h, w) - 1)
            for masked in False, True:
                more = ("--mask", at("mask.png")) if masked else ()
                got = correlate(save(name, pixels), "--exact", "--max-shift", radius, *more)
                values = (pixels * valid if masked else pixels).astype("i8")
                want = np.array([[int((a * b).sum()) for dx in range(-radius, radius + 1)
                                  for a, b in [overlap(values, values, dy, dx)]]
                                 for dy in range(-radius, radius + 1)])
                sums = got["correlation/sums"]
                assert sums.dtype == "i8" and np.array_equal(sums[0], want)


@case
def sign():
    """--with OTHER: the largest C is at the shift that puts the picture onto OTHER"""
    field = smooth((90, 110), 12, 3)
    f = save("moving.tif", field[20:70, 30:90].astype("f4"))
    g = save("other.tif", field[13:63, 34:94].astype("f4"))  # g(p + d) = f(p): d = (7, -4)
    for norm in "overlap", "eq1", "zncc":
        got = correlate(f, "--with", g, "--norm", norm, "--max-shift", 12)
        c = got["correlation/c2d"][0]
        assert np.unravel_index(np.nanargmax(c), c.shape) == (12 + 7, 12 - 4)
        want, ratio = direct(field[20:70, 30:90].astype("f4"), field[13:63, 34:94].astype("f4"), 12,
                             norm)
        assert_close(c, want, ratio, norm)


def average(c, radius):
    """C1D, radii and counts by the definition."""
    dy, dx = np.mgrid[-radius:radius + 1, -radius:radius + 1]
    far = np.hypot(dy, dx)
    bins = np.floor(far + 0.5).astype(int)
    inside = [bins == k for k in range(radius + 1)]
    return (np.array([c[i].mean() for i in inside]), np.array([far[i].mean() for i in inside]),
            np.array([i.sum() for i in inside]))


def first_ring(c1d, radius):
    """R_max by its definition: (px, c, trough px, height), or None."""
    k = 1
    while k + 1 < len(c1d):
        while k + 1 < len(c1d) and c1d[k + 1] <= c1d[k]:
            k += 1
        trough = k
        while k + 1 < len(c1d) and c1d[k + 1] > c1d[k]:
            k += 1
        if k + 1 == len(c1d):
            return None
        if c1d[k] - c1d[trough] >= 0.02:
            a = np.polyfit(radius[k - 1:k + 2] - radius[k], c1d[k - 1:k + 2], 2)
            return radius[k] - a[1] / (2 * a[0]), c1d[k], radius[trough], c1d[k] - c1d[trough]
    return None


@case
def rings():
    """C1D, its radii and R_max follow from C as defined; with a scale they are micrometres too"""
    pixels = (smooth((150, 200), 17, 5) > 0).astype("u1") * 255
    file, csv, png = save("ring.png", pixels), at("ring.csv"), at("ring_plot.png")
    got = correlate(file, "--max-shift", 60, "--pixel-um", "0.5", "--csv", csv, "--png", png)
    c1d, radius, shifts = average(got["correlation/c2d"][0].astype(float), 60)
    assert np.abs(got["correlation/c1d"][0] - c1d).max() < 1e-12
    assert np.abs(got["correlation/radius_px"] - radius).max() < 1e-12
    assert np.array_equal(got["correlation/shifts"], shifts) and abs(radius[1] - 1.207) < 1e-3
    ring = first_ring(c1d, radius)
    for name, want in zip(("r_max_px", "c", "trough_px", "height"), ring):
        assert abs(got["length/" + name][0] - want) < 1e-9, name
    assert abs(ring[0] / 17 - 1.1) < 0.05  # what the field was made of
    assert np.array_equal(got["attributes"]["um_px"], [0.5, 0.5])
    header, row = open(csv).read().splitlines()
    assert header == "frame,time_s,r_max_px,r_max_um,c,height,trough_px,file" and row.endswith("," + file)
    cells = row.split(",")
    assert cells[:2] == ["0", ""] and abs(float(cells[2]) - ring[0]) < 1e-6
    assert abs(float(cells[3]) - ring[0] / 2) < 1e-6
    plot = np.asarray(Image.open(png).convert("RGB"))
    assert plot.shape[0] > 400 and (plot[:5] == 255).all() and (plot == [176, 0, 32]).all(2).any()
    assert f"R_max {ring[0]:.2f} px ({ring[0] / 2:.4g} um)" in got["said"]


@case
def what_is_blank_is_left_out_and_named():
    """a blank picture of many is left out and named, the others are as alone; each row names its file"""
    fields = [save(f"many{i}.tif", smooth((90, 80), 9, i).astype("f4")) for i in range(4)]
    blank = save("many_blank.tif", np.full((90, 80), 3, "f4"))
    paths, csv, out = [blank, *fields[:2], blank, blank, *fields[2:]], at("many.csv"), at("many.h5")
    alone = [correlate(one, "--max-shift", 12)["correlation/c1d"][0] for one in fields]
    for more in (), ("--with", fields[0]):
        status, said, errors = run("octctl", "correlate", *paths, out, "--max-shift", 12, "--csv", csv,
                                   "--force", *more)
        assert status == 0 and not errors, errors
        assert "left out: 0 (no contrast), 3-4 (no contrast)" in said, said
        rows = [line.split(",") for line in open(csv).read().splitlines()[1:]]
        assert [row[-1] for row in rows] == paths
        with h5py.File(out) as got:
            assert [name.decode() for name in got["files"][:]] == paths
            c1d, r_max = got["correlation/c1d"][:], got["length/r_max_px"][:]
        for i, row in enumerate(rows):
            assert np.isnan(c1d[i]).all() == (i in (0, 3, 4)) and (row[2] == "") == bool(np.isnan(r_max[i]))
        if not more:
            assert (c1d[[1, 2, 5, 6]] == alone).all()
    status, said, errors = run("octctl", "correlate", blank, blank, at("none.h5"))
    assert status == 1 and f"{blank}: frame 0: no contrast" in errors and not os.path.exists(at("none.h5"))


@case
def no_scale_no_um():
    """without a scale, or with one that differs along the axes, cells of um are empty"""
    file, csv = at("ring.png"), at("empty.csv")
    for more in (), ("--pixel-um", "0.5,1.5"):
        status, _, errors = run("octctl", "correlate", file, "--csv", csv, "--force", *more)
        assert status == 0, errors
        cells = open(csv).read().splitlines()[1].split(",")
        assert cells[3] == "" and cells[2] != ""
    status, said, _ = run("octctl", "correlate", file, "--json")
    frame = json.loads(said)["frames"][0]
    assert status == 0 and frame["r_max_um"] is None and frame["r_max_px"] > 10


@case
def flattened():
    """--flatten subtracts the Gaussian mean of the valid pixels"""
    pixels = pictures()["u8.png"].astype(float) + np.linspace(0, 60, 52)[None, :]
    valid = np.ones(pixels.shape, bool)
    valid[8:15, 8:20] = False
    values = np.where(valid, pixels, np.nan).astype("f4")
    sigma, (h, w) = 6.0, pixels.shape

    def matrix(n):
        m = np.exp(-0.5 * (np.subtract.outer(np.arange(n), np.arange(n)) / sigma) ** 2)
        return np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 4 * sigma, m, 0)

    blur = lambda a: matrix(h) @ a @ matrix(w)
    filled = np.where(valid, values, 0).astype(float)
    flat = values - blur(filled) / blur(valid.astype(float))
    got = correlate(save("uneven.tif", values), "--flatten", sigma)
    want, ratio = direct(flat, flat, 12, "overlap", valid, valid)
    assert np.abs(got["correlation/c2d"][0] - want).max() < 2e-5
    bent, _ = direct(values, values, 12, "overlap", valid, valid)
    assert np.abs(bent - want).max() > 0.1  # it matters


@case
def sequence():
    """a sequence of growing length has R_max as each picture alone, and its slope; a picture without
    ring has none"""
    wavelengths = [8 + 1.5 * t for t in range(10)]
    files, rings_alone = [], []
    for t, wavelength in enumerate(wavelengths):
        pixels = (smooth((300, 300), wavelength, 100 + t) > 0).astype("u1") * 200
        files.append(save(f"growing{t:02}.png", pixels))
        f = np.fft.rfft2(pixels - pixels.mean(), (512, 512))
        p = np.fft.fftshift(np.fft.irfft2(np.abs(f) ** 2))[256 - 75:256 + 76, 256 - 75:256 + 76]
        n = np.multiply.outer(300 - np.abs(np.arange(-75, 76)), 300 - np.abs(np.arange(-75, 76)))
        c1d, radius, _ = average(p / n / (p[75, 75] / n[75, 75]), 75)
        rings_alone.append(first_ring(c1d, radius)[0])
    csv, plot = at("growing.csv"), at("growing_plot.png")
    got = correlate(*files, "--max-shift", 75, "--fit", "linear", "--csv", csv, "--png", plot)
    r_max = got["length/r_max_px"]
    assert np.abs(r_max - rings_alone).max() < 0.01
    slope, offset = np.polyfit(range(10), rings_alone, 1)
    assert abs(slope / (1.5 * 1.095) - 1) < 0.05
    table = np.genfromtxt(csv, delimiter=",", names=True)
    assert np.array_equal(table["frame"], range(10)) and np.abs(table["r_max_px"] - r_max).max() < 1e-6
    assert np.array_equal(got["frames/number"], range(10)) and not got["frames/time_ns"].any()
    status, said, _ = run("octctl", "correlate", *files, "--max-shift", 75, "--fit", "linear",
                          "--json", "--csv", csv, "--force")
    fit = json.loads(said)["fit"]
    assert status == 0 and fit["over"] == "frame" and fit["n"] == 10
    assert abs(fit["slope_px"] - slope) < 1e-2 and fit["r2"] > 0.995
    noise = save("noise.png", rng.integers(0, 256, (300, 300)).astype("u1"))
    got = correlate(files[0], noise, "--max-shift", 75)
    assert np.isnan(got["length/r_max_px"][1]) and abs(got["length/r_max_px"][0] - r_max[0]) < 1e-9
    assert "none in 1" in got["said"]


@case
def stacks():
    """a TIFF stack is its pictures in order; --frames takes some; --with of as many pairs them"""
    stack = [np.clip(128 + 50 * smooth((40, 48), 6 + t, t), 0, 255).astype("u1") for t in range(4)]
    images = [Image.fromarray(p) for p in stack]
    images[0].save(at("stack.tif"), save_all=True, append_images=images[1:], compression="tiff_lzw")
    images[3].save(at("turned.tif"), save_all=True, append_images=images[2::-1])
    got = correlate(at("stack.tif"))
    for t in range(4):
        want, ratio = direct(stack[t], stack[t], 13, "overlap")
        assert_close(got["correlation/c2d"][t], want, ratio, "overlap")
    one = correlate(at("stack.tif"), "--frames", "2:3")
    assert np.array_equal(one["correlation/c2d"][0], got["correlation/c2d"][2])
    got = correlate(at("stack.tif"), "--with", at("turned.tif"))
    for t in range(4):
        want, ratio = direct(stack[t], stack[3 - t], 13, "overlap")
        assert_close(got["correlation/c2d"][t], want, ratio, "overlap")


@case
def recordings():
    """B-scans and en face of a recording: dB by its limits, its clock, its scale; datasets of others"""
    raw, volume = at("raw.h5"), at("volume.h5")
    sizes = ("--set", "camera.samples=128", "--set", "scan.lines=48", "--set", "scan.bscans=24",
             "--set", "scan.width_um=240", "--set", "scan.height_um=120")
    for words in (("synth", raw, *sizes), ("recon", raw, volume, "--backend", "cpu")):
        status, _, errors = run("octctl", *words)
        assert status == 0, errors
    with h5py.File(volume, "r+") as f:
        u8, lo, hi = f["bscans"][:].astype(float), f["frames/lo"][:], f["frames/hi"][:]
        times, spacing = f["frames/time_ns"][:], f["bscans"].attrs["axis_spacing_um"]
        came = np.ones((24, 48), "u1")
        came[3, 10:14] = 0
        f["frames/line_valid"] = came
    db = (lo[:, None, None] + u8 * (hi - lo)[:, None, None] / 255).astype("f4")
    csv = at("clock.csv")
    got = correlate(volume, "--max-shift", 12, "--csv", csv)
    seconds = np.genfromtxt(csv, delimiter=",", names=True, usecols=(0, 1))["time_s"]
    assert np.allclose(seconds, (times - times[0]) * 1e-9, rtol=1e-8) and seconds[-1] > 0
    valid = np.broadcast_to(came[:, :, None], db.shape)
    for v in 0, 3, 23:
        want, ratio = direct(db[v], db[v], 12, "overlap", valid[v], valid[v])
        assert_close(got["correlation/c2d"][v], want, ratio, "overlap")
    assert np.array_equal(got["frames/time_ns"], times)
    assert np.array_equal(got["attributes"]["um_px"], spacing[1:])
    en_face = db[:, :, 20:30].astype(float).mean(2).astype("f4")
    got = correlate(volume, "--slab", "20:30")
    want, ratio = direct(en_face, en_face, 8, "overlap", came, came)
    assert_close(got["correlation/c2d"][0], want, ratio, "overlap")
    assert np.array_equal(got["attributes"]["um_px"], spacing[:2])
    with h5py.File(at("other.h5"), "w") as f:
        f["a/b"] = (u8[:2] * 3).astype(">i4")
    got = correlate(at("other.h5") + ":/a/b", "--max-shift", 12)
    want, ratio = direct(u8[1], u8[1], 12, "overlap")
    assert_close(got["correlation/c2d"][1], want, ratio, "overlap")
    status, _, errors = run("octctl", "correlate", raw)
    assert status == 1 and "octctl recon" in errors


def refused(status, *arguments, says=""):
    refused_by("correlate", status, says, *arguments)


@case
def bad_pictures():
    """pictures that cannot be correlated: one line, status 1, no file"""
    good = save("good.png", pictures()["u8.png"])
    flat = save("flat.png", np.full((37, 52), 9, "u1"))
    nan = save("allnan.tif", np.full((37, 52), np.nan, "f4"))
    few = np.full((37, 52), np.nan, "f4")
    few[:3] = rng.normal(size=(3, 52))
    colour = np.dstack([pictures()["u8.png"]] * 3)
    colour[4, 5, 1] ^= 255
    png = open(good, "rb").read()
    with open(at("cut.png"), "wb") as f:
        f.write(png[:len(png) // 2])
    save("whole.tif", pictures()["u16.tif"])
    tiff = open(at("whole.tif"), "rb").read()
    with open(at("cut.tif"), "wb") as f:
        f.write(tiff[:len(tiff) // 2])
    with open(at("text.png"), "w") as f:
        f.write("no picture\n")
    with h5py.File(at("line.h5"), "w") as f:
        f["line"] = np.arange(100.0)
    empty = at("empty")
    os.mkdir(empty)
    out = ("new.h5", "new.csv", "new.png")
    outputs = (at(out[0]), "--csv", at(out[1]), "--png", at(out[2]))
    for words, says in (
            ((flat,), "no contrast"), ((flat, flat, flat), "frame 0: no contrast"),
            ((nan,), "10 %"), ((save("few.tif", few),), "10 %"),
            ((good, "--invalid", 9999, "--mask", save("none.png", np.zeros((37, 52), "u1"))), "10 %"),
            ((save("one.png", np.zeros((1, 1), "u1")),), "16 to 16384"),
            ((save("line.png", np.zeros((1, 400), "u1")),), "16 to 16384"),
            ((save("wide.png", np.zeros((16, 65536), "u1")),), "16 to 16384"),
            ((good, "--max-shift", 37), "the largest for 52 x 37 pixels is 36"),
            ((good, save("other.png", np.zeros((37, 51), "u1"))), "all pictures must have one size"),
            ((good, "--mask", at("other.png")), "but the mask"),
            ((save("colour.png", colour),), "colour"), ((at("cut.png"),), "cut.png"),
            ((at("cut.tif"),), "cut.tif"), ((at("text.png"),), "neither PNG, TIFF, AVI"),
            ((empty,), "an empty folder"), ((at("absent*.png"),), "no file matches"),
            ((at("absent.png"),), "absent.png"),
            ((at("line.h5") + ":/line",), "1 axes"), ((at("line.h5") + ":/x",), "no dataset /x"),
            ((good, "--slab", "1:2"), "recordings"), ((good, "--frames", "1:2"), "has frames 0:1; --frames 1:2 asks for others"),
            ((save("f.tif", pictures()["f32.tif"]), "--exact"), "integer"),
            ((good, save("g.tif", np.full((37, 52), 0.5, "f4")), good, "--exact"), "frame 1: exact sums")):
        refused(1, *words, *outputs, says=says)


@case
def films_and_folders():
    """a film gives the same as a folder, a pattern and a list of its pictures"""
    film = rng.integers(0, 256, (11, 40, 33)).astype("u1")
    os.mkdir(at("film"))
    names = [save(f"film/img{i}.png", picture) for i, picture in enumerate(film)]
    np.save(at("film.npy"), film)
    tables = []
    for n, inputs in enumerate((names, [at("film")], [at("film/img*.png")], [at("film.npy")])):
        status, _, errors = run("octctl", "correlate", *inputs, "--csv", at(f"film{n}.csv"))
        assert status == 0, errors
        rows = open(at(f"film{n}.csv")).read().splitlines()
        tables.append("\n".join(row.rsplit(",", 1)[0] for row in rows))  # less the file
        assert all(row.endswith(".png" if n < 3 else "film.npy") for row in rows[1:])
    assert tables[0].count("\n") == 11 and tables == tables[:1] * 4
    with open(at("film.npy"), "r+b") as f:
        f.truncate(128 + 7 * 40 * 33 - 1)
    refused(1, at("film.npy"), says="film.npy: truncated; pictures that are whole: 6 of 11")


@case
def bad_calls():
    """calls that make no sense: one line, status 2"""
    good = at("good.png")
    for words in ((), (good, "--norm", "best"), (good, "--mean", "local"), (good, "--c2d"),
                  (good, "--exact", "--norm", "zncc"), (good, "--exact", "--flatten", "5"),
                  (good, "--pixel-um", "0"), (good, "--pixel-um", "1,2,3"), (good, "--fit", "cubic"),
                  (good, "--frames", "0:1", "--slab", "0:1"), (good, "--slab", "5:5"),
                  (good, "--max-shift", "0"), (good, "--max-shift", "1.5"), (good, "--flatten", "0"),
                  (good, "--frobnicate")):
        refused(2, *words)


@case
def outputs():
    """an output is never its input, nor a recording, nor replaced without --force"""
    good, there = at("good.png"), at("there.h5")
    for words in ((good, there), (good, "--csv", there), (good, "--png", there)):
        with open(there, "w") as f:
            f.write("kept")
        refused(1, *words, says="exists already")
        assert open(there).read() == "kept"
    refused(2, good, "--csv", good, "--force", says="is an input itself")
    refused(2, at("other.h5") + ":/a/b", at("other.h5"), "--force", says="is an input itself")
    refused(2, good, at("raw.h5"), "--force", says="holds a recording")
    refused(2, good, at("same.h5"), "--csv", at("same.h5"), says="two outputs")
    refused(2, good, at("same.h5"), "--csv", at("./same.h5"), "--force", says="two outputs")
    refused(1, good, "--csv", at("nowhere/x.csv"), says="nowhere")
    refused(2, good, "--png", at(), "--force", says="folder")
    status, _, errors = run("octctl", "correlate", good, there, "--force")
    assert status == 0, errors
    with h5py.File(there, "r") as f:
        assert "correlation/c1d" in f
    assert not [n for n in os.listdir(at()) if ".new." in n]


@case
def ended():
    """killed or interrupted it leaves nothing half-written under the output's name"""
    files = [save(f"many{i}.png", rng.integers(0, 256, (500, 500)).astype("u1")) for i in range(4)]
    target = at("ended.h5")
    for number in signal.SIGKILL, signal.SIGINT:
        with open(target, "w") as f:
            f.write("kept")
        process = subprocess.Popen([program("octctl"), "correlate", *(files * 100), target, "--force",
                                    "--c2d", "--backend", "cpu"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        half, end = f"{target}.new.{process.pid}", time.monotonic() + PATIENCE_S
        while not os.path.exists(half):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert open(target).read() == "kept"
        if number == signal.SIGINT:
            assert process.returncode == 1 and b"interrupted" in errors, errors
            assert not os.path.exists(half)
        else:
            os.remove(half)


main()
