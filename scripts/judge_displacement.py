#!/usr/bin/env python3
"""How far the displacement of two synthetic volumes is from the truth.

    octctl synth eye.h5 --volumes 2 --motion fixation
    for v in 000 001; do octctl recon eye-$v.h5 bscans-$v.h5; done
    octctl register-volumes bscans-000.h5 bscans-001.h5 out.h5
    scripts/judge_displacement.py out.h5 eye-000.h5 eye-001.h5

Fixed voxel x is at x - u(x) of the moving volume. A-line j of B-scan b shows tissue at
(b + y[b][j], j + x[b][j]), z[b][j] deeper than at rest (synth/retina.h); the moving place
that shows the same lies between two of its B-scans and is found by inverting its motion. Where the
eye went back and shows the tissue more than once, the place nearest to the displacement counts.
Voxels that the moving volume does not show are left out. Distances are in voxels."""
import argparse

import h5py
import numpy as np


def motion(path):
    """[V][M][3] of a recording with /truth: B-scans, A-lines, depth pixels."""
    with h5py.File(path, "r") as file:
        truth = file["truth"]
        n_bscans, n_lines = file["spectra"].shape[:2]
        if "line_motion_um" in truth:
            um = truth["line_motion_um"][:]
        else:
            um = np.repeat(truth["motion_um"][:][:, None, :], n_lines, axis=1)
        width, height = truth["field_um"][:]
        x, y, z = np.moveaxis(um, -1, 0)
        return np.stack([y * n_bscans / height, x * n_lines / width, z / truth["axial_um"][()]], -1)


def places(fixed, moving, bscan, guess):
    """[M][3]: the true shift of each A-line of a fixed B-scan, NaN where nothing shows it. The one
    whose first part is nearest to guess [M]."""
    n_bscans, n_lines = moving.shape[:2]
    line = np.arange(n_lines)
    row, column = bscan + fixed[bscan, :, 0], line + fixed[bscan, :, 1]
    best, distance = np.full((n_lines, 3), np.nan), np.full(n_lines, np.inf)
    rows = moving[..., 0] + np.arange(n_bscans)[:, None]
    low = np.minimum(rows[:-1], rows[1:]).min(axis=1)
    high = np.maximum(rows[:-1], rows[1:]).max(axis=1)
    for k in np.flatnonzero((low <= row.max()) & (high >= row.min())):
        at = line.astype(float)
        for _ in range(4):  # the motion at a place depends on the A-line that shows it
            held = np.clip(at, 0, n_lines - 1)
            j = np.minimum(held.astype(int), n_lines - 2)
            w = (held - j)[:, None]
            a = moving[k, j] * (1 - w) + moving[k, j + 1] * w
            b = moving[k + 1, j] * (1 - w) + moving[k + 1, j + 1] * w
            step = 1 + b[:, 0] - a[:, 0]
            t = (row - k - a[:, 0]) / np.where(step == 0, np.nan, step)
            part = np.clip(np.nan_to_num(t), 0, 1)[:, None]
            eye = a * (1 - part) + b * part
            at = column - eye[:, 1]
        shift = np.stack([k + part[:, 0] - bscan, at - line, eye[:, 2] - fixed[bscan, :, 2]], -1)
        off = np.abs(shift[:, 0] - guess)
        use = (t >= 0) & (t <= 1) & (at >= 0) & (at <= n_lines - 1) & (off < distance)
        best[use], distance[use] = shift[use], off[use]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", help="file with /displacement [3][V][M][D]")
    parser.add_argument("fixed", help="recording with /truth")
    parser.add_argument("moving", help="recording with /truth")
    parser.add_argument("--depth", type=float, default=1, help="depth pixels of a voxel (1)")
    args = parser.parse_args()
    fixed, moving = motion(args.fixed), motion(args.moving)
    errors, n_all = [], 0
    with h5py.File(args.out, "r") as file:
        field = file["displacement"]
        depth = np.arange(field.shape[3])
        for b in range(field.shape[1]):
            u = field[:, b].astype(np.float32)
            true = places(fixed, moving, b, -u[0].mean(axis=1))
            true[:, 2] /= args.depth
            length = np.sqrt(sum((u[i] + true[:, i, None]) ** 2 for i in range(3)))
            to = depth + true[:, 2, None]
            n_all += length.size
            errors.append(length[(to >= 0) & (to <= depth[-1])].astype(np.float32))
    error = np.concatenate(errors)
    print(f"{error.size / n_all:.3f} of the voxels are seen; error mean {error.mean():.3f}, "
          f"median {np.median(error):.3f}, p95 {np.percentile(error, 95):.3f}, "
          f"most {error.max():.2f} voxels")


if __name__ == "__main__":
    main()
