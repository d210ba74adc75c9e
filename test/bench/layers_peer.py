#!/usr/bin/python3
"""Layers of the retina by octctl surfaces beside the shortest paths of Chiu et al. 2010 in plain numpy,
on the same pictures: one B-scan at a time, in depth pixels of the volume.

    test/bench/layers_peer.py OCTCTL EYES

EYES: a folder with peripapillary.png and .csv, an averaged B-scan traced by its device; speckle (of
contrast 1) and noise are added to it. The device draws Bruch's membrane, some 2 px below the RPE's
border: its mean is taken off both."""
import csv
import subprocess
import sys
import tempfile

import h5py
import numpy as np
from PIL import Image

DEPTH_UM, LINE_UM = 3.872, 15.6


def smooth(x, sigma, axis):
    taps = np.exp(-0.5 * (np.arange(-int(3 * sigma) - 1, int(3 * sigma) + 2) / sigma) ** 2)
    return np.apply_along_axis(lambda v: np.convolve(np.pad(v, len(taps) // 2, "edge"),
                                                     taps / taps.sum(), "valid"), axis, x)


def shortest(cost, step=3, price=0.02):
    """The path through all A-lines of least cost, [M][D]."""
    total, back = cost[0].copy(), []
    for row in cost[1:]:
        moves = np.stack([np.pad(total, step, constant_values=np.inf)[step + k:][:len(total)] +
                          price * abs(k) for k in range(-step, step + 1)])
        back.append(moves.argmin(0) - step)
        total = moves.min(0) + row
    path = [int(total.argmin())]
    for b in reversed(back):
        path.append(path[-1] + int(b[path[-1]]))
    return np.array(path[::-1])


def chiu(db):
    """ILM and RPE: the strongest rise, then below it the strongest fall."""
    grey = smooth(smooth(db, 2, 1), 2, 0)
    slope = np.gradient(grey, axis=1)
    scale = np.percentile(abs(slope), 99.5)
    rise, fall = np.clip(slope / scale, 0, 1), np.clip(-slope / scale, 0, 1)
    ilm = shortest(1 - rise)
    depth = np.arange(db.shape[1])
    fall = np.where(depth > ilm[:, None] + 100 / DEPTH_UM, fall, 0) * grey / grey.max()
    return ilm, shortest(1 - fall / fall.max())


def octctl_layers(octctl, db, folder):
    with h5py.File(f"{folder}/in.h5", "w") as f:
        f["db"] = db[None].astype("f4")
        f["db"].attrs["units"] = "dB"
    subprocess.run([octctl, "surfaces", f"{folder}/in.h5:/db", f"{folder}/out.h5", "--force", "--quiet",
                    "--pixel-um", f"{DEPTH_UM},{LINE_UM}"], check=True, stderr=subprocess.DEVNULL)
    with h5py.File(f"{folder}/out.h5") as f:
        return f["layers/ilm"][0], f["layers/rpe"][0], f["layers/rnfl_gcl"][0]


def main(octctl, eyes):
    light = (np.array(Image.open(f"{eyes}/peripapillary.png").convert("L")).T / 255.0) ** 4
    rows = list(csv.DictReader(open(f"{eyes}/peripapillary.csv")))
    truth = {k: np.array([float(r[k]) if r[k] else np.nan for r in rows])
             for k in ("ilm_px", "bm_px", "nfl_px")}
    tissue = np.median([light[j, int(truth["ilm_px"][j]):int(truth["bm_px"][j])].mean()
                        for j in range(len(light))])
    print("| noise, dB below the tissue | border | octctl, px | found | Chiu, px |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for snr in (30, 15, 10, 5):
            errors = {}
            for seed in range(4):
                random = np.random.default_rng(seed)
                field = np.sqrt(light) * (random.standard_normal(light.shape) + 1j *
                                          random.standard_normal(light.shape)) / np.sqrt(2)
                noise = np.sqrt(tissue / 10 ** (snr / 10) / 2) * (
                    random.standard_normal(light.shape) + 1j * random.standard_normal(light.shape))
                db = 10 * np.log10(abs(field + noise) ** 2 + 1e-9)
                ilm, rpe, nfl = octctl_layers(octctl, db, folder)
                peer = chiu(db)
                for name, got, other, key in (("ilm", ilm, peer[0], "ilm_px"),
                                              ("rpe", rpe, peer[1], "bm_px"),
                                              ("rnfl_gcl", nfl, None, "nfl_px")):
                    errors.setdefault(name, ([], []))
                    errors[name][0].append(got - truth[key])
                    errors[name][1].append(other - truth[key] if other is not None else
                                           np.full(len(got), np.nan))
            for name, (ours, theirs) in errors.items():
                ours, theirs = np.concatenate(ours), np.concatenate(theirs)
                if name == "rpe":
                    ours, theirs = ours - np.nanmean(ours), theirs - np.nanmedian(theirs)
                print(f"| {snr} | {name} | {np.nanmean(abs(ours)):.2f} | "
                      f"{100 * np.isfinite(ours).mean():.1f} % | "
                      + (f"{np.nanmean(abs(theirs)):.2f} |" if name != "rnfl_gcl" else "|"))


if __name__ == "__main__":
    main(*sys.argv[1:])
