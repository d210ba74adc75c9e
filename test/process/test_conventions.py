#!/usr/bin/python3
"""One grammar in all commands of octctl: what the page says, the ends of a slab, and old spellings, which
do the same as the new ones and say so in one line."""
import json
import os

import h5py
import numpy as np

from octtest import at, case, main, ok, run

V, M, D = 24, 40, 50
UM = 20.0, 10.0, 5.0  # from B-scan to B-scan, A-line to A-line, depth pixel to depth pixel


def volume(name, seed=3, um=UM):
    """A smooth texture as an HDF5 file of B-scans that says its spacing."""
    if not os.path.exists(at(name)):
        f = np.fft.fftn(np.random.default_rng(seed).normal(size=(V, M, D)))
        for axis, n in enumerate((V, M, D)):
            f *= np.exp(-8 * np.fft.fftfreq(n).reshape([-1 if i == axis else 1 for i in range(3)]) ** 2)
        values = np.fft.ifftn(f).real
        with h5py.File(at(name), "w") as file:
            data = file.create_dataset("bscans", data=np.float32(40 + 8 * values / values.std()))
            if um:
                data.attrs["axis_spacing_um"] = um
    return at(name)


def mirror():
    name = at("mirror.h5")
    if not os.path.exists(name):
        ok("synth", name, "--mirror", "300", "--set", "scan.lines=32", "--set", "scan.bscans=1",
           "--calibration", at("cal"))
    return [name, "--config", at("cal/calibration.ini")]


def said_of(text):
    """Without what differs from run to run."""
    if not text.startswith("{") and not text.startswith("["):
        return text.split("\ntook")[0]

    def bare(value):
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k not in ("seconds", "peak_bytes")}
        if isinstance(value, float):
            return round(value, 5)  # sums of threads
        return [bare(v) for v in value] if isinstance(value, list) else value
    return bare(json.loads(text))


def same(new_name, old, new, *command):
    """Both do the same; the old one says so, in its own line before all others."""
    got = run("octctl", *command, *new)
    for name in "film.npy", "film.npy.truth.csv":  # which synth does not replace
        if os.path.exists(at(name)):
            os.remove(at(name))
    before = run("octctl", *command, *old)
    assert got[0] == before[0] == 0, (command, got, before)
    assert said_of(got[1]) == said_of(before[1]), (command, got[1], before[1])
    first, _, rest = before[2].partition("\n")
    assert first.startswith("octctl ") and old[0].split("=")[0] in first and new_name in first, before[2]
    assert rest == got[2], (command, got[2], before[2])


@case
def old_spellings():
    """each does what the new one does, and says which it is"""
    a = volume("a.h5")
    out, force = at("out.h5"), ("--json", "--force")
    size = "--pixel-um", ("--um", "2,3"), ("--pixel-um", "2,3")
    slab = "--slab", ("--en-face", "10:20"), ("--slab", "10:20")
    same(*size, "correlate", a, "--json")
    same(*slab, "correlate", a, "--json")
    same("--frames", ("--bscan", "2"), ("--frames", "2:3"), "correlate", a, "--json")
    same("--frames", ("--bscans=3:9",), ("--frames=3:9",), "export", a, at("o.npy"), *force)
    same(*size, "cones", a, *slab[2], "--json")
    same(*slab, "cones", a, "--json")
    same(*size, "register", a, out, *force)
    same("--roi 2,2,30,30", ("--roi", "2:2:30:30"), ("--roi", "2,2,30,30"), "register", a, out, *force)
    same(*slab, "register", a, a, out, "--as", "mosaic", *force)
    same("--pixel-um", ("--um", "5,10,20"), ("--pixel-um", "5,10,20"), "register-volumes", a, a, out,
         "--model", "bscans", *force)
    same("--slab 25%:50%", ("--slab", "0.25:0.5"), ("--slab", "25%:50%"), "cells", a, a, at("o.csv"),
         "--detect-only", "--radius", "2", "--force")
    same("--pixel-um", ("--spacing", "3,4,7"), ("--pixel-um", "7,4,3"), "export", a, at("o.npy"), *force)
    same("--pixel-um", ("--spacing=3,-,-",), ("--pixel-um=-,-,3",), "export", a, at("o.npy"), *force)
    same("--pixel-um", ("--axial-um", "1.5"), ("--pixel-um", "1.5"), "calibrate", "report", *mirror(),
         "--json")
    same("--n-frames", ("--frames", "5"), ("--n-frames", "5"), "synth", at("film.npy"), "--cells", "3",
         "--size", "90x80")
    status, _, err = run("octctl", "snapshot", at("o.png"), "--frames", "none")
    assert status and err.startswith("octctl snapshot: --frames is now --n-frames N\n"), err


@case
def old_outputs():
    """calibrate dispersion --out is the last argument now"""
    ok("synth", at("eye.h5"), "--set", "scan.lines=64", "--set", "scan.bscans=1", "--calibration",
       at("eye"))
    config = "--config", at("eye/calibration.ini"), "--force"
    new, _ = ok("calibrate", "dispersion", at("eye.h5"), at("new.ini"), *config)
    status, old, err = run("octctl", "calibrate", "dispersion", at("eye.h5"), "--out", at("old.ini"),
                           *config)
    assert status == 0 and err.count("\n") == 1 and "OUT.ini" in err, err
    assert old.replace("old.ini", "new.ini") == new
    assert open(at("old.ini")).read() == open(at("new.ini")).read()


@case
def frames():
    """of a film --frames reads what a film of these frames alone holds; it may be of each of several"""
    noise = np.random.default_rng(2).normal(size=(18, 64, 80))
    film = np.uint8(128 + 30 * (noise[17] + noise[:17] / 4).clip(-4, 4))
    name, out = at("part.npy"), at("part.h5")
    for text, *parts in ("3:15:4", slice(3, 15, 4)), ("5:9", slice(5, 9)), ("0:17:16", slice(0, 17, 16)):
        for command in (("correlate", name, "--json"), ("correlate", name, name, "--json"),
                        ("cones", name, "--json"), ("register", name, out, "--json", "--force"),
                        ("cells", name, at("part.csv"), "--radius", "3", "--detect-only", "--force")):
            np.save(name, film)
            got = ok(*command, "--frames", text)
            np.save(name, film[parts[0]])
            assert said_of(got[0]) == said_of(ok(*command)[0]), (command, text)
    for command in (("correlate", name), ("cones", name), ("register", name, out, "--force")):
        for status, said, *options in ((1, "asks for others", "--frames=0:3"),
                                       (2, "needs A:B or A:B:STEP", "--frames=2"),
                                       (2, "exclude one another", "--frames=0:1", "--slab=1:2")):
            got = run("octctl", *command, *options)
            assert got[0] == status and said in got[2] and got[2].count("\n") == 1, (command, got)
    got = run("octctl", "cells", volume("a.h5"), at("none.csv"), "--radius", "3", "--frames=0:1")
    assert got[0] and "--frames is of films and of --source bscan" in got[2], got


@case
def ends_of_a_slab():
    """depth pixels, micrometres and shares, each end its own; micrometres need a size"""
    a, unknown = volume("a.h5"), volume("unknown.h5", um=None)
    want = said_of(ok("correlate", a, "--slab", "10:20", "--json")[0])
    for text in ("50um:100um", "20%:40%", "10:40%", "50um:20", "20.5%:99um"):
        assert said_of(ok("correlate", a, "--slab", text, "--json")[0]) == want, text
    face = said_of(ok("export", a, at("face.npy"), "--dataset", "enface", "--slab", "10:20", "--json",
                      "--force")[0])
    pixels = np.load(at("face.npy"))
    assert face == said_of(ok("export", a, at("face.npy"), "--dataset", "enface", "--slab", "20%:100um",
                              "--json", "--force")[0])
    assert (np.load(at("face.npy")) == pixels).all()
    for command in (("correlate", unknown), ("cones", unknown)):
        status, _, err = run("octctl", *command, "--slab", "50um:100um")
        assert status == 1 and "not known" in err and err.count("\n") == 1, err
    for text in ("10", "10:", "20:10", "10:10", "1.5:9", "50%:20%", "10px:20", "-5:9", "0x1:9", "nan:1",
                 "10:120%", "ilm:rpe"):
        status, _, err = run("octctl", "correlate", a, f"--slab={text}")
        assert status == 2 and "--slab needs" in err and err.count("\n") == 1, (text, err)
    for text in ("10:51", "10:300um"):
        status, _, err = run("octctl", "correlate", a, "--slab", text)
        assert status == 1 and "its depth is 0:50" in err, (text, err)


@case
def eyes():
    """--eye takes either case in all commands that have it"""
    a = volume("a.h5")
    for eye in ("OD", "od", "Od"):
        ok("export", a, at("eye.nii"), "--eye", eye, "--force")
        ok("surfaces", a, at("eye_s.h5"), "--eye", eye, "--no-align", "--force", "--denoise",
           "none" if eye == "OD" else "None")  # as words of parameters
    for command in (("export", a, at("eye.nii")), ("surfaces", a, at("x.h5")), ("label", a)):
        status, _, err = run("octctl", *command, "--eye", "left")
        assert status == 2 and "--eye left: it is OD" in err and err.count("\n") == 1, err


@case
def the_page():
    """help conventions is a page; helps and completion show no old spelling"""
    page, _ = ok("help", "conventions")
    assert page.count("\n") < 40 and "--pixel-um X[,Y]" in page and "--slab A:B" in page, page
    assert max(map(len, page.splitlines())) <= 100
    old = "--um ", "--en-face", "--axial-um", "--spacing B", "--frames N", "--bscan ", "--bscans A", "--out FILE"
    for name in ("correlate", "cones", "cells", "register", "register-volumes", "surfaces", "export",
                 "synth", "snapshot", "calibrate"):
        text = ok("help", name)[0]
        assert not [word for word in old if word in text], (name, text)
        listed = ok("completion", "--list", "--", "octctl", name, "--")[0].splitlines()
        assert not {"--um", "--en-face", "--bscan"} & {line.split(":")[0] for line in listed}, name


main()
