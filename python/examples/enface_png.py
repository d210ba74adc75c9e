#!/usr/bin/env python3
"""A recording from above: the mean of a slab of depths, as a PNG.

    enface_png.py volume.h5 enface.png --depths 200:260
"""
import argparse

import numpy as np
import octd
from PIL import Image


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("recording")
    options.add_argument("png")
    options.add_argument("--depths", default=":", help="first:end in depth pixels (all)")
    given = options.parse_args()
    first, end = (int(text) if text else None for text in given.depths.split(":"))

    with octd.open(given.recording) as recording:
        if recording.bscans is None:
            raise SystemExit(f"{given.recording}: no pictures; octctl recon makes them")
        rows = [recording.db(row)[:, first:end].mean(axis=1) for row in range(len(recording))]
        enface = np.stack(rows)  # dB [V][M]; NaN: the B-scan is missing
        um = recording.spacing_um

    lo, hi = np.nanpercentile(enface, [1, 99.5])
    grey = np.clip((np.nan_to_num(enface, nan=lo) - lo) / (hi - lo) * 255, 0, 255)
    Image.fromarray(grey.astype(np.uint8)).save(given.png)
    print(f"{given.png}: {enface.shape[1]} A-lines by {enface.shape[0]} B-scans of "
          f"{um[1]:.3g} by {um[0]:.3g} um, {lo:.1f} to {hi:.1f} dB")


if __name__ == "__main__":
    main()
