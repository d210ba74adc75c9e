#!/usr/bin/python3
"""Raw recordings of OCTproZ with the settings beside them, written from what formats/input/octproz.c
and octproz_meta.h say: their pictures are those of the same samples with the calibration given by
hand, and contradictions are refused."""
import os

import numpy as np

from inputrig import *
from octtest import case, main, ok, run

RESAMPLING = (0.5, 80.0, -6.0, 9.0)
DISPERSION = (0.3, 97.0, -90.0, -4.0)


def meta(system="Virtual OCT System", active=None, **changes):
    keys = {"bit_depth": 12, "buffers_from_file": 2, "buffers_per_volume": 1, "depth": V,
            "file_path": "C:/a.raw", "height": M, "wait_time": 0, "width": N} | changes
    section = "".join(f"{k}={v}\n" for k, v in keys.items() if v is not None)
    name = "".join(c if c.isalnum() or c in "_-." else f"%{ord(c):02X}" for c in system)
    chain = processing()
    return (f"[General]\ntimestamp=20250504_141131540\n\n[record]\nname=a\nsave_meta_info=true\n\n"
            f"{chain}\n[{name}]\n{section}\n[main_window_settings]\n"
            f"main_geometry=@ByteArray(\\x1\\xd9=\\0\\x3)\nmain_active_extensions=@Invalid()\n"
            + (f"main_active_system={active or system}\n"))


def processing(resampling=False, dispersion=False, custom=False):
    lines = ["[processing]", f"resampling={'true' if resampling else 'false'}",
             f"custom_resampling={'true' if custom else 'false'}",
             f"dispersion_compensation={'true' if dispersion else 'false'}"]
    lines += [f"resampling_c{i}={c}" for i, c in enumerate(RESAMPLING)]
    lines += [f"dispersion_compensation_d{i}={d}" for i, d in enumerate(DISPERSION)]
    return "\n".join(lines) + "\n"


def put(place, spectra, text, dtype="<u2", name="20250504_141131540_a"):
    if text is not None:
        write(os.path.join(place, name + "_meta.txt"), text)
    return write(os.path.join(place, name + "_raw.raw"), spectra.astype(dtype).tobytes())


def kmap_of(c=RESAMPLING):
    return np.polyval(c[::-1], np.arange(N) / (N - 1))


def axis(place):
    return ["--set", "calibration.kmap=" + table(place, "kmap.txt", np.linspace(0, N - 1, N))]


@case
def same_pictures():
    """a recording makes the pictures of its samples, of 1, 2 and 4 bytes"""
    place = clean("octproz")
    for bits, dtype in ((8, "u1"), (12, "<u2"), (16, "<u2"), (17, "<u4")):
        spectra = fringes(min(bits, 12) if bits != 16 else 16)
        path = put(place, spectra, meta(bit_depth=bits), dtype)
        assert_alike(recon(path, *axis(place)), recon_plain(place, spectra, *axis(place)))


@case
def several_buffers():
    """every whole buffer of the file is read"""
    place = clean("octproz-buffers")
    spectra = fringes(shape=(6, M, N))
    path = put(place, spectra, meta(depth=2))
    assert_alike(recon(path, *axis(place)), recon_plain(place, spectra, *axis(place)))


@case
def resampling_is_the_k_map():
    """the resampling polynomial becomes the k map, unless it comes from a file"""
    place = clean("octproz-kmap")
    text = meta().replace(processing(), processing(resampling=True))
    path = put(place, fringes(), text)
    keys = ["--set", "calibration.kmap=" + table(place, "kmap.txt", kmap_of())]
    got = recon(path)
    assert_alike(got, recon_plain(place, fringes(), *keys))
    assert_alike(recon(path, *axis(place)), recon_plain(place, fringes(), *axis(place)))
    put(place, fringes(), meta().replace(processing(), processing(resampling=True, custom=True)))
    refuse(path, "calibration.kmap", commands=["recon"])


@case
def dispersion():
    """the dispersion polynomial undoes what OCTproZ's own chain would undo"""
    place = clean("octproz-dispersion")
    path = put(place, fringes(), meta().replace(processing(), processing(True, True)))
    # A phase this steep turns by a radian from step to step of a table, which nufft would interpolate.
    chain = ["--set", "pipeline.interpolation=linear"]
    got = recon(path, *chain)
    # The same phase in numpy, over octd's P2 steps in k, whose place on the map is s.
    kmap, p1, p2 = kmap_of(), 2048, 4096
    camera = np.arange(p2) * p1 / p2 - (p1 - N) // 2
    slope = lambda i: (1 / (N - 1)) / (kmap[i + 1] - kmap[i])
    s = np.interp(camera, kmap, np.arange(N) / (N - 1))
    s = np.where(camera < kmap[0], (camera - kmap[0]) * slope(0), s)
    s = np.where(camera > kmap[-1], 1 + (camera - kmap[-1]) * slope(N - 2), s)
    x = np.linspace(s[0], s[-1], p2)
    d0, d1, d2, d3 = DISPERSION
    theta = d2 * x ** 2 + d3 * x ** 3
    # What is constant or linear between the camera's ends only turns or moves: left out.
    ends = np.interp([0, N - 1], kmap, np.arange(N) / (N - 1))
    ends[0] = (0 - kmap[0]) * slope(0) if kmap[0] > 0 else ends[0]
    ends[1] = 1 + (N - 1 - kmap[-1]) * slope(N - 2) if kmap[-1] < N - 1 else ends[1]
    middle, half = ends.mean(), np.ptp(ends) / 2
    t = (x - middle) / half
    theta -= d2 * (middle ** 2 + 2 * middle * half * t)
    theta -= d3 * (middle ** 3 + 3 * middle ** 2 * half * t)
    phase = os.path.join(place, "phase.txt")
    write(phase, "".join(f"{a!r} {b!r}\n" for a, b in zip(np.cos(theta).tolist(),
                                                          (-np.sin(theta)).tolist())))
    keys = ["--set", "calibration.kmap=" + table(place, "kmap.txt", kmap), "--set",
            "calibration.dispersion=" + phase, *chain]
    assert_alike(got, recon_plain(place, fringes(), *keys), 0.02)
    assert np.abs(got - recon_plain(place, fringes(), *keys[:2], *chain)).max() > 3
    again = recon(put(place, fringes(), meta()).replace("_raw.raw", "_raw.raw"), *keys)
    assert_alike(again, recon_plain(place, fringes(), *keys))


@case
def names():
    """the settings are found beside NAME.raw and NAME_raw.raw, of the system that recorded"""
    place = clean("octproz-names")
    wanted = recon_plain(place, fringes(), *axis(place))
    for name in ("a_raw.raw", "a.raw", "A_RAW.RAW"):
        path = write(os.path.join(place, name), fringes().astype("<u2").tobytes())
        stem = name[:-8] if name.lower().endswith("_raw.raw") else name[:-4]
        write(os.path.join(place, stem + "_meta.txt"), meta("My Camera (2)"))
        assert_alike(recon(path, *axis(place)), wanted)
        os.unlink(os.path.join(place, stem + "_meta.txt"))
    # Windows' ends of lines.
    path = put(place, fringes(), meta().replace("\n", "\r\n"))
    assert_alike(recon(path, *axis(place)), wanted)


@case
def plain_without_settings():
    """without settings, or with those of a system that says no geometry, samples are plain"""
    place = clean("octproz-plain")
    keys = ["--set", f"camera.samples={N}", "--set", f"scan.lines={M}", *axis(place)]
    wanted = recon_plain(place, fringes(), *axis(place))
    for text in (None, meta("Other", width=None), meta(active="Other"), meta(height=0),
                 meta(bit_depth="a"), "", "[processing\nbit_depth=12", meta()[:40],
                 "[Virtual%20OCT%20System]\nbit_depth=12\nwidth=96\nheight=12\n"):
        path = put(place, fringes(), text)
        assert_alike(recon(path, *keys), wanted)
        status, _, err = run("octctl", "recon", path, path + ".x.h5", "--set", "camera.samples=1000",
                             *axis(place))
        assert status and err.count("\n") == 1, (text, err)
    path = put(place, fringes(), meta("Other", width=None))
    for given in [], keys[:2], keys[2:4]:  # never the lengths of a configuration that has none
        for command in ["info", path], ["recon", path, path + ".y.h5"]:
            refuse_command("give camera.samples, scan.lines and file.sample", *command, *given)
    status, _, err = run("octctl", "info", path, *keys)
    assert status == 0, err


def refuse_command(words, *arguments):
    status, _, err = run("octctl", *arguments)
    assert status == 2 and words in err and err.count("\n") == 1, (arguments, status, err)


def wrong():
    yield "cut", meta(), 2, "not whole buffers"
    yield "odd", meta(), 1, "not whole buffers"
    yield "bscan", meta(depth=V + 1), 0, "not whole buffers"
    yield "lines", meta(height=M + 1), 0, "not whole buffers"
    yield "samples", meta(width=N + 2), 0, "not whole buffers"
    yield "bytes", meta(bit_depth=8, depth=3), 0, "not whole buffers"
    yield "bits", meta(bit_depth=33), 0, "1 to 32"
    yield "many-bits", meta(bit_depth=4000000000), 0, "1 to 32"
    yield "few", meta(width=3), 0, "beyond what can be processed"
    yield "wide", meta(width=4000000000, height=4000000000), 0, "beyond what can be processed"
    yield "high", meta(height=4000000000, width=4000000000, depth=4000000000), 0, "beyond what"
    yield "tall", meta(height=70000), 0, "A-lines a B-scan, more than"
    yield "deep", meta(depth=4294967295), 0, "not whole buffers"
    yield "empty", meta(), -1, "not whole buffers"


@case
def refusals():
    """settings and files that contradict each other are refused in one line"""
    for name, text, cut, words in wrong():
        place = clean("octproz-wrong-" + name)
        path = put(place, fringes(), text)
        size = os.path.getsize(path)
        os.truncate(path, 0 if cut < 0 else size - cut)
        refuse(path, words)


@case
def strange_settings():
    """settings of any bytes do no harm"""
    rng = np.random.default_rng(1)
    place = clean("octproz-strange")
    good = meta().encode()
    for i in range(12):
        text = bytearray(good)
        for at in rng.integers(0, len(text), 1 + 3 * i):
            text[at] = rng.integers(0, 256)
        path = put(place, fringes(), bytes(text))
        status, _, err = run("octctl", "info", path)
        assert status in (0, 1, 2) and err.count("\n") == (status != 0), (status, err)
    for text in (b"\0" * 1000, b"=" * 5000, b"[" * 5000, b"[]\n[%]\n[%2]\n[%zz%41]\n",
                 b"\n" * 100000, bytes(range(256)) * 40, good * 400, b"a=" + b"b" * 2000000):
        path = put(place, fringes(), text)
        status, _, err = run("octctl", "info", path)
        assert status in (0, 1, 2) and err.count("\n") == (status != 0), (status, err)
    for c in ("nan", "inf", "1e999", "-1e308", "", "0x10", "1;2"):
        text = meta().replace(processing(), processing(True, True)).replace("_c1=80.0", f"_c1={c}")
        status, _, err = run("octctl", "recon", put(place, fringes(), text), path + ".h5", "--force")
        assert status in (0, 1, 2) and err.count("\n") == (status != 0), (c, status, err)


main()
