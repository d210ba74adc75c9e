#!/usr/bin/env python3
"""Reconstructs an array: a simulated mirror, or the spectra of a .npy file with a k map.

    recon_array.py
    recon_array.py spectra.npy kmap.txt --out pictures.npy
"""
import argparse

import numpy as np
import octd

SAMPLES, LINES = 1024, 64


def mirror(depth_um):
    """Spectra of a mirror, u16 [1][LINES][SAMPLES], and the wavelengths of the samples."""
    wavelengths = np.linspace(800, 880, SAMPLES)  # nm
    k = 2e3 * np.pi / wavelengths                 # 1/um
    source = 2000 * np.exp(-(((wavelengths - 840) / 25) ** 2))
    phase = np.linspace(0, 12, LINES)[:, None]    # or the mean of the B-scan would take it away
    spectra = source * (1 + 0.5 * np.cos(2 * k * depth_um + phase))
    return np.round(spectra)[None].astype(np.uint16), wavelengths


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("spectra", nargs="?", help="uint16 [B][M][N], .npy")
    options.add_argument("kmap", nargs="?", help="camera pixels of equal steps in k, one a line")
    options.add_argument("--out", help="pictures, dB, .npy")
    given = options.parse_args()
    if given.spectra and not given.kmap:
        options.error("which k map do the spectra have? kmap is missing")
    if given.spectra:
        spectra = np.load(given.spectra, mmap_mode="r")
        engine = octd.Reconstructor(kmap=np.loadtxt(given.kmap), sample="f32")
    else:
        spectra, wavelengths = mirror(depth_um=200)
        engine = octd.Reconstructor(wavelengths=wavelengths, sample="f32")

    pictures = engine(spectra)  # dB [B][M][D]

    print(engine.engine)
    brightest = int(pictures.mean(axis=(0, 1))[20:].argmax()) + 20
    print(f"{spectra.dtype} {list(spectra.shape)} -> {pictures.dtype} {list(pictures.shape)}; "
          f"brightest at depth pixel {brightest}, {brightest * engine.axial_um:.1f} um")
    if given.out:
        np.save(given.out, pictures)


if __name__ == "__main__":
    main()
