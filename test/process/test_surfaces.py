#!/usr/bin/python3
"""octctl surfaces as its users see it: a synthetic macula from `synth` by `recon` to layers, judged by
the truth, and what is said of input that holds none."""
import csv
import math
import os
import subprocess

import h5py
import numpy as np
from PIL import Image

from octtest import case, main, program
from surfacesrig import (CROP, HERE, M, SECTORS, V, border, ok, path, refused, spread, surfaces,
                         truth, volume, write_bscans)


# ---- what is found ----

@case
def two_runs_give_the_same_bytes():
    """two runs: the same bytes, whatever FFTW's planner would measure"""
    files = []
    for run_number in range(4):
        name = path(f"twice{run_number}.h5")
        surfaces(volume("fixation"), path("twice.h5"))
        os.rename(path("twice.h5"), name)
        with open(name, "rb") as file:
            files.append(file.read())
    assert len(files[0]) > 1000 and all(f == files[0] for f in files)


@case
def layers_are_those_of_the_truth():
    """layers: ILM, RPE and thickness are those of the truth; all files say the same"""
    said, err = surfaces(volume(), path("o.h5"), "--csv", path("o.csv"), "--json", "--slab",
                         "ilm+10:ilm+40", "--slab", "rpe-50.0:rpe")
    assert err == "", err
    with h5py.File(path("o.h5")) as f, h5py.File(volume()) as r:
        ilm, rpe = f["surfaces/ilm"][:], f["surfaces/rpe"][:]
        um = r["bscans"].attrs["axis_spacing_um"]
        bscans = r["bscans"][:]
        assert ilm.shape == rpe.shape == (V, M) and ilm.dtype == np.float32
        assert np.isfinite(ilm).mean() > 0.98 and np.isfinite(rpe).mean() > 0.95
        off = ilm - border("ilm"), rpe - border("rpe")
        assert spread(off[0]) < 0.6 and spread(off[1]) < 1.1, (spread(off[0]), spread(off[1]))
        assert max(abs(np.nanmean(o)) for o in off) < 1, (np.nanmean(off[0]), np.nanmean(off[1]))
        thickness = f["thickness_um"][:]
        assert np.allclose(thickness, (rpe - ilm) * um[2], atol=1e-3, equal_nan=True)
        wrong = thickness - (border("rpe") - border("ilm")) * um[2]
        assert spread(wrong) < 2.5 and abs(np.nanmean(wrong)) < 2, (spread(wrong), np.nanmean(wrong))
        assert np.array_equal(f["surfaces/rpe_um"], thickness, equal_nan=True)
        assert np.nanmax(f["surfaces/ilm_um"]) == 0
        for name in "ilm", "rpe":
            quality = f[f"quality/{name}"][:]
            assert quality.shape == (V, M) and not np.isnan(quality).any() and quality.max() > 3
            assert f[f"surfaces/{name}"].attrs["units"] == "px"
        assert np.allclose(f["thickness_um"].attrs["axis_spacing_um"], um[:2])
        dims = f["thickness_um"].dims
        assert [d.label for d in dims] == ["bscan", "line"]
        for axis, step in enumerate(um[:2]):
            assert np.allclose(dims[axis][0][:], np.arange(f["thickness_um"].shape[axis]) * step)
        assert np.allclose(f.attrs["axis_spacing_um"], um) and f.attrs["source"] == volume()
        assert f.attrs["software"].startswith("octd") and f.attrs["eye"] == "OD"
        assert f.attrs["denoise"] == "local" and f.attrs["align"] == "yes"
        assert f["frames/shift_px"].shape == f["frames/fate"].shape == (V,)
        assert said["layers"]["ilm"]["found"] == np.isfinite(ilm).mean()
        assert math.isclose(said["thickness_um"]["mean"], np.nanmean(thickness), rel_tol=1e-5)
        check_table(ilm, rpe, thickness, um)
        check_grid(f, said["etdrs"], thickness, um)
        check_slabs(f, bscans, ilm, rpe, um)


def check_table(ilm, rpe, thickness, um):
    with open(path("o.csv")) as file:
        rows = list(csv.DictReader(file))
    names = ["ilm", "rnfl_gcl", "ipl_inl", "inl_opl", "opl_onl", "is_os", "rpe"]
    assert list(rows[0]) == ["bscan", "line", "x_um", "y_um", *[n + "_px" for n in names],
                             "thickness_um", *[n + "_quality" for n in names], "rnfl_um",
                             "angle_deg"]
    assert len(rows) == V * M

    def column(name):
        return np.array([float(row[name]) if row[name] else np.nan
                         for row in rows]).reshape(V, M)
    for name, values in ("ilm_px", ilm), ("rpe_px", rpe), ("thickness_um", thickness):
        assert np.allclose(column(name), values, rtol=1e-6, equal_nan=True), name
    b, j = np.mgrid[:V, :M]
    assert np.array_equal(column("bscan"), b) and np.array_equal(column("line"), j)
    assert np.allclose(column("x_um"), j * um[1]) and np.allclose(column("y_um"), b * um[0])


def check_grid(f, said, thickness, um):
    """By the definition, on A-lines that are divided finely."""
    fovea = f["etdrs"].attrs["fovea_px"]
    with h5py.File(path("s_bscansOD.h5")) as s:
        x, y = s["truth/fovea_um"][:]
    assert abs(fovea[0] * um[0] - y) < 120 and abs(fovea[1] * um[1] - x) < 120, (fovea, x, y)
    n = 8
    fine = np.repeat(np.repeat(thickness, n, 0), n, 1)
    b, j = np.mgrid[:V * n, :M * n]
    up = (fovea[0] - ((b + 0.5) / n - 0.5)) * um[0] / 1000
    right = ((j + 0.5) / n - 0.5 - fovea[1]) * um[1] / 1000
    radius, vertical = np.hypot(up, right), abs(up) >= abs(right)
    ring = np.digitize(radius, [0.5, 1.5, 3])
    side = np.where(vertical, np.where(up > 0, 0, 2), np.where(right > 0, 1, 3))
    assert f["etdrs"].attrs["sectors"] == ", ".join(SECTORS)
    for i, name in enumerate(SECTORS):
        here = ring == 0 if i == 0 else (ring == (i + 3) // 4) & (side == (i - 1) % 4)
        area = [0.5 ** 2, (1.5 ** 2 - 0.5 ** 2) / 4, (9 - 1.5 ** 2) / 4][(i + 3) // 4] * math.pi
        known = here & np.isfinite(fine)
        covered = known.sum() * um[0] * um[1] * 1e-6 / n ** 2 / area
        mean = f["etdrs/mean_um"][i]
        assert abs(f["etdrs/covered"][i] - min(1, covered)) < 0.01, (name, covered)
        assert np.isnan(mean) if not known.any() else abs(mean - fine[known].mean()) < 0.5, name
        shown = said[name]["mean_um"]
        assert shown is None if np.isnan(mean) else math.isclose(shown, mean, rel_tol=1e-12)
    assert said["eye"] == "OD" and said["fovea"] == "found" and said["superior"] == "first"


def check_slabs(f, bscans, ilm, rpe, um):
    """Means of pixels, parts of which count by their share: from a running sum between pixels."""
    total = np.concatenate([np.zeros((V, M, 1)), np.cumsum(bscans, axis=2, dtype=float)], axis=2)
    edges = np.arange(total.shape[2]) - 0.5

    def until(depths):
        return np.array([[np.interp(depths[b, j], edges, total[b, j]) for j in range(M)]
                         for b in range(V)])
    for name, first, last in (("ilm+10:ilm+40", ilm + 10 / um[2], ilm + 40 / um[2]),
                              ("rpe-50:rpe", rpe - 50 / um[2], rpe.astype(float))):
        mean = (until(last) - until(first)) / (last - first)
        slab = f[f"slabs/{name}"][:]
        assert f[f"slabs/{name}"].attrs["units"] == "dB"
        assert np.array_equal(np.isnan(slab), np.isnan(first)) and \
            np.nanmax(abs(slab - mean)) < 1e-2, (name, np.nanmax(abs(slab - mean)))


@case
def denoising_is_what_was_asked_for():
    """denoise: local and full are nearer to the truth than none, and say what they did"""
    errors = {}
    for how in "none", "local", "full":
        said, _ = surfaces(volume(), path("d.h5"), "--denoise", how, "--json", "--force")
        with h5py.File(path("d.h5")) as f:
            errors[how] = [spread(f[f"surfaces/{name}"][:] - border(name))
                           for name in ("ilm", "rpe")]
            assert f.attrs["denoise"] == said["denoise"] == how
            assert ("noise_px" in f["surfaces/ilm"].attrs) == (how != "none")
            assert ("weights" in f.attrs) == (how != "none")
            found = f["surfaces/ilm"][:]
    for how in "local", "full":
        assert errors[how][1] < errors["none"][1], errors
        assert errors[how][0] < 1.3 * errors["none"][0], errors  # it was smooth before
    surfaces(volume(), path("d.h5"), "--strength", "1e-3", "--force")
    with h5py.File(path("d.h5")) as f:
        assert f.attrs["strength_px"] == 1e-3
        weak = f["surfaces/ilm"][:]
    surfaces(volume(), path("d.h5"), "--denoise", "none", "--force")
    with h5py.File(path("d.h5")) as f:
        none = f["surfaces/ilm"][:]
    # But for strays, which are no noise, next to nothing.
    assert np.nanmedian(abs(weak - none)) < 0.4 * np.nanmedian(abs(found - none))


@case
def one_layer_and_two_eyes():
    """options: one layer alone; the left eye's nasal side; superior last; a fovea that is given"""
    said, err = surfaces(volume(), path("one.h5"), "--layers", "rpe", "--json", "--no-align",
                         "--csv", path("one.csv"), "--png", path("one.png"))
    assert list(said["layers"]) == ["rpe"] and "etdrs" not in said and err == ""
    with h5py.File(path("one.h5")) as f:
        assert set(f["surfaces"]) == {"rpe", "rpe_um"} and "thickness_um" not in f
        assert not f["frames/shift_px"][:].any() and f.attrs["align"] == "no"
    with open(path("one.csv")) as file:
        rows = list(csv.DictReader(file))
    assert all(row["ilm_px"] == row["thickness_um"] == row["ilm_quality"] == "" for row in rows)
    assert sum(row["rpe_px"] != "" for row in rows) > 0.9 * V * M
    given = volume(), path("e.h5"), "--json", "--fovea", "12,30", "--no-align"
    right = surfaces(*given)[0]["etdrs"]
    left = surfaces(*given, "--eye", "os", "--superior", "last", "--force")[0]["etdrs"]
    assert right["fovea_px"] == left["fovea_px"] == [12, 30] and left["fovea"] == "given"
    assert left["eye"] == "OS" and left["superior"] == "last"
    for ring in "inner", "outer":
        for one, other in ("nasal", "temporal"), ("superior", "inferior"):
            assert right[f"{ring} {one}"] == left[f"{ring} {other}"], ring
            assert right[f"{ring} {other}"] == left[f"{ring} {one}"], ring
    assert right["inner nasal"]["covered"] > 0.5 > right["inner temporal"]["covered"]
    said, err = surfaces(volume(eye=""), path("e.h5"), "--json", "--force", "--slab",
                         "rpe+5000:rpe+6000")
    assert said["etdrs"]["eye"] == "" and err.count("\n") == 2 and "--eye" in err, err
    assert "--slab rpe+5000:rpe+6000: in no A-line" in err, err


@case
def jumps_of_the_eye_are_undone():
    """align: B-scans that jump in depth have the same layers, as they lie, and the same thickness"""
    with h5py.File(volume()) as f, h5py.File(path("o.h5")) as o:
        bscans, um = f["bscans"][:], f["bscans"].attrs["axis_spacing_um"]
        calm = {name: o[name][:] for name in ("surfaces/ilm", "surfaces/rpe", "frames/shift_px")}
    jumps = np.random.default_rng(5).integers(-14, 15, V)
    jumped = np.stack([np.roll(b, jump, axis=1) for b, jump in zip(bscans, jumps)])
    args = path("jumps.h5"), path("j.h5"), "--pixel-um", ",".join(map(str, um[::-1])), "--eye", "od"
    write_bscans("jumps.h5", jumped)
    off = {}
    for how in "--align", "--no-align":
        surfaces(*args, how, "--force")
        with h5py.File(path("j.h5")) as f:
            off[how] = [spread(f[f"surfaces/{name}"][:] - jumps[:, None] - calm[f"surfaces/{name}"])
                        for name in ("ilm", "rpe")]
            shift = f["frames/shift_px"][:]
        if how == "--align":
            left = np.diff(shift - calm["frames/shift_px"] + jumps)
            assert np.sqrt(np.mean(left ** 2)) < 0.3, left
        else:
            assert not shift.any()
    assert off["--align"][0] < 0.3 and off["--align"][1] < 1.8, off
    assert off["--no-align"][0] > 1.1 * off["--align"][0], off
    assert off["--no-align"][1] > 2 * off["--align"][1], off


@case
def spacing_and_sides():
    """pictures of others: TIFF with depth downward, arrays, their spacing given and not known"""
    with h5py.File(volume()) as f:
        bscans, um = f["bscans"][:], f["bscans"].attrs["axis_spacing_um"]
    spacing = ",".join(map(str, um[::-1]))
    out, _ = surfaces(volume(), path("t.h5"), "--no-align")  # no last bits that hang on FFTW's plans
    assert "; the field cuts the grid: centre" in out, out
    with h5py.File(path("t.h5")) as f:
        ilm, thickness = f["surfaces/ilm"][:], f["thickness_um"][:]
    frames = [Image.fromarray(np.ascontiguousarray(b.T)) for b in bscans]
    frames[0].save(path("stack.tif"), save_all=True, append_images=frames[1:])
    np.save(path("array.npy"), bscans)
    with h5py.File(path("other.h5"), "w") as f:
        f["scan/volume"] = bscans.transpose(0, 2, 1)
        f["scan/volume"].attrs["axis_spacing_um"] = [um[0], um[2], um[1]]
    for inputs in ([path("stack.tif"), "--pixel-um", spacing],
                   [path("array.npy"), "--pixel-um", spacing],
                   [path("other.h5") + ":/scan/volume", "--depth", "down"]):
        _, err = surfaces(inputs[0], path("t.h5"), *inputs[1:], "--force", "--eye", "od",
                          "--no-align")
        assert err == "", err
        with h5py.File(path("t.h5")) as f:
            # Of what does not say that it is in dB the contrast is taken as a usual one.
            off = abs(f["surfaces/ilm"][:] - ilm), abs(f["thickness_um"][:] - thickness)
            assert np.isfinite(off[0]).mean() > 0.95, inputs
            assert np.nanmean(off[0]) < 1 and np.nanmean(off[1]) < 2, (
                inputs, np.nanmean(off[0]), np.nanmean(off[1]))
    said, err = surfaces(path("array.npy"), path("t.h5"), "--force", "--json", "--png",
                         path("t.png"), "--csv", path("t.csv"))
    assert "not known" in err and "as in pixels of 2.5 um" in err.split("\n")[0], err
    assert "thickness_px" in said and "etdrs" not in said
    with h5py.File(path("t.h5")) as f:
        assert "thickness_um" not in f and "ilm_um" not in f["surfaces"]
        assert np.allclose(f["thickness_px"], f["surfaces/rpe"][:] - f["surfaces/ilm"][:],
                           atol=1e-3, equal_nan=True)
    with open(path("t.csv")) as file:
        row = next(csv.DictReader(file))
    assert row["x_um"] == row["y_um"] == row["thickness_um"] == "", row


@case
def other_values_are_taken():
    """values: u8 pictures and pictures in counts have the same layers as those in dB"""
    with h5py.File(path("o.h5")) as f:
        ilm, rpe = f["surfaces/ilm"][:], f["surfaces/rpe"][:]
    volume()
    for name, keys, within in (("u8.h5", ["output.sample=u8"], 0.5),
                               ("counts.h5", ["output.sample=f32", "pipeline.log=no"], 0.01)):
        ok("recon", path("s_bscansOD.h5"), path(name), "--config",
           path("calibration/calibration.ini"), *(word for key in keys + [
               f"pipeline.crop_first={CROP}", "pipeline.crop_last=600"] for word in ("--set", key)))
        surfaces(path(name), path("v.h5"), "--force")
        with h5py.File(path("v.h5")) as f:
            for found, known in (f["surfaces/ilm"][:], ilm), (f["surfaces/rpe"][:], rpe):
                both = np.isfinite(found) & np.isfinite(known)
                assert both.mean() > 0.97, (name, both.mean())
                assert np.median(abs(found - known)[both]) < within, name


# ---- pictures ----

LAYER_COLOURS = (0x35, 0xc4, 0xff), (0xff, 0xa0, 0x1e)


def share_like(image, colour, within=40):
    pixels = np.asarray(image.convert("RGB")).astype(int)
    return (abs(pixels - colour).max(axis=2) <= within).mean()


@case
def pictures_show_it():
    """--png: thickness in colours with its scale, B-scans with both layers, relief and slabs"""
    surfaces(volume(), path("p.h5"), "--png", path("p.png"), "--slab", "ilm:rpe")
    names = ["p-bscans.png", "p-relief.png", "p-slab-ilm_rpe.png", "p.png"]
    assert sorted(n for n in os.listdir(HERE) if n.startswith("p") and n.endswith(".png")) == names
    pages = {name: Image.open(path(name)) for name in names}
    for name, page in pages.items():
        page.load()
        assert min(page.size) > 350 and max(page.size) < 2000, (name, page.size)
    for colour in LAYER_COLOURS:
        assert share_like(pages["p-bscans.png"], colour) > 1e-3
        assert share_like(pages["p-relief.png"], colour) == 0
    pixels = np.asarray(pages["p.png"].convert("RGB")).astype(int)
    coloured = (pixels.max(axis=2) - pixels.min(axis=2) > 40)
    assert coloured.mean() > 0.4, coloured.mean()
    slab = np.asarray(pages["p-slab-ilm_rpe.png"].convert("RGB")).astype(int)
    assert (slab.max(axis=2) - slab.min(axis=2)).max() < 10, "a slab is grey"
    blue = (0xa9, 0xc8, 0xec)
    with h5py.File(volume()) as f:
        bscans, spacing = f["bscans"][:], f["bscans"].attrs["axis_spacing_um"][::-1]
    bscans[7] = np.nan
    said, _ = surfaces(write_bscans("gap.h5", bscans), path("p.h5"), "--png", path("p.png"),
                       "--force", "--pixel-um", ",".join(map(str, spacing)), "--eye", "od", "--json")
    assert said["left_out"] == [{"bscan": 7, "reason": "blank"}]
    assert share_like(pages["p-relief.png"], blue, 6) + 0.002 \
        < share_like(Image.open(path("p-relief.png")), blue, 6) < 0.1


# ---- files ----

@case
def files_appear_together():
    """files: nothing is replaced without --force, no input, no recording; all of them or none"""
    good = path("o.h5")
    before = open(good, "rb").read()
    refused(1, "exists", volume(), good)
    refused(1, "exists", volume(), path("no.h5"), "--csv", path("o.csv"))
    refused(2, "", volume(), volume(), "--force")
    refused(2, "two outputs", volume(), path("no.h5"), "--csv", path("no.h5"))
    refused(2, "recording", path("array.npy"), volume(), "--force")
    refused(1, "p-relief.png", volume(), path("no.h5"), "--png", path("q.png"), "--csv",
            path("p-relief.png"))
    assert not os.path.exists(path("q.png"))
    full = subprocess.run(["prlimit", "--fsize=20000", program("octctl"), "surfaces", volume(),
                           path("no.h5")], capture_output=True, text=True)
    assert full.returncode == 1 and "File too large" in full.stderr, full
    assert open(good, "rb").read() == before
    assert not [n for n in os.listdir(HERE) if ".new" in n or n.startswith(".")], os.listdir(HERE)


@case
def options_that_do_nothing_are_refused():
    """options: what cannot be, and what has no effect, is one line with status 2"""
    v, no = volume(), path("no.h5")
    for words, arguments in [
            ("--layers", ["--layers", "nfl"]), ("--layers", ["--layers", "ilm,ilm"]),
            ("--denoise", ["--denoise", "much"]), ("--profile", ["--profile", "mine"]),
            ("--strength", ["--denoise", "none", "--strength", "1"]),
            ("--strength", ["--strength", "0"]), ("--steps", ["--steps", "0"]),
            ("--steps", ["--denoise", "none", "--steps", "1"]),
            ("--profile", ["--denoise", "none", "--profile", "octd"]),
            ("--profile", ["--denoise", "local", "--profile", "paper"]),
            ("--phi", ["--denoise", "none", "--phi", path("phi.h5")]),
            ("--align", ["--align", "--no-align"]), ("--pixel-um", ["--pixel-um", "1,,2"]),
            ("--pixel-um", ["--pixel-um", "1,2,3,4"]), ("--pixel-um", ["--pixel-um", "-1"]),
            ("--depth", ["--depth", "left"]), ("--eye", ["--eye", "both"]),
            ("--superior", ["--superior", "3"]), ("--fovea", ["--fovea", "3"]),
            ("--fovea", ["--fovea", f"0,{M}"]), ("needs ilm and rpe", ["--layers", "ilm", "--eye", "od"]),
            ("--slab", ["--slab", "ilm+40:ilm+10"]), ("--slab", ["--slab", "nfl:rpe"]),
            ("leaves out", ["--layers", "ilm", "--slab", "ilm:rpe"]),
            ("twice", ["--slab", "ilm:rpe", "--slab", "ilm+0:rpe"]),
            ("--skip", ["--skip", "1-"]), ("--fast", ["--fast"])]:
        refused(2, words, v, no, *arguments)
    refused(2, "--fovea", path("array.npy"), no, "--fovea", "3,3")
    refused(2, "--slab", path("array.npy"), no, "--slab", "ilm:ilm+30")
    refused(2, "one volume", v, path("o.h5") + ":/thickness_um", no)
    refused(2, "which volume", no)


@case
def bad_input_is_one_line():
    """input: spectra alone, nothing, damage, are one line and no file"""
    refused(1, "octctl recon", path("s_bscansOD.h5"), path("no.h5"))
    refused(1, "", path("absent.h5"), path("no.h5"))
    with open(volume(), "rb") as f, open(path("cut.h5"), "wb") as cut:
        cut.write(f.read(100000))
    refused(1, "cut.h5", path("cut.h5"), path("no.h5"))


def found_in(name, bscans, *arguments):
    """The shares of A-lines with an ILM and an RPE, and what was said on stderr."""
    said, err = surfaces(write_bscans(name, bscans), path("b.h5"), "--force", "--json", "--eye",
                         "od", "--pixel-um", "1.05,14.5,37.5", *arguments)
    with h5py.File(path("b.h5")) as f:
        return f["surfaces/ilm"][:], f["surfaces/rpe"][:], said, err


@case
def nothing_is_made_up():
    """input: noise, black and half a retina: what is not there is NaN, and a line says so"""
    random = np.random.default_rng(3)
    with h5py.File(volume()) as f:
        retina = f["bscans"][:]
    noise = 10 * np.log10(random.exponential(size=(20, M, 400)) * 100)
    for name, bscans in (("noise.h5", noise), ("black.h5", np.zeros((20, M, 400))),
                         ("nan.h5", np.full((20, M, 400), np.nan))):
        ilm, rpe, said, err = found_in(name, bscans, "--png", path("b.png"), "--csv",
                                       path("b.csv"), "--slab", "ilm:rpe")
        assert np.isnan(ilm).all() and np.isnan(rpe).all(), (name, np.isfinite(ilm).mean())
        assert err.count("\n") == 1 and "no layer found" in err, (name, err)
        assert said["thickness_um"]["mean"] is None and "etdrs" not in said
        assert len(open(path("b.csv")).readlines()) == 20 * M + 1
    half = retina.copy()
    half[:, M // 2:] = noise[:1, :1, :1] + random.normal(0, 5, half[:, M // 2:].shape)
    ilm, rpe, said, err = found_in("half.h5", half)
    assert np.isfinite(ilm[:, :M // 2 - 4]).mean() > 0.9
    assert np.isfinite(ilm[:, M // 2 + 4:]).mean() < 0.02, np.isfinite(ilm[:, M // 2 + 4:]).mean()
    assert np.isfinite(rpe[:, M // 2 + 4:]).mean() < 0.02
    top = int(truth("ilm").max()) + 60  # the ILM lies above what was kept
    ilm, rpe, said, err = found_in("cut.h5", retina[:, :, top:])
    assert np.isfinite(ilm).mean() < 0.3, np.isfinite(ilm).mean()


@case
def what_no_light_makes_is_left_out():
    """input: infinities and 1e38 here and there are as samples that did not come"""
    with h5py.File(volume()) as f:
        part = f["bscans"][10:26]
    random = np.random.default_rng(6)
    plain = found_in("plain.h5", part)
    for value in np.inf, 1e38, -1e38:
        wild = part.copy()
        wild[random.random(part.shape) < 1e-4] = value
        found = found_in("wild.h5", wild)
        for layer in 0, 1:
            assert np.isfinite(found[layer]).mean() > np.isfinite(plain[layer]).mean() - 0.02, value
            assert np.nanmedian(abs(found[layer] - plain[layer])) < 0.5, value
    for value in 1e10, 1e14:  # spikes that drown all else: little to go by, and no crash
        wild = part.copy()
        wild[random.random(part.shape) < 1e-4] = value
        found_in("spikes.h5", wild)


main()
