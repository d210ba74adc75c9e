#!/usr/bin/python3
"""octctl register --as volume and --as bscans as their users see them: volumes of the synthetic eye
against the truth of every A-line, and noisy B-scans of one place moved by known shifts."""
import csv
import json
import os

import h5py
import numpy as np

from octtest import case, folder, main, run

HERE = folder("register_volume")
SYNTH = ["--set", "scan.lines=120", "--set", "scan.bscans=90", "--set", "scan.width_um=300",
         "--set", "scan.line_rate_hz=40000", "--seed", "6"]


def path(name):
    return os.path.join(HERE, name)


def ok(*arguments):
    got, out, err = run("octctl", *arguments)
    assert got == 0, (arguments, got, out, err)
    return out


def register(*arguments, status=0):
    got, out, err = run("octctl", "register", *arguments)
    assert got == status, (arguments, got, out, err)
    if status:
        assert err.count("\n") == 1 and err.startswith("octctl register: "), err
    return err if status else out


def volume(motion):
    """A reconstructed volume of an eye that moves so; the truth stays in s_MOTION.h5."""
    made = path(f"r_{motion}.h5")
    if not os.path.exists(made):
        slow = ["--set", "scan.line_rate_hz=15000"] if motion == "unsteady" else []  # time to blink
        ok("synth", path(f"s_{motion}.h5"), "--motion", motion, *SYNTH, *slow)
        ok("recon", path(f"s_{motion}.h5"), made, "--set", "output.sample=f32", "--set",
           "pipeline.crop_first=100", "--set", "pipeline.crop_last=500")
    return made


def truth(motion):
    """Of each B-scan: the shift that undoes the motion (A-lines, depth), the same of the tissue's
    mean surface for the depth, and the part of it that is a blink."""
    with h5py.File(path(f"s_{motion}.h5")) as f:
        surfaces = np.stack([f[f"truth/surfaces_px/{name}"][:] for name in f["truth/surfaces_px"]])
        return (f["truth/line_shift_px"][:].mean(axis=1), -surfaces.mean(axis=(0, 2)),
                f["truth/blink"][:].mean(axis=1))


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def roughness(pictures):
    """Mean squared difference of neighbouring B-scans, where both have pixels."""
    difference = np.diff(pictures, axis=0)
    return float(np.nanmean(difference ** 2))


@case
def motion_is_undone():
    """volume: from B-scan to B-scan the shifts are those of the truth, axial and lateral"""
    said = json.loads(register(volume("fixation"), path("v.h5"), "--as", "volume", "--lateral",
                               "--csv", path("v.csv"), "--png", path("v.png"), "--json"))
    assert said["bscans"] == said["used"] == 90 and said["left_out"] == [], said
    shift, tissue, _ = truth("fixation")
    with h5py.File(path("v.h5")) as f, h5py.File(volume("fixation")) as before:
        found, moved = f["frames/shift_px"][:], f["bscans"][:]
        assert list(f["frames/used"]) == [1] * 90 and f["frames/reason"][:].sum() == 0
        assert np.isnan(f["frames/score"][0]) and f["frames/score"][1:].min() > 0.5
        lateral = np.diff(found[:, 0] - shift[:, 0])
        axial = np.diff(found[:, 1] - tissue)
        assert rms(lateral) < 0.15 and rms(axial) < 0.1, (rms(lateral), rms(axial))
        assert np.ptp(shift[:, 1]) > 2, "an eye that hardly moves shows nothing"
        # Moved B-scans lie on a canvas that holds them all; none is cut, and margins are NaN.
        top, left = f["bscans"].attrs["origin_px"]
        first = moved[0, int(top):int(top) + 120, int(left):int(left) + 400]
        assert np.allclose(first, before["bscans"][0], atol=1e-3) and np.isnan(moved[0]).any()
        covered = np.isfinite(moved).sum(axis=(1, 2))
        assert covered.min() >= 119 * 399, covered.min()
        assert roughness(moved) < 0.8 * roughness(before["bscans"][:])
    with open(path("v.csv")) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 90 and np.allclose([float(r["dx_px"]) for r in rows], found[:, 1], atol=1e-5)
    with h5py.File(path("v.h5")) as f:
        clock = f["frames/time_ns"][:].astype(float)
    assert clock[0] == 0 < clock[-1]  # of a recording that begins at 0, which is a time too
    assert np.allclose([float(r["time_s"]) for r in rows], clock * 1e-9)
    assert os.path.exists(path("v.png")) and os.path.exists(path("v-motion.png"))
    with h5py.File(path("v.h5")) as f:
        sd = f["frames/shift_sd_px"][:]
    print(f"# lateral {rms(lateral):.4f}, axial {rms(axial):.4f}; said {sd[1:].mean(axis=0)}")
    assert np.isnan(sd[0]).all() and (sd[1:] > 0).all() and sd[1:].max() < 1


@case
def as_good_as_motion_free():
    """volume: neighbours are as much alike as those of the same eye at rest, to 0.3 dB"""
    likeness = {}
    for motion in ("none", "fixation"):
        register(volume(motion), path("rest.h5"), "--as", "volume", "--lateral", "--force",
                 "--interpolation", "none")
        with h5py.File(path("rest.h5")) as f:
            likeness[motion] = 10 * np.log10(roughness(f["bscans"][:]))
    assert likeness["fixation"] < likeness["none"] + 0.3, likeness


@case
def blinks_are_left_out():
    """volume: blinks are left out, NaN, and cost nothing of the depth behind them"""
    said = json.loads(register(volume("unsteady"), path("u.h5"), "--as", "volume", "--json"))
    shift, tissue, blink = truth("unsteady")
    out = {one["frame"] for one in said["left_out"]}
    assert 5 <= (blink > 0.7).sum() <= 80, "another seed is needed"
    for b in range(90):
        assert (b in out) or blink[b] <= 0.6, (b, blink[b])
        assert (b not in out) or blink[b] >= 0.3, (b, blink[b])
    with h5py.File(path("u.h5")) as f:
        found, moved = f["frames/shift_px"][:], f["bscans"][:]
        for b in out:
            assert np.isnan(found[b]).all() and np.isnan(moved[b]).all()
            assert f["frames/reason"][b] == 1
        assert (found[~np.isnan(found[:, 0]), 0] == 0).all()
    assert "left_out" in said and said["dy_px"] == [0, 0], said


@case
def shifts_of_another_channel():
    """volume: given shifts move a volume as they say, and --skip leaves B-scans out"""
    with open(path("given.csv"), "w") as file:
        file.write("frame,dy_px,dx_px\n" + "".join(f"{b},{b % 3},{-2 * (b % 2)}\n"
                                                   for b in range(90)))
    out = register(volume("none"), path("given.h5"), "--as", "volume", "--shifts",
                   path("given.csv"), "--skip", "5,7-8")
    assert "87 of 90" in out and "5 (skipped), 7-8 (skipped)" in out, out
    with h5py.File(path("given.h5")) as f, h5py.File(volume("none")) as before:
        moved = f["bscans"][:]
        top, left = (int(v) for v in f["bscans"].attrs["origin_px"])
        for b in (0, 1, 2, 11):
            y, x = top + b % 3, left - 2 * (b % 2)
            assert np.allclose(moved[b, y:y + 120, x:x + 400], before["bscans"][b], atol=1e-3)
        assert np.isnan(moved[[5, 7, 8]]).all()


@case
def noisy_repeats():
    """bscans: repeats of a place, moved by known fractions, register in depth and along the lines"""
    random = np.random.default_rng(4)
    with h5py.File(volume("none")) as f:
        base = f["bscans"][40].astype(float)
    fy, fx = np.meshgrid(np.fft.fftfreq(120), np.fft.fftfreq(400), indexing="ij")
    spectrum = np.fft.fft2(base) * (np.hypot(fy, fx) < 0.25)
    shifts = random.uniform(-4, 4, (17, 2))
    shifts[0] = 0
    clean = [np.fft.ifft2(spectrum * np.exp(2j * np.pi * (fy * dy + fx * dx))).real[8:-8, 8:-8]
             for dy, dx in shifts]
    for noise, bound in ((0, 0.02), (0.5, 0.06), (1, 0.15)):
        frames = clean + noise * clean[0].std() * random.normal(size=np.shape(clean))
        with h5py.File(path("repeats.h5"), "w") as f:
            f["/bscans"] = np.float32(frames)
        register(path("repeats.h5"), path("mean.h5"), "--as", "bscans", "--reference", "0",
                 "--force", "--domain", "db", "--search", "12", "--csv", path("repeats.csv"))
        with h5py.File(path("mean.h5")) as f:
            error = f["shifts"][1:, 0] - shifts[1:]
            sd = f["frames/shift_sd_px"][:]
            assert f["frames/shift_sd_px"].attrs["axes"] in (b"dy, dx", "dy, dx")
            assert f.attrs["n_averaged"] == 17
            assert abs(np.nanmean(f["average"][:]) - np.mean(frames)) < 1
        off = np.sqrt((error ** 2).mean(axis=0))
        print(f"# noise {noise}: lateral {off[0]:.4f}, axial {off[1]:.4f} px RMS, "
              f"{off / sd[1:].mean(axis=0)} of what is said")
        assert (off <= bound).all(), (noise, off)
        if noise:
            assert ((0.5 < off / sd[1:].mean(axis=0)) & (off / sd[1:].mean(axis=0) < 2)).all(), sd
        with open(path("repeats.csv")) as file:
            table = [[float(row[name]) for name in ("dy_sd_px", "dx_sd_px")]
                     for row in csv.DictReader(file)]
        assert np.allclose(table, sd, rtol=1e-6), table


@case
def refusals():
    """volume: options that it does not take, one B-scan and volumes without a fit are one line"""
    assert "takes no --model" in register(volume("none"), path("x.h5"), "--as", "volume", "--model",
                                          "strips", status=2)
    assert "takes no --passes" in register(volume("none"), path("x.h5"), "--as", "volume",
                                           "--passes", "2", status=2)
    assert "takes no --slab" in register(volume("none"), path("x.h5"), "--as", "volume",
                                            "--slab", "3:9", status=2)
    with h5py.File(path("one.h5"), "w") as f:
        f["/bscans"] = np.zeros((1, 64, 64), "f4")
    with h5py.File(path("flat.h5"), "w") as f:
        f["/bscans"] = np.zeros((5, 64, 64), "f4")
    register(path("one.h5"), path("x.h5"), "--as", "volume", status=1)
    assert "fewer than two" in register(path("flat.h5"), path("x.h5"), "--as", "volume", status=1)
    assert "exists" in register(volume("none"), path("v.h5"), "--as", "volume", status=1)
    assert not os.path.exists(path("x.h5"))
    assert not [name for name in os.listdir(HERE) if ".new." in name]


main()
