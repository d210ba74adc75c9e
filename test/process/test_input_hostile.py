#!/usr/bin/python3
"""HDF5 files that are damaged, or that say what cannot be: octctl tells it in a line, and neither
crashes nor runs on."""
import os, re

import h5py, numpy as np

from octctlrig import TMP, check, main, octctl
from octtest import at

V, M, N = 6, 8, 64
S = np.random.default_rng(5).integers(0, 4096, (V, M, N)).astype("<u2")


def made(name, fill):
    with h5py.File(at(name), "w") as f:
        fill(f)
    return at(name)


def external(f):
    with h5py.File(at("other.h5"), "w") as other:
        other["raw"] = S
    f["raw"] = h5py.ExternalLink("other.h5", "/raw")


def virtual(f):
    layout = h5py.VirtualLayout((V, M, N), "<u2")
    layout[...] = h5py.VirtualSource(at("other.h5"), "raw", (V, M, N))
    f.create_virtual_dataset("raw", layout)


def elsewhere(f):
    S.tofile(at("values.bin"))
    space = h5py.h5s.create_simple((V, M, N))
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_external(at("values.bin").encode(), 0, S.nbytes)
    h5py.h5d.create(f.id, b"raw", h5py.h5t.STD_U16LE, space, how)


def of(shape, dtype="u2", **how):
    return lambda f: f.create_dataset("raw", shape, dtype, **how)


def circle(f):
    f.create_group("a")["b"] = f["/"]
    f["a/raw"] = h5py.SoftLink("/a/raw")


def not_a_number(f):
    values = S.astype("f4")
    values[3, 2, 1] = np.nan
    f["raw"] = values


def volts(worst, dtype="f4"):
    """Spectra as voltages, half of them 0, of which one sample is `worst`."""
    values = ((S - 2000.0) / 1000).astype(dtype)
    values[:, ::2, :] = 0
    values[3, 1, 1] = worst
    return lambda f: f.create_dataset("raw", data=values)


def test_what_is_far():
    """A value that is larger than others, as saturated samples are, is no fault."""
    for worst in (-200.0, 3000.0, 0.0):
        status, out, err = octctl("info", made("good.h5", volts(worst)))
        check(status == 0 and not err, f"one sample of {worst} among volts is taken", err)
    status, out, err = octctl("info", made("bad.h5", volts(1e308, "f8")), "--set", "file.scale=1e-304")
    check(status == 0, "file.scale overrules the range", err)


def test_what_cannot_be():
    for what, words, fill, *more in (
            ("an empty file", "no dataset that could be", lambda f: None),
            ("a circle of links", "no dataset that could be", circle),
            ("a link into another file", "no dataset that could be", external),
            ("values of other files", "no dataset that could be", virtual),
            ("values in another file", "no dataset that could be", elsewhere),
            ("records", "no dataset that could be", of((V, M, N), [("a", "u2"), ("b", "f4")])),
            ("complex numbers", "no dataset that could be", of((V, M, N), "c8")),
            ("texts", "no dataset that could be", of((V, M, N), "S4")),
            ("truth values", "no dataset that could be", of((V, M, N), "?")),
            ("lists", "no dataset that could be", of((V, M, N), h5py.vlen_dtype("u2"))),
            ("a single value", "no dataset that could be", of((), "u2")),
            ("nothing at all", "no dataset that could be", of(None, "f4")),
            ("an axis of 0", "no dataset that could be", of((V, 0, N))),
            ("too few samples", "no dataset that could be", of((V, M, 3))),
            ("too many samples", "no dataset that could be", of((1, 4, 140000))),
            ("five axes", "no dataset that could be", of((1, 1, V, M, N))),
            ("four axes", "4 axes; spectra have 3", of((1, V, M, N)), "--dataset", "raw"),
            ("too many A-lines", "scan.lines divides", of((1, 70000, 4), data=None), "--dataset",
             "raw"),
            ("a terabyte of nothing", "never written",
             of((1 << 20, 1 << 16, 1 << 12), chunks=(1, 64, 64))),
            ("a terabyte of nothing, packed", "never written",
             of((1 << 20, 1 << 16, 1 << 12), "f8", chunks=(1, 64, 64), compression="gzip")),
            ("chunks of gigabytes", "no dataset that could be",
             of((1 << 12, 1 << 10, 1 << 10), "u1", chunks=(1 << 11, 1 << 10, 1 << 10))),
            ("values that are no numbers", "no numbers", not_a_number),
            ("one sample of 1e308", "1e.308, while half of them are below .*file.scale",
             volts(1e308, "f8")),
            ("one sample of -1e38", "-1e.38, while half of them", volts(-1e38)),
            ("one integer of 2^31 - 1", "2.14748e.09, while half of them are below 8",
             lambda f: f.create_dataset("raw", data=np.where(
                 np.arange(V * M * N).reshape(V, M, N) == 77, 2 ** 31 - 1, -5).astype("i4"))),
            ("values that are all alike", "all its values are 0.5",
             lambda f: f.create_dataset("raw", data=np.full((V, M, N), 0.5)))):
        status, out, err = octctl("info", made("bad.h5", fill), *more)
        check(status in (1, 2) and re.search("bad.h5: .*" + words, err) and err.count("\n") == 1,
              what, (status, out, err))


def damaged(content, random):
    bad = bytearray(content)
    for _ in range(random.integers(1, 6)):
        at = random.integers(0, len(bad))
        bad[at] = random.integers(0, 256)
    return bytes(bad)


def test_damage():
    made("packed.h5", lambda f: f.create_dataset("raw", data=S, chunks=(4, 5, 33),
                                                 compression="gzip", shuffle=True))
    made("plain.h5", lambda f: f.create_dataset("g/raw", data=S.astype(">f4")))
    random, long = np.random.default_rng(8), os.environ.get("OCT_LONG") == "1"
    axis = at("axis.txt")
    np.savetxt(axis, np.linspace(800, 880, N))
    for name in ("packed.h5", "plain.h5"):
        with open(at(name), "rb") as f:
            content = f.read()
        # Metadata lie at the ends; values of the plain file may be anything.
        versions = [content[:n] for n in (7, 8, 40, 97, 600, 2000, len(content) - 1)]
        versions += [damaged(content, random) for _ in range(200 if long else 12)]
        versions += [damaged(content[:2200], random) + content[2200:]
                     for _ in range(400 if long else 12)]
        wrong = []
        for version in versions:
            with open(at("damaged.h5"), "wb") as f:
                f.write(version)
            status, _, err = octctl("recon", "--force", at("damaged.h5"), at("out.h5"), "--set",
                                    "calibration.wavelengths=" + axis)
            if status not in (0, 1, 2) or status and err.count("\n") != 1:
                wrong.append((status, err, len(version)))
        check(not wrong, f"{len(versions)} damaged versions of {name}", wrong[:2])


main(test_what_is_far, test_what_cannot_be, test_damage)
