"""What the tests of octctl register-volumes share: running it, textures whose deformation is known, and
what follows from a displacement, by numpy from the documents alone."""
import json
import os
import struct

import numpy as np

from octtest import folder, ok, refused_by

HERE = folder("volumes")


def path(name):
    return os.path.join(HERE, name)


def register(*arguments):
    """What it printed; that of --json read."""
    out, err = ok("register-volumes", *arguments)
    return (json.loads(out) if "--json" in arguments else out), err


def refused(status, words, *arguments):
    """One line on stderr, no output and no rests."""
    before = sorted(os.listdir(HERE))
    refused_by("register-volumes", status, words, *arguments)
    assert sorted(os.listdir(HERE)) == before, arguments


# ---- volumes ----

def places(dims):
    return np.stack(np.meshgrid(*map(np.arange, dims), indexing="ij")).astype(float)


def smooth_noise(dims, sigma, seed):
    """White noise by a Gaussian, from 0 to 1."""
    values = np.fft.rfftn(np.random.default_rng(seed).normal(size=dims))
    for axis, n in enumerate(dims):
        f = np.fft.rfftfreq(n) if axis == len(dims) - 1 else np.fft.fftfreq(n)
        shape = [-1 if i == axis else 1 for i in range(len(dims))]
        values *= np.exp(-2 * (np.pi * sigma * f) ** 2).reshape(shape)
    values = np.fft.irfftn(values, dims)
    return ((values - values.min()) / np.ptp(values)).astype("f4")


def sample(volume, at):
    """Trilinear at places [3][...], constant beyond the border."""
    volume = np.asarray(volume, float)
    low, part = [], []
    for axis, n in enumerate(volume.shape):
        x = np.clip(at[axis], 0, n - 1)
        i = np.minimum(x.astype(int), n - 2)
        low.append(i)
        part.append(x - i)
    total = 0
    for corner in np.ndindex(2, 2, 2):
        weight = 1
        for axis in range(3):
            weight = weight * (part[axis] if corner[axis] else 1 - part[axis])
        total = total + weight * volume[tuple(low[axis] + corner[axis] for axis in range(3))]
    return total


def wave(dims, size):
    """A displacement of up to `size` voxels along each axis, smooth, 0 at no border in particular."""
    x = [p / n for p, n in zip(places(dims), dims)]
    return size * np.stack([np.sin(2 * np.pi * x[1]) * np.cos(np.pi * x[2]),
                            np.cos(2 * np.pi * x[0] + 1) * np.sin(np.pi * x[2]),
                            np.sin(2 * np.pi * x[1] + 2) * np.cos(np.pi * x[0])])


def jacobian(u):
    """det(I - Du)."""
    d = np.array([[(i == k) - np.gradient(u[i], axis=k) for k in range(3)] for i in range(3)])
    return np.linalg.det(np.moveaxis(d, (0, 1), (-2, -1)))


def ncc(a, b):
    return np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]


def write_nifti(name, values, to_mm):
    """A NIfTI-1 file of [B-scan][A-line][depth]; to_mm: [3][4] of (depth, A-line, B-scan)."""
    to_mm = np.asarray(to_mm, float)
    raw = bytearray(352)
    struct.pack_into("<i", raw, 0, 348)
    struct.pack_into("<8h", raw, 40, 3, *values.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", raw, 70, 16, 32)  # float
    struct.pack_into("<8f", raw, 76, 1, *np.linalg.norm(to_mm[:, :3], axis=0), 0, 0, 0, 0)
    struct.pack_into("<f", raw, 108, 352)
    raw[123] = 2  # mm
    struct.pack_into("<2h", raw, 252, 0, 1)  # sform alone
    struct.pack_into("<12f", raw, 280, *to_mm.ravel())
    raw[344:348] = b"n+1\0"
    with open(path(name), "wb") as f:
        f.write(bytes(raw) + values.astype("<f4").tobytes())
    return path(name)


def read_nifti(name):
    """The values as [..][B-scan][A-line][depth], and pixdim."""
    with open(path(name), "rb") as f:
        raw = f.read()
    assert struct.unpack("<i", raw[:4])[0] == 348 and raw[344:347] == b"n+1"
    dim = struct.unpack("<8h", raw[40:56])
    start, = struct.unpack("<f", raw[108:112])
    values = np.frombuffer(raw, "<f4", offset=int(start))
    return values.reshape(dim[dim[0]:0:-1]), struct.unpack("<8f", raw[76:108])


DIMS = 20, 28, 36


def pair(seed=1, size=1.0, dims=DIMS):
    """FIXED.npy and MOVING.npy, made once: moving(x - u(x)) is fixed(x)."""
    names = [path(f"{what}{seed}_{size}.npy") for what in ("fixed", "moving")]
    if not os.path.exists(names[0]):
        moving = smooth_noise(dims, 1.7, seed)
        np.save(names[1], moving)
        np.save(names[0], sample(moving, places(dims) - wave(dims, size)).astype("f4"))
    return names
