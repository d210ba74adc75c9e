#!/usr/bin/python3
"""octctl register as its users see it: sequences whose motion is known, of all kinds of files, and
what it writes read back with plain h5py and csv."""
import csv
import json
import os
import signal
import subprocess
import time

import h5py
import numpy as np
from PIL import Image

from octtest import Skip, case, folder, main, program, run

HERE = folder("register")
DATA = os.path.join(os.path.dirname(__file__), "../../../shared/data")
H, W, N = 96, 112, 7
rng = np.random.default_rng(20261122)
K = 2 * np.pi / rng.uniform(7, 40, 80)
ANGLE = rng.uniform(0, 2 * np.pi, 80)
KY, KX, PHASE = K * np.sin(ANGLE), K * np.cos(ANGLE), rng.uniform(0, 2 * np.pi, 80)


def path(name):
    return os.path.join(HERE, name)


def scene(dy, dx, noise=0.0, seed=0):
    """Line y is scene(y + dy[y], x + dx[y]): its shift onto the unmoved scene is (dy, dx)."""
    y = (np.arange(H) + dy)[:, None, None]
    x = np.arange(W)[None, :, None] + np.broadcast_to(dx, H)[:, None, None]
    values = np.cos(KY * y + KX * x + PHASE).sum(axis=2) / np.sqrt(40)
    return values + noise * np.random.default_rng(seed).normal(size=(H, W))


def gray(values):
    return np.clip(np.round(120 + 30 * values), 0, 255).astype(np.uint8)


SHIFTS = np.round(rng.uniform(-6, 6, (N, 2)), 2)
SHIFTS[0] = 0


def frames():
    """Frames shifted by SHIFTS, as PNG files; the list of paths."""
    names = [path(f"f{i}.png") for i in range(N)]
    if not os.path.exists(names[-1]):
        for i, name in enumerate(names):
            Image.fromarray(gray(scene(SHIFTS[i, 0], SHIFTS[i, 1], 0.2, i))).save(name)
    return names


def register(*arguments, status=0):
    """Its standard output; of a failure the one line of complaint."""
    got, out, err = run("octctl", "register", *arguments)
    assert got == status, (arguments, got, out, err)
    if status:
        assert err.count("\n") == 1 and err.startswith("octctl register: "), err
    return err if status else out


def rows(name):
    with open(path(name)) as file:
        return list(csv.DictReader(file))


@case
def rigid():
    """rigid: shifts, average, weights and why; the sign is that of moving onto the reference"""
    out = register(*frames(), path("rigid.h5"), "--reference", "0", "--csv", path("rigid.csv"),
                   "--png", path("rigid.png"), "--pixel-um", "2,3", "--json")
    said = json.loads(out)
    assert said["used"] == N and said["reference"] == 0 and said["left_out"] == [], said
    with h5py.File(path("rigid.h5")) as f:
        shifts = f["shifts"][:]
        assert shifts.shape == (N, H, 2) and np.ptp(shifts, axis=1).max() == 0
        error = shifts[:, 0] - SHIFTS
        assert np.sqrt((error ** 2).mean()) < 0.03, error
        assert f.attrs["n_averaged"] == N and list(f["frames/used"]) == [1] * N
        average, weight = f["average"][:], f["weight"][:]
        top, left = (int(v) for v in f["average"].attrs["origin_px"])
        assert np.isnan(average[weight == 0]).all() and not np.isnan(average[weight > 0]).any()
        assert (weight == 0).any() and abs(weight.max() - N) < 1e-5
        middle = average[top + 8:top + H - 8, left + 8:left + W - 8]
        truth = 120 + 30 * scene(0, 0)[8:-8, 8:-8]
        assert np.corrcoef(middle.ravel(), truth.ravel())[0, 1] > 0.98
    table = rows("rigid.csv")
    assert len(table) == N and table[3]["frame"] == "3" and table[3]["time_s"] == ""
    assert abs(float(table[3]["dy_px"]) - SHIFTS[3, 0]) < 0.05
    assert abs(float(table[3]["dy_um"]) - 3 * float(table[3]["dy_px"])) < 1e-6
    assert abs(float(table[3]["dx_um"]) - 2 * float(table[3]["dx_px"])) < 1e-6
    for name in ("rigid.png", "rigid-motion.png"):
        assert min(Image.open(path(name)).size) > 50


@case
def kinds_of_files():
    """the same shifts from TIFF of 16 bit and float, a stack, and HDF5"""
    data = [gray(scene(SHIFTS[i, 0], SHIFTS[i, 1], 0.2, i)) for i in range(3)]
    Image.fromarray(data[0]).save(path("stack.tif"), save_all=True,
                                  append_images=[Image.fromarray(d) for d in data[1:]])
    with h5py.File(path("foreign.h5"), "w") as f:
        f["scans"] = np.array(data).astype(np.float32) * 7 - 1000
    wide = []
    for i, d in enumerate(data):
        wide.append(path(f"wide{i}.tif"))
        Image.fromarray(d.astype(np.uint16) * 200 + 900).save(wide[-1])
    found = []
    for inputs in ([path("stack.tif")], [path("foreign.h5") + ":/scans"], wide, frames()[:3]):
        register(*inputs, "--shifts-only", "--csv", path("kinds.csv"), "--force", "--reference", "0")
        found.append([(float(r["dy_px"]), float(r["dx_px"])) for r in rows("kinds.csv")])
    assert np.ptp(np.array(found), axis=0).max() < 1e-3, found  # gain and offset change nothing


@case
def strips():
    """strips: motion within frames, line by line, in one pass and in two"""
    t = np.arange(H)
    truth, names = [], []
    for i in range(10):
        a, b, c, d = rng.uniform(-3, 3, 4)
        motion = np.array([a + b * (t / H - 0.5), c + d * (t / H - 0.5)])
        names.append(path(f"m{i}.png"))
        Image.fromarray(gray(scene(motion[0], motion[1], 0.3, i))).save(names[-1])
        truth.append(motion.T)
    truth = np.array(truth)
    for passes in "1", "2":
        register(*names, path("strips.h5"), "--model", "strips", "--strip", "16:4", "--passes",
                 passes, "--force", "--stack", "--csv", path("strips.csv"))
        with h5py.File(path("strips.h5")) as f:
            error = f["shifts"][:] - truth
            error -= error.mean(axis=(0, 1))
            assert np.sqrt((error ** 2).mean()) < 0.4, (passes, np.sqrt((error ** 2).mean()))
            assert f["strips/shift"].shape == (10, 21, 2) and f["strips/ok"][:].mean() > 0.9
            assert f["registered"].shape == (10, *f["average"].shape)
            stack, average = f["registered"][:], f["average"][:]
            assert (np.isnan(stack).all(axis=0) == np.isnan(average)).all()
            least = np.where(np.isnan(stack), 999, stack).min(axis=0)
            # A frame that hardly covers a pixel is NaN there in the stack, but is in the sum.
            assert (average[~np.isnan(average)] >= least[~np.isnan(average)] - 0.05).all()
            assert passes == "2" or f["reference_motion"].shape == (H, 2)
    table = rows("strips.csv")
    assert len(table) == 10 * H and table[H + 5]["frame"] == "1" and table[H + 5]["line"] == "5"


@case
def another_channel():
    """--shifts moves another channel by what was found on the first; --crop common has no NaN"""
    register(*frames(), "--shifts-only", "--csv", path("first.csv"), "--reference", "0")
    other = []
    for i in range(N):
        other.append(path(f"other{i}.png"))
        Image.fromarray(gray(-0.5 * scene(SHIFTS[i, 0], SHIFTS[i, 1]))).save(other[-1])
    register(*other, path("other.h5"), "--shifts", path("first.csv"), "--crop", "common",
             "--interpolation", "cubic")
    with h5py.File(path("other.h5")) as f:
        average = f["average"][:]
        assert not np.isnan(average).any() and average.shape < (H, W)
        y, x = (-int(v) for v in f["average"].attrs["origin_px"])
        truth = 120 - 15 * scene(0, 0)[y:y + average.shape[0], x:x + average.shape[1]]
        assert np.abs(average - truth).max() < 6, np.abs(average - truth).max()
        assert f.attrs["n_averaged"] == N


@case
def near_zero():
    """shifts just below 0 are shown as 0.00, those above in size as they are"""
    with open(path("small.csv"), "w") as file:
        file.write("frame,dy_px,dx_px\n0,-0.004,-0.006\n1,-0.001,-0.5\n")
    said = register(*frames()[:2], "--shifts", path("small.csv"), path("small.h5"))
    assert "dy 0.00 to 0.00 px, dx -0.50 to -0.01 px" in said, said


@case
def left_out():
    """frames that are skipped, blank or of another place are left out, and said so"""
    blank, noise = path("blank.png"), path("noise.png")
    Image.fromarray(np.full((H, W), 77, np.uint8)).save(blank)
    Image.fromarray(gray(rng.normal(size=(H, W)))).save(noise)
    names = frames()[:4] + [blank, noise]
    said = json.loads(register(*names, path("left.h5"), "--skip", "1-1", "--json",
                               "--reference", "0"))
    assert said["left_out"] == [{"frame": 1, "reason": "skipped"},
                                {"frame": 4, "reason": "no contrast"},
                                {"frame": 5, "reason": "low score"}], said
    with h5py.File(path("left.h5")) as f:
        assert list(f["frames/used"]) == [1, 0, 1, 1, 0, 0] and list(f["frames/reason"]) == [0, 1, 0, 0, 2, 3]
        assert np.isnan(f["shifts"][4]).all() and f.attrs["n_averaged"] == 3


def turned(picture, degrees, side=256):
    """The middle of a picture, turned about it; between pixels linearly."""
    turn, middle = np.radians(degrees), np.array(picture.shape) / 2
    y, x = np.mgrid[:side, :side] - side / 2
    at_y = np.cos(turn) * y - np.sin(turn) * x + middle[0]
    at_x = np.sin(turn) * y + np.cos(turn) * x + middle[1]
    whole_y, whole_x = at_y.astype(int), at_x.astype(int)
    y, x = at_y - whole_y, at_x - whole_x
    return sum(picture[whole_y + i, whole_x + j] * (y if i else 1 - y) * (x if j else 1 - x)
               for i in (0, 1) for j in (0, 1))


@case
def turned_frames():
    """frames that are turned by 3 degrees fit nowhere, and are left out"""
    if not os.path.isdir(os.path.join(DATA, "ao_mosaic")):
        raise Skip("../shared/data/ao_mosaic is not there")
    for eye in ("0069", "0070"):
        with Image.open(os.path.join(DATA, "ao_mosaic", f"confocal_{eye}.tif")) as image:
            picture = np.asarray(image, float)
        names = [path(f"turned{i}.tif") for i in range(5)]
        for i, degrees in enumerate((0, 0, 0.5, 3, -3)):
            noise = np.random.default_rng(i).normal(scale=0.3 * picture.std(), size=(256, 256))
            Image.fromarray((turned(picture, degrees) + noise).astype(np.float32)).save(names[i])
        said = json.loads(register(*names, "--reference", "0", "--shifts-only", "--json",
                                   "--csv", path("turned.csv"), "--force"))
        assert [frame["frame"] for frame in said["left_out"]] == [3, 4], (eye, said)


@case
def every_row_names_its_file():
    """of hundreds of inputs too, and the file has the settings that made it"""
    deep = path("n" * 200)
    os.mkdir(deep)
    names = [os.path.join(deep, f"{i:03}.png") for i in range(160)]
    for i, name in enumerate(names):
        Image.fromarray(gray(scene(i % 3, 0))[:40, :48]).save(name)
    asked = ("--reference", "0", "--skip", "7", "--csv", path("many.csv"))
    register(*names, path("many.h5"), "--model", "strips", "--strip", "16:8", *asked)
    with h5py.File(path("many.h5")) as f:
        assert [s.decode() for s in f["frames/files"][:]] == names
        assert f.attrs["source"].split("\n") == names
        settings = {"as": "frames", "model": "strips", "reference": "0", "passes": 1, "skip": "7",
                    "strip_lines": 16, "strip_step": 8, "far_px": 64, "search_px": 12, "crop": "all",
                    "domain": "linear", "interpolation": "linear", "asked_backend": "auto"}
        assert {k: f.attrs[k] for k in settings} == settings, dict(f.attrs)
    for row in rows("many.csv"):
        assert row["file"] == names[int(row["frame"])], row
    register(*names[:9], path("many.h5"), "--as", "volume", "--force", "--csv", path("many.csv"), "--force")
    assert [row["file"] for row in rows("many.csv")] == names[:9]
    with h5py.File(path("many.h5")) as f:
        assert [s.decode() for s in f["frames/files"][:]] == names[:9] and f.attrs["as"] == "volume"


@case
def masks():
    """a bar that stays in the frame does not hold them where it is masked"""
    names = []
    mask = np.full((H, W), 255, np.uint8)
    mask[40:60] = 0
    Image.fromarray(mask).save(path("mask.png"))
    for i in range(3):
        picture = gray(scene(SHIFTS[i, 0], SHIFTS[i, 1]))
        picture[40:60, ::2] = 255
        picture[40:60, 1::2] = 0
        names.append(path(f"bar{i}.png"))
        Image.fromarray(picture).save(names[-1])
    register(*names, "--shifts-only", "--csv", path("bar.csv"), "--mask", path("mask.png"),
             "--reference", "0")
    found = np.array([(float(r["dy_px"]), float(r["dx_px"])) for r in rows("bar.csv")])
    assert np.abs(found - SHIFTS[:3]).max() < 0.1, found


@case
def nonsense():
    """what cannot be is one line, a status, and no file"""
    names, out = frames(), path("never.h5")
    small = path("small.png")
    Image.fromarray(np.zeros((H, W + 1), np.uint8)).save(small)
    blank = path("blank2.png")
    Image.fromarray(np.full((H, W), 5, np.uint8)).save(blank)
    mask, given = path("kept.png"), path("given.csv")
    Image.fromarray(np.full((H, W), 255, np.uint8)).save(mask)
    with open(given, "w") as file:
        file.write("frame,dy_px,dx_px\n0,0,0\n1,1,1\n")
    with open(path("bad.csv"), "w") as file:
        file.write("frame,line,dy_px,dx_px\n0,0,1,2\n99,0,1,2\n")
    with open(path("half.csv"), "w") as file:
        file.write("frame,dy_px,dx_px\n0,0,0\n0.5,1,1\n")
    for arguments, status, text in (
            (names + ["--shifts", path("half.csv")], 1, "half.csv:3"),
            (names[:2] + [small], 1, "small.png"),
            ([blank, blank], 1, "contrast"),
            ([names[0], blank], 1, "fewer than 2"),
            ([names[0]], 1, "holds one picture"),
            ([names[0], blank, "--as", "mosaic"], 1, "fewer than two pictures have contrast"),
            (names + ["--lateral"], 2, "--as frames takes no --lateral"),
            (names + ["--strip", "16:4"], 2, "--model rigid takes no --strip"),
            (names + ["--far", "32"], 2, "--model rigid takes no --far"),
            (names + ["--as", "bscans", "--far", "32"], 2, "--model rigid takes no --far"),
            (names + ["--model", "none", "--search", "9"], 2, "--model none takes no --search"),
            (names + ["--shifts", given, "--passes", "2"], 2, "--shifts takes no --passes 2"),
            (names + ["--shifts", given, "--model", "rigid"], 2, "--shifts takes no --model"),
            (names + ["--shifts-only", "--stack"], 2, "--stack and --shifts-only"),
            ([HERE], 1, ""),
            (names + ["--reference", "7"], 1, "there are 7 frames"),
            (names + ["--reference", path("none.png")], 1, "none.png"),
            (names + ["--skip", "3,"], 2, "--skip"),
            (names + ["--skip", "9"], 1, "7 frames"),
            (names + ["--strip", "1"], 2, "--strip"),
            (names + ["--strip", "200:8", "--model", "strips"], 1, "200"),
            (names + ["--search", "500"], 1, "at most"),
            (names + ["--roi", "0,0,500,500"], 1, "region"),
            (names + ["--model", "elastic"], 2, "--model"),
            (names + ["--as", "what"], 2, "--as"),
            (names + ["--pixel-um", "0"], 2, "--pixel-um"),
            (names + ["--shifts", path("bad.csv")], 1, "bad.csv:3"),
            (names + ["--csv", out], 2, "two outputs"),
            (names + ["--mask", mask, "--csv", mask, "--force"], 2, "is an input itself"),
            (names + ["--shifts", given, "--csv", given, "--force"], 2, "is an input itself"),
            (names + ["--csv", names[0] + "/x.csv"], 1, "Not a directory"),
    ):
        said = register(*_with_out(arguments, out), status=status)
        assert text in said, (arguments, said)
        assert not os.path.exists(out), arguments
    with h5py.File(path("raw.h5"), "w") as file:
        file["spectra"] = np.zeros((2, 4, 128), np.uint16)
    said = register(*names, path("raw.h5"), "--force", status=2)
    assert "holds a recording" in said, said
    before = open(names[0], "rb").read()
    register(*names, names[0], "--force", status=2)
    assert open(names[0], "rb").read() == before  # an input is never replaced


def _with_out(arguments, out):
    """OUT.h5 stands behind the pictures, before the options."""
    at = next((i for i, a in enumerate(arguments) if a.startswith("--")), len(arguments))
    return arguments[:at] + [out] + arguments[at:]


@case
def interrupted():
    """interrupted it says so and leaves nothing, neither under the output's name nor beside it"""
    names, out = frames() * 60, path("ended.h5")
    for mode in (("--stack",), ("--model", "strips"), ("--as", "volume"), ("--as", "mosaic")):
        process = subprocess.Popen([program("octctl"), "register", *names, out, *mode],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + 20
        while not _catches(process.pid, signal.SIGINT):
            assert process.poll() is None and time.monotonic() < end, mode
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 1 and b"interrupted" in errors, (mode, errors)
        assert not [n for n in os.listdir(HERE) if n.startswith("ended.h5")], mode


def _catches(pid, number):
    """Whether the process has a handler for the signal."""
    with open(f"/proc/{pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1 == 1


main()
