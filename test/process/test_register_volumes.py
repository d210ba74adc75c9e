#!/usr/bin/python3
"""octctl register-volumes as its users see it: fields that are known are found, all files say the same,
groups, other grids, landmarks, and what is said of input that cannot be."""
import csv
import os
import signal
import subprocess
import time

import h5py
import numpy as np
from PIL import Image

from octtest import SLOW, Skip, case, main, program, until
from volumesrig import DIMS, HERE, jacobian, ncc, ok, pair, path, places, read_nifti, refused, register, \
    sample, smooth_noise, wave, write_nifti

SMOOTH = "--model", "nonlinear"


def read(name):
    """{dataset: values}, {attribute: value} of a file of results."""
    with h5py.File(path(name)) as f:
        found = {}
        f.visititems(lambda n, o: found.update({n: o[:]}) if isinstance(o, h5py.Dataset) else None)
        return found, dict(f.attrs)


# ---- one pair ----

@case
def what_is_known_is_found():
    """field: nearer to the truth than nothing; warped, J, NCC, SSD and levels follow from it"""
    fixed, moving = pair()
    said, err = register(fixed, moving, path("o.h5"), *SMOOTH, "--average", "--inverse", "--json")
    assert err.count("\n") == 1 and "spacing is not known" in err, err
    values, attrs = read("o.h5")
    f, m = np.load(fixed), np.load(moving)
    u, inner = values["displacement"], (slice(None),) + (slice(3, -3),) * 3
    wrong = np.linalg.norm((u - wave(DIMS, 1))[inner], axis=0).mean()
    assert wrong < 0.25 < np.linalg.norm(wave(DIMS, 1)[inner], axis=0).mean() / 3, wrong
    assert u.shape == (3, *DIMS) and u.dtype == np.float32
    x = places(DIMS)
    assert np.allclose(values["warped"], sample(m, x - u), atol=1e-4)
    assert np.allclose(values["jacobian"], jacobian(u), atol=2e-3)
    assert np.allclose(values["average"], (f + values["warped"]) / 2, atol=1e-6)
    w = values["inverse"]
    left = np.linalg.norm(w + np.stack([sample(k, x - w) for k in u]), axis=0)
    assert left[inner[1:]].max() < 0.02 and np.isfinite(attrs["inverse_left_voxels"]), left.max()
    one, = said["pairs"]
    assert abs(one["before"]["ncc"] - ncc(f, m)) < 0.01 and one["after"]["ncc"] > 0.98
    assert one["before"]["ssd"] > 5 * one["after"]["ssd"] > 0
    log_j = np.log(values["jacobian"].astype(float))
    j = one["jacobian"]
    assert np.allclose([j["least"], j["most"]], [np.exp(log_j.min()), np.exp(log_j.max())], rtol=1e-5)
    assert np.allclose([j["mean_log"], j["sd_log"]], [log_j.mean(), log_j.std()], atol=1e-4)
    assert j["folded"] == 0 and attrs["folded"] == 0
    assert np.isclose(one["displacement"]["mean_voxels"], np.linalg.norm(u, axis=0).mean(), rtol=1e-4)
    assert one["displacement"]["mean_um"] is None and said["um"] is None
    for name in "factor", "iterations", "energy_first", "energy_last", "ssd_last", "least_jacobian":
        assert np.allclose(values["levels/" + name], [row[name] for row in one["levels"]], rtol=1e-12)
    assert (values["levels/energy_last"] <= values["levels/energy_first"]).all()
    assert attrs["fixed"] == fixed and attrs["units"] == "voxel"
    assert attrs["source"].split("\n") == [fixed, moving]
    assert attrs["model"] == "nonlinear" and attrs["sigma_voxels"] == said["sigma"] \
        and attrs["lambda"] == said["lambda"]
    assert "element_size_um" not in attrs and "bscans_shift" not in values


@case
def volumes_without_jumps_need_no_model():
    """default: of volumes that nothing tore it is the field alone, and says so"""
    fixed, moving = pair()
    register(fixed, moving, path("alone.h5"), *SMOOTH)
    said, _ = register(fixed, moving, path("default.h5"), "--json")
    alone, default = read("alone.h5"), read("default.h5")
    assert default[1]["model"] == "both" and default[1]["kept_model"] == "nonlinear", default[1]
    assert said["pairs"][0]["kept_model"] == "nonlinear"
    assert "bscans_shift" not in default[0]
    for name in "displacement", "jacobian", "warped":
        assert np.array_equal(alone[0][name], default[0][name]), name


@case
def settings_reach_the_solver():
    """settings: spacing, sigma in um, levels, iterations, mask and profile are those that were given"""
    fixed, moving = pair()
    mask = np.zeros(DIMS, "u1")
    mask[:, :, :18] = 1
    np.save(path("mask.npy"), mask)
    said, err = register(fixed, moving, path("s.h5"), *SMOOTH, "--pixel-um", "2,4,8", "--sigma", "5", "--levels",
                         "2,1", "--iterations", "3,2", "--lambda", "0.01", "--mask",
                         path("mask.npy"), "--json")
    values, attrs = read("s.h5")
    assert err == "" and said["um"] == [8, 4, 2] and attrs["sigma_um"] == 5 and attrs["lambda"] == 0.01
    assert list(values["levels/factor"]) == [2, 1] and (values["levels/iterations"] <= [3, 2]).all()
    assert said["pairs"][0]["before"]["voxels"] == mask.sum() and attrs["mask"] == path("mask.npy")
    assert 0.5 * mask.sum() < attrs["compared_voxels"] <= mask.sum()
    with h5py.File(path("s.h5")) as f:
        for name in "warped", "jacobian", "displacement":
            assert list(f[name].attrs["element_size_um"]) == [8, 4, 2], name
        assert list(f["displacement"].attrs["um"]) == [8, 4, 2]
        assert f["displacement"].attrs["units"] == "voxel"
    said, _ = register(fixed, moving, path("s.h5"), *SMOOTH, "--force", "--levels", "2", "--iterations", "4",
                       "--profile", "paper", "--json")
    assert [row["factor"] for row in said["pairs"][0]["levels"]] == [2, 1]
    assert said["profile"] == "paper" and all(row["iterations"] <= 4 for row in said["pairs"][0]["levels"])
    # With the mask the rest is not looked at: what lies there may be anything.
    other = np.load(fixed)
    other[:, :, 20:] = smooth_noise(DIMS, 1.7, 77)[:, :, 20:]
    np.save(path("other.npy"), other)
    near = []
    for use in [], ["--mask", path("mask.npy")]:
        register(path("other.npy"), moving, path("s.h5"), *SMOOTH, "--force", *use)
        u = read("s.h5")[0]["displacement"]
        near.append(np.linalg.norm((u - wave(DIMS, 1))[:, 3:-3, 3:-3, 3:14], axis=0).mean())
    assert near[1] < near[0] and near[1] < 0.3, near


def colours_say_log_j(name):
    pixels = np.asarray(Image.open(path(name)).convert("RGB")).astype(int)
    assert (pixels[..., 0] - pixels[..., 2] > 20).mean() > 0.005
    assert (pixels[..., 2] - pixels[..., 0] > 20).mean() > 0.005


@case
def an_eye_that_moved_between_bscans():
    """both: two volumes of one eye are more alike than by either model; B-scans say their shifts"""
    geometry = ["--set", "scan.lines=36", "--set", "scan.bscans=20", "--set", "scan.width_um=500", "--set",
                "scan.height_um=400"]
    ok("synth", path("eye.h5"), "--seed", "3", "--volumes", "2", "--motion", "fixation", *geometry,
       "--calibration", path("cal"))
    made = sorted(n for n in os.listdir(HERE) if n.startswith("eye"))
    for i, name in enumerate(made):
        ok("recon", path(name), path(f"v{i}.h5"), "--config", path("cal/calibration.ini"), "--set",
           "output.sample=f32", "--set", "pipeline.crop_first=60", "--set", "pipeline.crop_last=480")
    after = {}
    for model in "bscans", "nonlinear", "both":
        said, err = register(path("v0.h5"), path("v1.h5"), path("b.h5"), "--model", model, "--force",
                             "--json", "--png", path("b.png"))
        values, attrs = read("b.h5")
        assert ("bscans_shift" in values) == (model != "nonlinear")
        assert np.allclose(values["jacobian"], jacobian(values["displacement"]), atol=2e-3), model
        folded = said["pairs"][0]["jacobian"]["folded"]
        assert folded == (values["jacobian"] <= 0).mean() and attrs["folded"] == folded
        assert ("the map folds" in err) == (folded > 0), err
        after[model] = said["pairs"][0]["after"]["ncc"]
        before = said["pairs"][0]["before"]["ncc"]
        if model == "nonlinear":
            colours_say_log_j("b-jacobian.png")
    assert after["both"] > max(after["bscans"], before) - 0.005, (before, after)
    assert values["bscans_shift"].shape == (20, 3) and values["bscans_score"].shape == (20,)
    with h5py.File(path("b.h5")) as b, h5py.File(path("v0.h5")) as v:
        assert np.allclose(b["warped"].attrs["element_size_um"], v["bscans"].attrs["axis_spacing_um"])
        assert b["warped"].attrs["units"] == "dB"
    for name in "b-checkerboard.png", "b-jacobian.png", "b-displacement.png":
        picture = Image.open(path(name))
        picture.load()
        assert min(picture.size) > 350 and max(picture.size) < 2000, (name, picture.size)
    # Tinted fields are half of the checkerboards.
    pixels = np.asarray(Image.open(path("b-checkerboard.png")).convert("RGB")).astype(int)
    assert 0.1 < (pixels[..., 0] - pixels[..., 2] > 8).mean() < 0.5


# ---- several ----

def same(a, b):
    assert np.array_equal(a, b), abs(a - b).max()


@case
def several_are_registered_one_by_one():
    """several: each onto FIXED as if alone, below /pair; the average is the mean of all"""
    fixed, first = pair()
    second = path("second.npy")
    np.save(second, sample(np.load(first), places(DIMS) + 0.6).astype("f4"))
    said, _ = register(fixed, first, second, path("m.h5"), *SMOOTH, "--average", "--json", "--png",
                       path("m.png"), "--nifti", path("m"))
    many, attrs = read("m.h5")
    assert [one["moving"] for one in said["pairs"]] == [first, second]
    assert attrs["source"].split("\n") == [fixed, first, second] and "warped" not in many
    for number, moving in (1, first), (2, second):
        register(fixed, moving, path("alone.h5"), *SMOOTH, "--force")
        alone, alone_attrs = read("alone.h5")
        for name in "warped", "displacement", "jacobian", "levels/energy_last":
            same(many[f"pair/{number}/{name}"], alone[name])
        with h5py.File(path("m.h5")) as f:
            assert f[f"pair/{number}"].attrs["moving"] == moving
            assert f[f"pair/{number}"].attrs["ssd_after"] == alone_attrs["ssd_after"]
    mean = (np.load(fixed) + many["pair/1/warped"] + many["pair/2/warped"]) / 3
    assert np.allclose(many["average"], mean, atol=1e-6)
    made = {n for n in os.listdir(HERE) if n.startswith("m-")}
    pictures = {f"m-{n}-{what}.png" for n in (1, 2) for what in
                ("checkerboard", "jacobian", "displacement")}
    volumes = {f"m-{n}-{what}.nii" for n in (1, 2) for what in ("warped", "displacement", "jacobian")}
    assert made == pictures | volumes | {"m-average.nii"}, made


@case
def a_group_is_registered_onto_its_mean():
    """--group: each onto the mean of those before it; the average of n is the mean of n"""
    fixed, first = pair()
    second = path("second.npy")
    register(fixed, first, second, path("g.h5"), *SMOOTH, "--group")
    group, _ = read("g.h5")
    register(fixed, first, path("alone.h5"), *SMOOTH, "--average", "--force")
    alone, _ = read("alone.h5")
    same(group["pair/1/displacement"], alone["displacement"])
    np.save(path("mean.npy"), alone["average"])
    register(path("mean.npy"), second, path("alone.h5"), *SMOOTH, "--force")
    same(group["pair/2/displacement"], read("alone.h5")[0]["displacement"])
    mean = (np.load(fixed) + group["pair/1/warped"] + group["pair/2/warped"]) / 3
    assert np.allclose(group["average"], mean, atol=1e-6)


# ---- grids, landmarks, NIfTI ----

def write_h5(name, values, um):
    with h5py.File(path(name), "w") as f:
        f["scan/volume"] = values
        f["scan/volume"].attrs["element_size_um"] = um
    return path(name) + ":/scan/volume"


@case
def other_grids_and_landmarks():
    """grid: a volume of finer and fewer voxels is resampled; places are mapped to its own voxels"""
    dims, um = (16, 24, 32), (6.0, 4.0, 3.0)
    whole = smooth_noise((64, 64, 64), 4, 5)
    x = places(dims)
    # In um about both centres; the moving volume has a finer depth, and fewer A-lines.
    other, other_um = (16, 18, 56), (6.0, 4.0, 2.0)
    centre = 31.5

    def take(shape, spacing):
        at = [(p - (n - 1) / 2) * s / 2 + centre for p, n, s in zip(places(shape), shape, spacing)]
        return sample(whole, at).astype("f4")
    fixed = write_h5("grid_f.h5", take(dims, um), um)
    moving = write_h5("grid_m.h5", take(other, other_um), other_um)
    with open(path("p.csv"), "w") as f:
        f.write("name,depth,line,bscan\na,15.5,11.5,7.5\nb,20,9,4\nc,3.25,14,12\n")
    register(fixed, moving, path("grid.h5"), *SMOOTH, "--points", path("p.csv"), "--points-out",
             path("q.csv"))
    values, attrs = read("grid.h5")
    assert attrs["resampled"] == "yes" and np.allclose(attrs["moving_scale"], [1, 1, 1.5])
    assert np.allclose(attrs["moving_origin"], [0, -3, 27.5 - 1.5 * 15.5])
    inner = np.s_[3:-3, 5:-5, 4:-4]
    assert np.abs(values["displacement"][(slice(None),) + inner]).mean() < 0.15
    assert ncc(values["warped"][inner], take(dims, um)[inner]) > 0.99
    with open(path("q.csv")) as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 3 and all(row["moving"] == "1" and row["moving_file"] == moving for row in rows)
    for row, at in zip(rows, [(7.5, 11.5, 15.5), (4, 9, 20), (12, 14, 3.25)]):
        assert [float(row[k]) for k in ("bscan", "line", "depth")] == list(at), row
        u = [sample(k, [np.array(c) for c in at]) for k in values["displacement"]]
        true = attrs["moving_origin"] + attrs["moving_scale"] * (np.array(at) - u)
        found = [float(row["moving_" + k]) for k in ("bscan", "line", "depth")]
        assert np.allclose(found, true, atol=1e-3), (row, true)


@case
def nifti_files_say_the_same():
    """--nifti: the volumes of OUT.h5, which come back as input with their spacing"""
    fixed, moving = pair()
    register(fixed, moving, path("n.h5"), *SMOOTH, "--pixel-um", "2,4,8", "--nifti", path("n"), "--average")
    values, _ = read("n.h5")
    for name in "warped", "jacobian", "average":
        found, pixdim = read_nifti(f"n-{name}.nii")
        same(found, values[name])
        assert np.allclose(pixdim[1:4], [0.002, 0.004, 0.008]), pixdim
    found, _ = read_nifti("n-displacement.nii")
    assert found.shape == (3, 1, *DIMS)
    # What is added to a fixed place, mm: -u along the depth, the file's first axis.
    assert np.allclose(abs(found[0, 0]), abs(values["displacement"][2]) * 0.002, atol=1e-6)
    said, _ = register(path("n-average.nii"), path("n-warped.nii"), path("again.h5"), *SMOOTH, "--json",
                       "--iterations", "1")
    assert np.allclose(said["um"], [8, 4, 2]) and said["pairs"][0]["before"]["ncc"] > 0.98


@case
def displacements_lead_from_scanner_to_scanner():
    """--nifti: what is added to a place of FIXED in mm leads to MOVING, whatever its grid and axes"""
    whole = smooth_noise((48, 48, 48), 3, 8)
    fixed_mm = np.array([[0, 0.2, 0, -7], [0.1, 0, 0, 3], [0, 0, -0.3, 5]])
    moving_mm = np.array([[0.05, 0, 0, 11], [0, 0, 0.3, -2], [0, 0.2, 0, 1]])
    shapes = (16, 20, 20), (16, 18, 36)
    depths = 1, 0.5
    volumes = []
    for shape, step in zip(shapes, depths):
        x = places(shape)
        at = [(p - (n - 1) / 2) * s + 23.5 for p, n, s in zip(x, shape, (1, 1, step))]
        volumes.append(sample(whole, at))
    files = write_nifti("scan0.nii", volumes[0], fixed_mm), write_nifti("scan1.nii", volumes[1], moving_mm)
    register(*files, path("scan.h5"), *SMOOTH, "--nifti", path("scan"), "--iterations", "5")
    values, attrs = read("scan.h5")
    assert np.allclose(attrs["moving_scale"], [1, 1, 2]) and list(attrs["element_size_um"].round(3)) == \
        [300, 200, 100]
    x = places(shapes[0])
    origin, scale = (attrs["moving_" + k].reshape(3, 1, 1, 1) for k in ("origin", "scale"))
    moved = origin + scale * (x - values["displacement"])

    def in_mm(to_mm, at):
        return np.einsum("rk,kbjd->rbjd", to_mm[:, :3], at[::-1]) + to_mm[:, 3].reshape(3, 1, 1, 1)
    added = in_mm(moving_mm, moved) - in_mm(fixed_mm, x)
    found, _ = read_nifti("scan-displacement.nii")
    assert np.allclose(found[:, 0], added * np.reshape([-1, -1, 1], (3, 1, 1, 1)), atol=1e-4)


# ---- files ----

@case
def files_appear_together():
    """files: nothing is replaced without --force, no input; all of them or none"""
    fixed, moving = pair()
    with open(path("o.h5"), "rb") as f:
        before = f.read()
    no = path("no.h5")
    refused(1, "exists", fixed, moving, path("o.h5"))
    refused(2, "", fixed, moving, moving, "--force")
    refused(2, "", path("grid_f.h5") + ":/scan/volume", path("grid_m.h5") + ":/scan/volume",
            path("grid_m.h5"), "--force")
    refused(1, "exists", fixed, moving, no, "--nifti", path("n"))
    refused(1, "exists", fixed, moving, no, "--png", path("b.png"))
    left = sorted(os.listdir(HERE))
    for size in 3000, 300000, 2000000:  # in OUT.h5, in NIfTI files
        full = subprocess.run(["prlimit", f"--fsize={size}", program("octctl"), "register-volumes", fixed,
                               moving, path("o.h5"), *SMOOTH, "--force", "--iterations", "1", "--nifti",
                               path("full")] + ["--inverse"] * (size > 10000), capture_output=True,
                              text=True)
        if size < 2000000:
            assert full.returncode == 1 and "File too large" in full.stderr, full
            assert sorted(os.listdir(HERE)) == left, size
            with open(path("o.h5"), "rb") as f:
                assert f.read() == before
    assert full.returncode == 0 and os.path.exists(path("full-displacement.nii")), full


@case
def a_signal_ends_it_and_leaves_nothing():
    """interrupt: SIGINT and SIGTERM leave no OUT, or the old one; so does kill -9"""
    dims = 48, 64, 64
    large = [path("large0.npy"), path("large1.npy")]
    for i, name in enumerate(large):
        np.save(name, smooth_noise(dims, 1, 20 + i))
    with open(path("old.h5"), "wb") as f:
        f.write(b"old")
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        for out in "none.h5", "old.h5":
            left = sorted(os.listdir(HERE))
            process = subprocess.Popen([program("octctl"), "register-volumes", *large, path(out), "--force",
                                        "--iterations", "100000", "--lambda", "1e-6", *SMOOTH],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            until(lambda: process.poll() is not None or any(".new." in n for n in os.listdir(HERE)), out)
            time.sleep(0.05)
            process.send_signal(number)
            _, err = process.communicate()
            rests = set(os.listdir(HERE)) - set(left)
            if number == signal.SIGKILL:
                assert process.returncode == -signal.SIGKILL and all(".new." in n for n in rests), rests
                for name in rests:
                    os.unlink(path(name))
            else:
                assert process.returncode == 1 and "interrupted; nothing was written" in err, err
                assert not rests, rests
            with open(path("old.h5"), "rb") as f:
                assert f.read() == b"old"


# ---- what cannot be ----

@case
def options_that_do_nothing_are_refused():
    """options: what cannot be, and what has no effect, is one line with status 2"""
    fixed, moving = pair()
    no = path("no.h5")
    for words, arguments in [
            ("--model", ["--model", "rigid"]), ("--profile", ["--profile", "mine"]),
            ("--lambda", ["--lambda", "-1"]), ("--sigma", ["--sigma", "0"]),
            ("0.5 to 32 voxels", ["--sigma", "40"]), ("1 to 64 um", ["--sigma", "70", "--pixel-um", "2,2,2"]),
            ("--levels", ["--levels", "0"]), ("--levels", ["--levels", "5"]),
            ("fall", ["--levels", "1,2"]), ("factor 8", ["--levels", "8,1"]),
            ("--iterations", ["--iterations", "0"]), ("levels", ["--iterations", "1,2,3,4"]),
            ("--reach", ["--reach", "1,2"]), ("--jump-price", ["--jump-price", "0"]),
            ("--pixel-um", ["--pixel-um", "0"]), ("--pixel-um", ["--pixel-um", "1,2,3,4"]),
            ("--lambda", ["--model", "bscans", "--lambda", "1"]),
            ("--mask", ["--model", "bscans", "--mask", moving]),
            ("--reach", [*SMOOTH, "--reach", "1,2,3"]),
            ("--group", ["--group"]), ("--points", ["--points", path("p.csv")]),
            ("--points", ["--points-out", path("p.csv")]), ("--fast", ["--fast"])]:
        refused(2, words, fixed, moving, no, *arguments)
    refused(2, "which FIXED", fixed, no)
    refused(2, "the most", fixed, *[moving] * 65, no)


@case
def bad_input_is_one_line():
    """input: what is missing, damaged, constant, empty or of another kind is one line and no file"""
    fixed, moving = pair()
    no = path("no.h5")
    np.save(path("constant.npy"), np.full(DIMS, 3.5, "f4"))
    np.save(path("empty.npy"), np.full(DIMS, np.nan, "f4"))
    np.save(path("zeros.npy"), np.zeros(DIMS, "u1"))
    np.save(path("flat.npy"), np.ones((3, 20, 20), "f4"))
    np.save(path("long.npy"), np.random.default_rng(1).random((DIMS[0], DIMS[1], 2 * DIMS[2] + 1)))
    np.save(path("plane.npy"), np.ones((20, 20), "f4"))
    with open(moving, "rb") as f, open(path("cut.npy"), "wb") as cut:
        cut.write(f.read(5000))
    known = write_h5("known.h5", np.load(moving), [1.0, 1.0, 1.0])
    fine = write_h5("fine.h5", np.load(moving), [1, 1, 2.5])
    for words, first, second in [
            ("absent.npy", path("absent.npy"), moving), ("absent.npy", fixed, path("absent.npy")),
            ("constant.npy: is constant: all values are 3.5", path("constant.npy"), moving),
            ("constant.npy: is constant", fixed, path("constant.npy")),
            ("empty.npy: is empty", path("empty.npy"), moving),
            ("empty.npy: is empty", fixed, path("empty.npy")),
            ("flat.npy", path("flat.npy"), moving), ("plane.npy", fixed, path("plane.npy")),
            ("cut.npy", fixed, path("cut.npy")), ("long.npy", fixed, path("long.npy")),
            (os.path.basename(fixed), fixed, path("long.npy")), ("known.h5", known, fine),
            ("fine.h5", known, fine)]:
        refused(1, words, first, second, no, *SMOOTH)
    for order in (fixed, known), (known, fixed):
        refused(2, "is not known", *order, no)
    refused(1, "zeros.npy: is 0 everywhere", fixed, moving, no, "--mask", path("zeros.npy"))
    refused(1, "long.npy", fixed, moving, no, "--mask", path("long.npy"))
    refused(1, "constant.npy", fixed, moving, path("constant.npy"), no, *SMOOTH, "--iterations", "1")
    for text, words in (("1,2\n", "line 1"), ("bscan,line,depth\n1,2,3\n1,2,36\n", "line 3"),
                        ("bscan,line,depth\n", "no places"), ("1,2,x\n1,2,3,\n1,,3\n", "line 3")):
        with open(path("bad.csv"), "w") as f:
            f.write(text)
        refused(1, words, fixed, moving, no, "--points", path("bad.csv"), "--points-out", path("no.csv"))


@case
def memory_is_asked_for_first():
    """memory: too large a volume is refused before it is read, with what it needs and what there is"""
    if SLOW:
        raise Skip("sanitizers take all the address space")
    shape = 256, 256, 256
    for name in "huge0.npy", "huge1.npy":
        np.lib.format.open_memmap(path(name), "w+", "f4", shape).flush()  # a hole
    began = time.monotonic()
    done = subprocess.run(["prlimit", "--data=900000000", program("octctl"), "register-volumes",
                           path("huge0.npy"), path("huge1.npy"), path("no.h5")], capture_output=True,
                          text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "256 x 256 x 256 voxels need" in done.stderr and "of the limit of data" in done.stderr, done
    assert not os.path.exists(path("no.h5")) and time.monotonic() - began < 5


main()
