#!/usr/bin/python3
"""HDF5 files of vortex, written with h5py as formats/input/vortex.c says: their pictures are those of
the same samples, and files that hold something else, or are damaged, are refused."""
import os, random

import h5py, numpy as np

from inputrig import *
from octtest import case, main, run

COUNT = random.Random(4)


def put(place, volumes, matlab=False, name="spectra.h5", dtype="<u2", **more):
    """volumes: [volume][B-scan][A-scan][sample][channel]"""
    path = os.path.join(place, name)
    with h5py.File(path, "w", userblock_size=512 if matlab else 0) as file:
        if volumes is not None:
            n, channels = volumes.shape[3], volumes.shape[4]
            data = file.create_dataset(
                "data", (0,) + volumes.shape[1:], dtype, maxshape=(None,) + volumes.shape[1:],
                chunks=(1, 1, 1, n, channels), fillvalue=0, **more)
            data.resize(volumes.shape)
            data[:] = volumes
            if matlab:
                data.attrs["MATLAB_class"] = "uint16"
    if matlab:
        with open(path, "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")
    return path


def five(spectra, volumes=1, channels=1):
    """The B-scans as `volumes` volumes of one channel, the last of several."""
    v, m, n = spectra.shape
    whole = np.zeros((volumes, v // volumes, m, n, channels), "u2")
    for channel in range(channels):
        other = np.roll(spectra, channels - 1 - channel, axis=1)
        whole[..., channel] = other.reshape(volumes, v // volumes, m, n)
    return whole


def axis(place):
    return ["--set", "calibration.kmap=" + table(place, "kmap.txt", np.linspace(0, N - 1, N))]


@case
def same_pictures():
    """all B-scans of all volumes make the pictures of their samples, with MATLAB's header too"""
    place = clean("vortex")
    spectra = fringes(shape=(6, M, N))
    wanted = recon_plain(place, spectra, *axis(place))
    for volumes in (1, 3):
        for matlab, more in ((False, {}), (True, {}), (False, {"compression": 4})):
            path = put(place, five(spectra, volumes), matlab, "a.mat" if matlab else "a.h5", **more)
            assert_alike(recon(path, *axis(place)), wanted)


@case
def channels():
    """of several channels file.dataset takes one"""
    place = clean("vortex-channels")
    spectra = fringes()
    path = put(place, five(spectra, channels=2))
    refuse(path, "has 2 channels")
    for name, roll in (("data:0", 1), ("/data:1", 0)):
        wanted = recon_plain(place, np.roll(spectra, roll, axis=1), *axis(place))
        assert_alike(recon(path, "--set", f"file.dataset={name}", *axis(place)), wanted)
    for name in ("data:2", "data:", "data:x", "data:-1", "data:1x", "data:99999999999999999999"):
        refuse(path, "its channels are 0 to 1", "--set", f"file.dataset={name}")
    refuse(path, "of a vortex file it is data", "--set", "file.dataset=other")
    path = put(place, five(spectra))
    assert_alike(recon(path, "--set", "file.dataset=data", *axis(place)),
                 recon_plain(place, spectra, *axis(place)))


@case
def stopped_scan():
    """what a stopped scan had not reached is zeros, and the rest is read"""
    place = clean("vortex-stopped")
    whole = five(fringes(shape=(6, M, N)), 3)
    path = os.path.join(place, "spectra.h5")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", whole.shape, "<u2", chunks=(1, 1, 1, N, 1))
        data[:2] = whole[:2]
    whole[2:] = 0
    wanted = recon_plain(place, whole.reshape(6, M, N), *axis(place))
    assert_alike(recon(path, *axis(place)), wanted)


@case
def signed_samples():
    """signed samples are moved by half their range"""
    place = clean("vortex-signed")
    spectra = fringes().astype("i4") - 1000
    path = put(place, spectra[None, ..., None], dtype="<i2")
    wanted = recon_plain(place, (spectra + 32768).astype("u2"), *axis(place))
    assert_alike(recon(path, *axis(place)), wanted)


def empty(place, shape, dtype="<u2", **more):
    """A dataset of this shape of which one sample was written, if it has one; libhdf5 1.10 itself
    crashes when it writes to chunks of extents beyond 2^32."""
    path = os.path.join(place, "spectra.h5")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", shape, dtype, **more)
        if 0 < min(shape) and max(shape) < 1 << 31:
            data[0, 0, 0, :1, 0] = 7
    return path


def wrong(place):
    yield lambda: put(place, five(fringes()).astype("i1"), dtype="i1"), "that vortex processed"
    yield lambda: put(place, five(fringes()), dtype="u1"), "that vortex processed"
    yield lambda: put(place, five(fringes()), dtype="<u4"), "that vortex processed"
    yield lambda: put(place, five(fringes()), dtype="<f4"), "that vortex processed"
    yield lambda: put(place, five(fringes()), dtype="<f2"), "that vortex processed"
    yield lambda: empty(place, (0, V, M, N, 1), chunks=(1, 1, 1, N, 1), maxshape=(None,) * 5), \
        "holds no volume"
    yield lambda: empty(place, (1, V, M, N, 0), chunks=(1, 1, 1, N, 1), maxshape=(None,) * 5), \
        "holds no volume"
    for axis_ in (1, 2, 3):
        shape = [1, V, M, N, 1]
        shape[axis_] = 0
        yield lambda shape=shape: empty(place, tuple(shape), chunks=(1, 1, 1, N, 1),
                                        maxshape=(None,) * 5), "or empty"
    for shape in ((1 << 40, V, M, N, 1), (1, 1 << 40, M, N, 1), (1 << 40, 1 << 20, 2, N, 1),
                  (1, 1, 1, 1 << 40, 1), (1 << 20, 2, M, N, 1)):
        yield lambda shape=shape: empty(place, shape, chunks=(1, 1, 1, N, 1)), "beyond what can be"
    yield lambda: empty(place, (1, 1, 1 << 30, N, 1), chunks=(1, 1, 1, N, 1)), "A-lines a B-scan"
    yield lambda: empty(place, (1 << 10, 64, 512, N, 1), chunks=(1, 1, 1, N, 1)), "never written"
    yield lambda: empty(place, (1, 1, 2, 3, 1), chunks=(1, 1, 1, 3, 1)), "beyond what can be"
    yield lambda: empty(place, (1, V, M, N, 1 << 30), chunks=(1, 1, 1, N, 1)), "channels"


@case
def refusals():
    """what is no spectra, or beyond all bounds, is refused in one line"""
    place = clean("vortex-wrong")
    n = 0
    for make, words in wrong(place):
        refuse(make(), words)
        n += 1
    assert n >= 17, n


@case
def damaged_files():
    """files that are cut or whose bytes are damaged end in one line, or are read"""
    place = clean("vortex-damaged")
    whole = open(put(place, five(fringes())), "rb").read()
    for i in range(12):
        if i < 4:
            bad = whole[:len(whole) * (i + 1) // 5]
        else:
            bad = bytearray(whole)
            for _ in range(1 + 8 * i):
                bad[COUNT.randrange(4000)] = COUNT.randrange(256)
        path = write(os.path.join(place, f"bad{i}.h5"), bytes(bad))
        status, _, err = run("octctl", "recon", path, path + ".out.h5", *axis(place))
        assert status in (0, 1, 2) and err.count("\n") == (status != 0), (i, status, err)


@case
def other_files():
    """a dataset of another name, or of other axes, is no file of vortex"""
    place = clean("vortex-other")
    spectra = fringes()
    path = os.path.join(place, "a.h5")
    with h5py.File(path, "w") as file:
        file["data"] = spectra
    assert_alike(recon(path, *axis(place)), recon_plain(place, spectra, *axis(place)))


main()
