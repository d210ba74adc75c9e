#!/usr/bin/python3
"""octctl register beside phase correlation (Kuglin and Hines 1975; a Hann window, the peak by parabolas) and the
cross-correlation upsampled to 1/100 px (Guizar-Sicairos 2008) in plain numpy, and StackReg, which is ImageJ's plug-in
(Thevenaz 1998; pip install pystackreg), where it is installed, on the same pairs with known shifts.

    test/bench/register_peer.py OCTCTL MOSAIC

MOSAIC: a folder with confocal_*.tif, AO-SLO pictures of photoreceptors, of which pairs are crops of 256 x 256, moved
by up to 20 px by their Fourier series, with white noise in both. RMS error of a coordinate over 16 pairs, px."""
import csv
import glob
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

try:
    from pystackreg import StackReg
except ImportError:
    StackReg = None


def rms(x):
    return f"{np.sqrt(np.mean(np.square(x))):.3f}"


def octctl(*arguments):
    subprocess.run([OCTCTL, *map(str, arguments), "--quiet"], check=True, capture_output=True)


def moved(spectrum, dy, dx):
    """By its Fourier series, low-passed at 0.4 cycles a pixel."""
    fy, fx = np.fft.fftfreq(spectrum.shape[0])[:, None], np.fft.fftfreq(spectrum.shape[1])[None]
    return np.fft.ifft2(spectrum * (np.hypot(fy, fx) < 0.4) * np.exp(-2j * np.pi * (fy * dy + fx * dx))).real


def upsampled(cross, at, steps=100):
    """The largest of the trigonometric polynomial within 1.5 px of a whole pixel."""
    fine = np.arange(-1.5 * steps, 1.5 * steps + 1) / steps
    rows, columns = (np.exp(2j * np.pi * np.outer(at[k] + fine, np.fft.fftfreq(cross.shape[k]))) for k in (0, 1))
    best = np.unravel_index((rows @ cross @ columns.T).real.argmax(), (len(fine), len(fine)))
    return np.array([at[k] + fine[best[k]] for k in (0, 1)])


def phase_correlation(a, b, whiten):
    window = np.hanning(a.shape[0])[:, None] * np.hanning(a.shape[1])
    cross = np.conj(np.fft.fft2((a - a.mean()) * window)) * np.fft.fft2((b - b.mean()) * window)
    cross = cross / (abs(cross) + 1e-12) if whiten else cross
    c = np.fft.ifft2(cross).real
    peak = np.array(np.unravel_index(c.argmax(), c.shape))
    at = [(p + n // 2) % n - n // 2 for p, n in zip(peak, c.shape)]
    if not whiten:
        return upsampled(cross, at)
    for k in (0, 1):  # the parabola through the peak and its neighbours
        before, middle, after = (c[tuple((peak + (np.arange(2) == k) * d) % c.shape)] for d in (-1, 0, 1))
        at[k] += (before - after) / 2 / (before - 2 * middle + after)
    return np.array(at)


def stackreg(a, b):
    return StackReg(StackReg.TRANSLATION).register(a, b)[1::-1, 2] if StackReg else np.full(2, np.nan)


def shifts(folder, mosaic):
    print("| noise sd / signal sd | octctl | phase correlation | cross-correlation, 1/100 px | StackReg |\n" + "| --- " * 5 + "|")
    picture = np.array(Image.open(sorted(glob.glob(f"{mosaic}/confocal_*.tif"))[0]).convert("F"))
    for noise in (0, 0.5, 1, 2):
        errors = [], [], [], []
        for seed in range(16):
            random = np.random.default_rng(seed)
            y, x = (random.integers(30, n - 290) for n in picture.shape)
            spectrum, truth = np.fft.fft2(picture[y - 30:y + 290, x - 30:x + 290]), random.uniform(-20, 20, 2)
            pair = [moved(spectrum, *s)[32:288, 32:288] for s in ((0, 0), truth)]
            pair = [p + noise * p.std() * random.standard_normal(p.shape) for p in pair]
            np.save(f"{folder}/pair.npy", np.array(pair, "f4"))
            octctl("register", f"{folder}/pair.npy", f"{folder}/pair.h5", "--reference", 0, "--csv",
                   f"{folder}/pair.csv", "--force")
            row = list(csv.DictReader(open(f"{folder}/pair.csv")))[1]
            errors[0].append(np.array([float(row["dy_px"]), float(row["dx_px"])]) + truth)
            errors[1].append(phase_correlation(*pair, True) - truth)
            errors[2].append(phase_correlation(*pair, False) - truth)
            errors[3].append(stackreg(*pair) - truth)
        print(f"| {noise} | " + " | ".join(rms(e) for e in errors) + " |")


if __name__ == "__main__":
    OCTCTL = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        shifts(scratch, sys.argv[2])
