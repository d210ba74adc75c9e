#!/usr/bin/python3
"""octctl calibrate kmap on recordings of a synthetic spectrometer: what it finds beside the truth,
that its files calibrate octd, and that what is no mirror leaves nothing behind."""
import json, os

import numpy as np

from octctlrig import TMP, check, main, octctl, refused

DEPTHS = (100, 300, 500, 700, 920)
SMALL = ("--set", "scan.bscans=1", "--set", "scan.lines=32")
AXIAL_UM = 1.6


def path(*parts):
    return os.path.join(TMP, *parts)


def synth(name, mirrors, *more):
    code, _, err = octctl("synth", path(name), "--mirror", mirrors, *SMALL, *more)
    assert code == 0, err


def kmap(*arguments):
    return octctl("calibrate", "kmap", *arguments)


def make_mirrors():
    synth("m.h5", ",".join(map(str, DEPTHS)), "--calibration", path("truth"))
    return [path(f"m-{i + 1}.h5") for i in range(len(DEPTHS))]


def map_error_px(found, truth, first, last):
    """Between camera samples first and last, but for scale and zero of k."""
    steps = np.arange(len(found), dtype=float)
    at = np.interp(np.arange(first, last), found, steps)
    line = np.polyfit(at, np.interp(np.arange(first, last), truth, steps), 1)
    back = np.interp(np.polyval(line, at), steps, truth)
    return np.sqrt(np.mean((back - np.arange(first, last)) ** 2))


def truth_is_found_and_calibrates():
    mirrors = make_mirrors()
    positions = ",".join(str(d * AXIAL_UM + 40) for d in DEPTHS)
    code, out, err = kmap(*mirrors, path("cal"), "--positions", positions, "--json")
    check(code == 0 and err == "", "five mirrors are taken without a warning", err)
    told = json.loads(out)
    check(told == json.load(open(path("cal", "report.json"))), "report.json is what --json prints")
    ratios = [m["ratio"] for m in told["mirrors"]]
    check(all(abs(r - 1) < 0.02 for r in ratios), "widths are within 2 % of the limit", ratios)
    check(all(m["width_before_px"] > 3 * m["width_px"] for m in told["mirrors"][1:]),
          "which they were not before", told["mirrors"])
    check(abs(told["axial_um"] / AXIAL_UM - 1) < 1e-3 and told["axial_residual_um"] < 0.05,
          "positions give the axial scale", told)
    found, truth = (np.loadtxt(path(d, "kmap.txt")) for d in ("cal", "truth"))
    off = map_error_px(found, truth, 210, 620)
    check(off < 0.02, "the k map is right to 0.02 px over the source's width", off)
    check(found[0] == 0 and abs(found[-1] - 831) < 1e-6, "and runs over the whole camera")
    pictures = [f for f in os.listdir(path("cal")) if f.endswith(".png")]
    check(len(pictures) == 10 and all(open(path("cal", p), "rb").read(4) == b"\x89PNG"
                                      for p in pictures), "there is a picture of every step", pictures)
    code, out, err = octctl("recon", mirrors[2], path("sharp.h5"), "--config",
                            path("cal", "calibration.ini"), "--set", "output.sample=f32",
                            "--set", "pipeline.log=no", "--set", "pipeline.range=auto")
    check(code == 0, "octctl recon takes calibration.ini", err)
    import h5py
    with h5py.File(path("sharp.h5")) as f:
        line = f["bscans"][0].mean(axis=0)
    at = int(np.argmax(line))
    check(abs(at - told["mirrors"][2]["depth_px"]) <= 1 and line[at - 6] < 0.02 * line[at] and
          line[at + 6] < 0.02 * line[at], "and the mirror is sharp where the report says", at)


def positions_off_a_line_give_no_scale():
    mirrors = [path(f"m-{i}.h5") for i in (1, 3, 5)]
    depths = np.array([DEPTHS[i] for i in (0, 2, 4)])
    right = depths * AXIAL_UM + 40
    for off, is_written in (((4, -4, 4), True), ((-110, -30, 140), False)):
        folder = path("off" if is_written else "far-off")
        positions = right + off
        line = np.polyfit(depths, positions, 1)
        rms = np.sqrt(np.mean((positions - np.polyval(line, depths)) ** 2))
        code, out, err = kmap(*mirrors, folder, "--positions", ",".join(map(str, positions)))
        ini = open(os.path.join(folder, "calibration.ini")).read()
        told = json.load(open(os.path.join(folder, "report.json")))
        check(code == 0 and abs(told["axial_residual_um"] - rms) < 0.5, "the misfit is told", told)
        check(("axial_um" in ini) == is_written and ("axial scale" in out) == is_written,
              f"{rms:.1f} um rms off: a scale is written: {is_written}", ini)
        check(err.split("\n")[0].startswith("octctl calibrate kmap: --positions lie") != is_written,
              "a warning comes first", err)


def nothing_is_written_over():
    ini = path("cal", "calibration.ini")
    before = open(ini, "rb").read()
    refused("a calibration that exists stays", 1, r"calibration.ini: exists already.*--force",
            "calibrate", "kmap", path("m-1.h5"), path("m-3.h5"), path("cal"))
    check(open(ini, "rb").read() == before, "to the byte")
    os.makedirs(path("part", "peaks.png"))
    refused("one output that cannot be is none at all", 2, r"peaks.png", "calibrate", "kmap",
            path("m-1.h5"), path("m-3.h5"), path("part"), "--force")
    check(os.listdir(path("part")) == ["peaks.png"], "no other is made", os.listdir(path("part")))
    code, _, err = kmap(path("m-1.h5"), path("m-3.h5"), path("cal"), "--force")
    check(code == 0 and open(ini, "rb").read() != before, "--force replaces it", err)


def what_is_no_mirror_is_named():
    synth("bad.h5", "300+480,1020,30,none")
    synth("bright.h5", "400", "--gain", "2")
    synth("short.h5", "300", "--set", "camera.samples=512")
    for name, words in (("bad-1", "two fringes"), ("bad-2", "fringe beyond Nyquist"),
                        ("bad-3", "depth zero"), ("bad-4", "no fringe"), ("bright", "saturated"),
                        ("short", "512 samples an A-line")):
        refused(f"{words}: with the number and the name", 1, rf"mirror 2 \(.*{name}.h5\): .*{words}",
                "calibrate", "kmap", path("m-1.h5"), path(f"{name}.h5"), path("none"))
    refused("one depth twice", 1, "same depth", "calibrate", "kmap", path("m-1.h5"),
            path("m-1.h5"), path("none"))
    check(not os.path.exists(path("none")), "no folder is left")
    for words, more in (("needs 2 numbers", ("--positions", "1,2,3")),
                        ("needs a \\+ or -", ("--sides", "+")), ("there are 2", ("--sides", "+-+")),
                        ("1 to 12", ("--order", "13")), ("A:B:STEP", ("--lines", "5:5"))):
        refused(f"misuse: {more[0]} {more[1]}", 2, words, "calibrate", "kmap", path("m-1.h5"),
                path("m-2.h5"), path("none"), *more)
    refused("a part that is none", 2, "'kmop' is no part", "calibrate", "kmop")


def one_mirror_and_plain_samples():
    code, out, err = kmap(path("m-3.h5"), path("one"))
    check(code == 0 and "taken as none, with one depth" in out, "one mirror takes no dispersion", err)
    check(not os.path.exists(path("one", "dispersion.txt")) and
          "dispersion" not in open(path("one", "calibration.ini")).read(), "and writes none")
    synth("p.raw", "200,600", "--turns", "0")
    code, out, err = kmap(path("p-1.raw"), path("p-2.raw"), path("plain"), "--set",
                          "camera.bits=12", *SMALL)
    check(code == 0 and "no calibration (samples even in k)" in out, "plain samples are taken", err)


main(truth_is_found_and_calibrates, positions_off_a_line_give_no_scale, nothing_is_written_over, what_is_no_mirror_is_named,
     one_mirror_and_plain_samples)
