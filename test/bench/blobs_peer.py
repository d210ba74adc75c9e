#!/usr/bin/python3
"""octctl cells and cones beside maxima of the Laplacian of a Gaussian (Lindeberg 1998) by scipy, which is told
the scale, on the same pictures with known places: films of octctl synth, and mosaics of some 460 cones, 5 to
15 px apart.

    test/bench/blobs_peer.py OCTCTL

Of both: the share of the cells that are found, the share of what is found that is a cell, and the RMS distance, px."""
import csv
import subprocess
import sys
import tempfile

import numpy as np
from scipy import ndimage, spatial


class Count:
    """Of what is found of the truth, none farther than `within`."""

    def __init__(self):
        self.found, self.places, self.off = 0, 0, []

    def add(self, found, truth, within):
        found = np.array(found).reshape(-1, 2)
        self.places += len(truth)
        self.found += len(found)
        if len(found):
            far = spatial.distance.cdist(found, truth)
            near = far.argmin(1)
            self.off += [far[i, j] for i, j in enumerate(near) if far[:, j].argmin() == i and far[i, j] < within]

    def __str__(self):
        n = len(self.off)
        return (f"{100 * n / self.places:.1f} %, {100 * n / max(self.found, 1):.1f} %, "
                f"{np.sqrt(np.mean(np.square(self.off))):.2f}")


def octctl(*arguments):
    subprocess.run([OCTCTL, *map(str, arguments), "--quiet"], check=True, capture_output=True)


def read(file, key=lambda row: 0):
    """y, x by key."""
    places = {}
    for row in csv.DictReader(open(file)):
        places.setdefault(key(row), []).append((float(row["y_px"]), float(row["x_px"])))
    return places


def blobs(picture, sigma, apart, share):
    """Maxima of -LoG above a share of the strongest ten's median, to part of a pixel by parabolas."""
    response = -ndimage.gaussian_laplace(picture.astype(float), sigma)
    top = response == ndimage.maximum_filter(response, 2 * int(apart) + 1)
    at = np.argwhere(top & (response > share * np.median(np.sort(response[top])[-10:])))
    padded, (y, x) = np.pad(response, 1, "edge"), at.T + 1
    middle, places = padded[y, x], at.astype(float)
    for k, (before, after) in enumerate(((padded[y - 1, x], padded[y + 1, x]), (padded[y, x - 1], padded[y, x + 1]))):
        places[:, k] += (before - after) / 2 / np.minimum(before - 2 * middle + after, -1e-12)
    return places


def cells(folder):
    print("| contrast / noise | octctl cells | LoG of the cells' radius |\n" + "| --- " * 3 + "|")
    for cnr in (8, 4, 2, 1.5):
        ours, peer = Count(), Count()
        for seed in range(3):
            film = f"{folder}/{cnr}-{seed}.npy"
            octctl("synth", film, "--cells", 30, "--n-frames", 10, "--cnr", cnr, "--seed", seed + 1)
            octctl("cells", film, f"{folder}/cells.csv", "--detect-only", "--force")
            truth, found = (read(file, lambda row: int(row["frame"]))
                            for file in (film + ".truth.csv", f"{folder}/cells.csv"))
            for k, picture in enumerate(np.load(film)):
                ours.add(found.get(k, []), truth[k], 5)
                peer.add(blobs(picture, 10 / 2 ** 0.5, 12, 0.5), truth[k], 5)
        print(f"| {cnr} | {ours} | {peer} |")


def mosaic_of(s, random, noise=0.06, blob=0.23, jitter=0.08):
    """Cones on a jittered hexagonal lattice, blobs of uneven brightness; the picture and the y, x that are in view."""
    n = int(20 * s)
    i, j = np.meshgrid(np.arange(-2, 24), np.arange(-2, 26))
    at = np.stack([j * s * 0.75 ** 0.5, (i + j % 2 / 2) * s], -1).reshape(-1, 2)
    at += jitter * s * random.standard_normal(at.shape)
    bright, grid, picture = np.exp(0.35 * random.standard_normal(len(at))), np.arange(n), np.full((n, n), 0.2)
    for (y, x), b in zip(at, bright):
        picture += b * np.outer(*(np.exp(-0.5 * ((grid - c) / (blob * s)) ** 2) for c in (y, x)))
    at = at[((at > -0.5) & (at < n - 0.5)).all(1)]
    return picture + noise * picture.max() * random.standard_normal(picture.shape), at


def cones(folder):
    print("\n| noise / the brightest | octctl cones | not counted | LoG of 0.15 of the spacing |\n" + "| --- " * 4 + "|")
    for noise in (0.02, 0.06, 0.12, 0.2):
        ours, peer, none = Count(), Count(), 0
        for seed, s in enumerate(np.linspace(5, 15, 12)):
            picture, truth = mosaic_of(s, np.random.default_rng(seed), noise)
            np.save(f"{folder}/mosaic.npy", picture.astype("f4"))
            octctl("cones", f"{folder}/mosaic.npy", "--places", f"{folder}/places.csv", "--force")
            found = read(f"{folder}/places.csv").get(0, [])
            none += not found
            if found:
                ours.add(found, truth, 0.4 * s)
            peer.add(blobs(picture, 0.15 * s, 0.35 * s, 0.2), truth, 0.4 * s)
        print(f"| {noise} | {ours} | {none} of 12 | {peer} |")


if __name__ == "__main__":
    OCTCTL = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        cells(scratch)
        cones(scratch)
