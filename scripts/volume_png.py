#!/usr/bin/python3
"""Pictures of a recorded volume: a B-scan upright, or the volume from above (en face).

    volume_png.py FILE.h5 --bscan 120 bscan.png
    volume_png.py FILE.h5 --slab 200:260 enface.png     (mean over these depth pixels)

The aspect follows the file's axis spacings; where one of the two is unknown, pixels are square. En
face, grey values are first turned back into what they stand for (dB, or counts^2), each B-scan by
its own limits /frames/lo and /frames/hi; B-scans and A-lines that are missing are black.
"""
import argparse
import sys
import h5py
import numpy as np
from PIL import Image


class Unfit(Exception):
    """The file does not hold what was asked for, or holds it in another shape."""


def spacings(pictures):
    """Micrometres along B-scans, A-lines, depth; NaN where unknown."""
    try:
        values = np.asarray(pictures.attrs.get("axis_spacing_um", [np.nan] * 3), float)
    except (ValueError, TypeError):
        values = np.empty(0)
    if values.shape != (3,):
        raise Unfit("/bscans: axis_spacing_um must be three numbers")
    return np.where(values > 0, values, np.nan)


def frames_row(frames, name, shape):
    """/frames/NAME, which must be numbers of this shape."""
    row = frames[name]
    if getattr(row, "shape", None) != shape or row.dtype.kind not in "biuf":
        raise Unfit(f"/frames/{name} must be numbers [{']['.join(map(str, shape))}], as /bscans is")
    return row[:]


def save(image, rows_um, columns_um, path):
    """Writes a grey image, its pixels made square; never smaller than it was."""
    if not np.isfinite(rows_um * columns_um):
        rows_um = columns_um = 1
    image = Image.fromarray(np.clip(np.round(image), 0, 255).astype("u1"))
    finest = min(rows_um, columns_um)
    size = (round(image.width * min(columns_um / finest, 4)),
            round(image.height * min(rows_um / finest, 4)))
    image.resize(size, Image.BICUBIC).save(path)
    print(f"{path}: {size[0]} x {size[1]}")


def stretch(image):
    """Grey values by limits common to the whole image; NaN is black."""
    there = np.isfinite(image)
    if not there.any():
        return np.zeros(image.shape)
    low, high = np.percentile(image[there], (1, 99.8))
    return np.where(there, (image - low) / max(high - low, 1e-9) * 255, 0)


def en_face(volume, first, last):
    """The mean over depth [B-scan][A-line] in the pictures' own unit; NaN where nothing came."""
    pictures = volume["bscans"]
    shape = pictures.shape[:2]
    image = np.empty(shape)
    for b in range(len(pictures)):  # one at a time: a volume may be larger than the memory
        image[b] = pictures[b, :, first:last].mean(axis=1, dtype=float)
    frames = volume.get("frames", {})
    if pictures.dtype == "u1" and "lo" in frames and "hi" in frames:
        lo, hi = (frames_row(frames, name, shape[:1])[:, None] for name in ("lo", "hi"))
        image = lo + image / 255 * (hi - lo)
    if "valid" in frames:
        image[frames_row(frames, "valid", shape[:1]) != 1] = np.nan
    if "line_valid" in frames:
        image[frames_row(frames, "line_valid", shape) != 1] = np.nan
    return image


def draw(a, volume):
    if "bscans" not in volume:
        raise Unfit("holds no /bscans (reconstruct it with octctl recon)")
    pictures = volume["bscans"]
    if getattr(pictures, "ndim", 0) != 3 or pictures.dtype.kind not in "uif":
        raise Unfit("/bscans must be numbers [B-scan][A-line][depth]")
    across, along, depth = spacings(pictures)
    if a.bscan is not None:
        if not 0 <= a.bscan < len(pictures):
            raise Unfit(f"has B-scans 0 to {len(pictures) - 1}, not --bscan {a.bscan}")
        image = pictures[a.bscan].T.astype(float)
        save(image if pictures.dtype == "u1" else stretch(image), depth, along, a.png)
    else:
        first, last = a.depths
        if not 0 <= first < last <= pictures.shape[2]:
            raise Unfit(f"has depths 0 to {pictures.shape[2]}, not --slab {a.slab}")
        save(stretch(en_face(volume, first, last)), across, along, a.png)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--bscan", type=int, metavar="N")
    parser.add_argument("--slab", "--en-face", metavar="FIRST:LAST")  # the name of before, too
    parser.add_argument("png")
    a = parser.parse_args()
    if (a.bscan is None) == (a.slab is None):
        parser.error("give either --bscan or --slab")
    try:
        a.depths = [int(x) for x in (a.slab or "0:0").split(":")]
        _first, _last = a.depths
    except ValueError:
        parser.error(f"--slab {a.slab}: write it as FIRST:LAST, e.g. 200:260")
    try:
        with h5py.File(a.file) as volume:
            draw(a, volume)
    except (OSError, Unfit) as why:
        sys.exit(f"volume_png: {a.file}: {why}")


main()
