#!/usr/bin/python3
"""octctl flow and octctl trace as users see them: against the independent reference of ../shared/data/flow,
and on vessels of octctl synth --flow, whose truth is known."""
import csv, json, shutil
import h5py, numpy as np
from octtest import *

SIZE = settings(scan=dict(lines=96, bscans=8, repeats=4, line_rate_hz=25600),
                pipeline=dict(crop_first=40, crop_last=360))
TISSUE, VESSEL, BELOW = 1, 2, 3


def path(name):
    return os.path.join(folder("flow"), name)


def vessels(name, *arguments, size=SIZE):
    if not os.path.exists(path(name)):
        ok("synth", path(name), "--flow", *size, *arguments)
    return path(name)


def flow(source, name, *arguments):
    out, err = ok("flow", source, path(name), "--force", "--backend", "cpu", *arguments)
    return out, err, h5py.File(path(name))


def reference(name, repeats, *arguments):
    """The reference's spectra by octctl flow, and its own results."""
    where = os.path.join(DATA, "flow", name)
    if not os.path.isdir(where):
        raise Skip("no ../shared/data/flow")
    keys = settings(camera=dict(samples=832), calibration=dict(wavelengths=f"{where}/wavelengths.txt"),
                    scan=dict(lines=96, bscans=repeats, line_rate_hz=25600),
                    pipeline=dict(crop_first=20, crop_last=340))
    truth = np.load(f"{where}/truth.npz")
    return flow(f"{where}/spectra.raw", f"{name}.h5", "--repeats", repeats, *keys, *arguments)[2], truth


def auc(flows, still):
    """The area under the curve, and the share of flow above what 2 % of the still voxels are."""
    flows, still = flows[np.isfinite(flows)], np.sort(still[np.isfinite(still)])
    rank = (np.searchsorted(still, flows, "left") + np.searchsorted(still, flows, "right")) / 2
    return rank.mean() / still.size, (flows > np.quantile(still, 0.98)).mean()


@case
def as_the_reference():
    """d within 0.001 and z within 0.05 of the reference, shifts within 0.05 px, n0 within 5 %"""
    for name, repeats in ("fixation_r4_10db", 4), ("fixation_r2_10db", 2):
        file, truth = reference(name, repeats, "--noise", float(np.load(
            os.path.join(DATA, "flow", name, "truth.npz"))["n0"]) if os.path.isdir(
                os.path.join(DATA, "flow")) else 1)
        d, z = file["flow/d"][0], file["flow/z"][0]
        light = 10 ** (file["flow/intensity"][0] / 10)
        power = sum(np.roll(light, (j, k), (0, 1)) for j in (-1, 0, 1) for k in range(-4, 5)) / 27
        signal = (power > 2 * truth["n0"]) & np.isfinite(d) & np.isfinite(power)
        assert signal.mean() > 0.3
        assert np.abs(d - truth["d"])[signal].max() < 0.001
        assert np.abs(z - truth["z_score"])[signal].max() < 0.05
        assert np.abs(file["flow/shift_px"][0] - truth["shift_px"]).max() < 0.05
        own, _ = reference(name, repeats)
        assert abs(own["flow/noise"][0] / truth["n0"] - 1) < 0.05
        area, found = auc(own["flow/z"][0][truth["flow"]], own["flow/z"][0][truth["static"]])
        assert area > 0.97 and found > 0.88, (area, found)


@case
def vessels_are_found():
    """vessels of other seeds: area under the curve, share found, false ones, and the noise"""
    bounds = {("none", 10, 4): (0.985, 0.93), ("fixation", 10, 4): (0.985, 0.93),
              ("unsteady", 10, 4): (0.97, 0.85), ("fixation", 5, 4): (0.96, 0.80),
              ("fixation", 10, 2): (0.97, 0.85)}
    for (motion, db, repeats), (least_area, least_found) in bounds.items():
        z, labels = [], []
        for seed in (1, 2):
            name = f"{motion}{db}x{repeats}s{seed}.h5"
            size = SIZE + settings(scan=dict(repeats=repeats, bscans=2 * repeats))
            vessels(name, "--motion", motion, "--snr", db, "--seed", seed, size=size)
            out, err, file = flow(path(name), "found.h5")
            with h5py.File(path(name)) as source:
                labels.append(source["truth/labels"][:])
                n0 = source["truth/noise_counts2"][()]
            z.append(file["flow/z"][:])
            assert abs(np.median(file["flow/noise"]) / n0 - 1) < 0.06
            assert not file["flow/moved"][:].any() and abs(np.median(file["flow/snr_db"]) - db) < 2
        z, labels = np.array(z), np.array(labels)
        area, found = auc(z[labels == VESSEL], z[labels == TISSUE])
        false = (z[labels == TISSUE] > 3).mean()
        seen(f"{motion}, {db} dB, R {repeats}: AUC {area:.4f}, found {found:.3f}, false {false:.4f}")
        assert area > least_area and found > least_found and false < 0.025


@case
def blinks_and_bursts_have_moved():
    """a blink and a jump: their places are marked, and stay out of the angiogram"""
    size = SIZE + settings(scan=dict(bscans=24))
    name = vessels("bad.h5", "--blinks", 1, "--bursts", 1, "--seed", 5, size=size)
    out, err, file = flow(name, "bad-found.h5", "--csv", path("bad.csv"), "--json")
    with h5py.File(name) as source:
        spoiled = (source["truth/labels"][:] == 4).all(axis=(1, 2))
    assert spoiled.sum() == 2 and json.loads(out)["places"] == 6
    moved = file["flow/moved"][:].astype(bool)
    assert np.array_equal(np.isnan(file["slabs/all"][:]).all(axis=1), moved)
    assert moved[spoiled].any() and not moved[~spoiled].any(), (moved, spoiled)
    with open(path("bad.csv")) as table:
        rows = list(csv.DictReader(table))
    assert [row["moved"] in ("1", "yes") for row in rows] == list(moved)


@case
def what_is_not_known_is_nan():
    """a place that was lost is no still one; without a time between B-scans there is no velocity"""
    shutil.copy(vessels("fixation10x4s1.h5", "--motion", "fixation", "--seed", 1), path("gap.h5"))
    with h5py.File(path("gap.h5"), "a") as source:
        source["frames/valid"][4:8] = 0
        source["frames/time_ns"][:] = 0
    out, err, file = flow(path("gap.h5"), "gap-found.h5", "--csv", path("gap.csv"), "--velocity",
                          "--set", "velocity.between=bscans")
    for name in "bulk_decorrelation", "snr_db", "noise", "tau_us", "time_s":
        assert np.isnan(file["flow/" + name][1]), name
    assert file["flow/first_bscan"][1] == 4 and np.isnan(file["flow/d"][1]).all()
    with open(path("gap.csv")) as table:
        assert [int(row["place"]) for row in csv.DictReader(table)] == [0, 1]
    assert np.isnan(file["velocity/mm_s"][:]).all() and "no velocities" in out, out


@case
def tails_are_projected_off():
    """below vessels whose shadow flickers: at most 6 % are taken for flow with the projection"""
    name = vessels("tails.h5", "--tails", 0.7, "--snr", 20, "--seed", 3)
    with h5py.File(name) as source:
        labels = source["truth/labels"][:]
    share = []
    for projection in "0", "0.35":
        file = flow(name, "tails-found.h5", "--projection", projection)[2]
        z = file["flow/z"][:]
        share.append([(z[labels == what] > 3).mean() for what in (BELOW, VESSEL)])
    seen(f"tails {share[0][0]:.3f}, {share[1][0]:.3f}; flow {share[0][1]:.3f}, {share[1][1]:.3f}")
    assert share[0][0] > 0.1 and share[1][0] < 0.06 and share[1][1] > 0.9 * share[0][1]


@case
def live_and_offline_alike():
    """octctl analyse flow finds what octctl flow does; u8 is f32 in steps; figures are there"""
    name = vessels("fixation10x4s1.h5", "--motion", "fixation", "--seed", 1)
    ok("analyse", "flow,angiogram,velocity", name, path("live.h5"), "--force", "--backend", "cpu",
       *settings(output=dict(sample="f32"), flow=dict(min_z="0", projection="0")))
    out, err, file = flow(name, "found.h5", "--projection", "0", "--velocity", "--png", path("f.png"),
                          "--slab", "40:200", "--slab", "200:300")
    with h5py.File(path("live.h5")) as live:
        d, z = file["flow/d"][:], file["flow/z"][:]
        there = z > 0.01
        assert np.abs(live["analysis/flow"][:] - d)[there].max() < 0.02  # noise as it is found
        assert live["analysis/angiogram"].shape == (2, 96)
        assert live["analysis/velocity"].shape == file["velocity/mm_s"].shape == (8, 96, 320)
    top = np.nanmax(z[:, :, 40:200], axis=2)
    assert np.allclose(file["slabs/40:200"][:], top) and "slabs/200:300_structure" in file
    assert all(os.path.getsize(path(n)) > 2000 for n in ("f.png", "f-bscans.png", "f-velocity.png"))
    small = flow(name, "small.h5", "--projection", "0", "--sample", "u8")[2]
    assert np.abs(small["flow/d"][:] / 255 - np.nan_to_num(np.clip(d, 0, 1))).max() < 0.003
    assert np.abs(small["flow/z"][:] / 10 - np.nan_to_num(np.clip(z, 0, 25.5))).max() < 0.06
    one = flow(name, "one.h5", "--projection", "0", "--set", "pipeline.threads=1")[2]
    assert one["flow/z"][:].tobytes() == z.tobytes()


@case
def velocities_have_their_sign():
    """Doppler between A-lines: what flows deeper is positive, and the tissue rests"""
    size = settings(scan=dict(lines=400, bscans=2, repeats=2, line_rate_hz=100000, width_um=200),
                    pipeline=dict(crop_first=40, crop_last=360))
    signs = set()
    for seed in range(1, 9):
        name = vessels(f"doppler{seed}.h5", "--vessels", 1, "--snr", 25, "--seed", seed, "--motion",
                       "fixation", size=size)
        with h5py.File(name) as source:
            labels = source["truth/labels"][0]
            along = float(source["truth/vessels/direction"][0, 2] * source["truth/vessels/mm_s"][0])
        if abs(along) < 0.2:
            continue
        v = flow(name, "doppler-found.h5", "--velocity", "--window-um", "3")[2]["velocity/mm_s"][:]
        inside, still = np.nanmean(v[0][labels == VESSEL]), v[0][labels == TISSUE]
        seen(f"{along:.3f} mm/s in the middle, {inside:.3f} in the mean; still: {np.nanmean(still):.4f}")
        assert 0.5 < inside / along < 0.9 and abs(np.nanmean(still)) < 0.02
        signs.add(np.sign(along))
    assert len(signs) == 2


@case
def layers_at_rest_have_a_flat_trace():
    """traces of still tissue: what the noise makes of it, as told"""
    size = settings(scan=dict(lines=32, bscans=40, repeats=40, line_rate_hz=25600),
                    pipeline=dict(crop_first=40, crop_last=360))
    name = vessels("trace.h5", "--vessels", 0, "--snr", 20, "--seed", 6, size=size)
    for words in "previous", "first", "linked":
        out, err = ok("trace", name, path("trace-found.h5"), "--force", "--backend", "cpu", "--upper",
                      "60:80", "--lower", "180:200", "--reference", words, "--json", "--png",
                      path("t.png"))
        with h5py.File(path("trace-found.h5")) as file:
            nm, sd = file["trace/nm"][:], file["trace/sd_nm"][:]
            assert nm.shape == (40,) and "trace/spectrum" in file
        seen(f"{words}: {nm.std():.3f} nm rms, told {sd.mean():.3f}")
        assert 0.5 * sd.mean() < nm.std() < 1.3 * sd.mean()
    assert json.loads(out)["reference"] == "linked" and os.path.getsize(path("t.png")) > 2000


@case
def what_cannot_be():
    """bad input: one line, and no file"""
    name = vessels("fixation10x4s1.h5", "--motion", "fixation", "--seed", 1)
    out = path("none.h5")
    flat = settings(camera=dict(samples=832), scan=dict(lines=96, bscans=8),
                    calibration=dict(wavelengths=path("w.txt")))
    with h5py.File(name) as source:
        np.savetxt(path("w.txt"), source["truth/wavelengths_nm"][:])
        first = source["spectra"][:1]
    np.repeat(first, 8, axis=0).tofile(path("same.raw"))
    dark = first.mean(axis=1, keepdims=True) + np.random.default_rng(1).normal(0, 5, (8, 96, 832))
    dark.round().astype("<u2").tofile(path("dark.raw"))
    ok("recon", name, path("pictures.h5"), "--force", "--backend", "cpu")
    for status, words, *arguments in (
            (2, "scan.repeats is 1", name, out, "--set", "scan.repeats=1"),
            (2, "must divide", name, out, "--repeats", "3"),
            (1, "identical", path("same.raw"), out, "--repeats", "4", *flat),
            (1, "no tissue", path("dark.raw"), out, "--repeats", "4", *flat),
            (2, "too small", name, out, "--set", "pipeline.crop_first=40", "--set",
             "pipeline.crop_last=50"),
            (2, "nfl:rpe: no slab: LAYER", name, out, "--slab", "nfl:rpe"),
            (2, "or pixels A:B", name, out, "--slab", "nfl:rpe"),
            (2, "180:120: no slab: pixels A:B are two whole numbers, A below B", name, out,
             "--slab", "180:120"),
            (2, "up to 10000 um", name, out, "--slab", "ilm:ilm+20000"),
            (2, "first bound must lie above", name, out, "--slab", "ilm+40:ilm+10"),
            (2, "5000:6000: an A-line has pixels 0:", name, out, "--slab", "5000:6000"),
            (2, "100:6000: an A-line has pixels 0:", name, out, "--set", "flow.slab=100:6000"),
            (1, "spectra", path("pictures.h5"), out)):
        refused_by("flow", status, words, *arguments)
        assert not os.path.exists(out), words
    refused_by("trace", 2, "two layers", name, out)
    refused_by("trace", 2, "lower 5000:5010: an A-line has pixels 0:", name, out, "--upper", "1:5", "--lower", "5000:5010")
    refused_by("trace", 1, "stands out of the noise", path("dark.raw"), out, "--upper", "60:80",
               "--lower", "180:200", *flat)
    assert not os.path.exists(out)


main()
