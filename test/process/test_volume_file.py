#!/usr/bin/python3
"""Recordings as other programs see them: h5py and h5dump, also after the writer was killed.

The writer is `test_volume --writer PATH ROWS`: 9 lines, 101 samples, 33 pixels, rows v % 50 == 20
skipped; it prints "v written" whenever the number of rows reported as written changes."""
import os
import random
import signal
import subprocess
import time

import h5py
import numpy as np

WRITER = os.path.join(os.environ["OCT_BUILD"], "test", "test_volume")
FOLDER = os.environ["TMPDIR"]
M, N, D = 9, 101, 33
n_cases = 0


def case(name, ok, why=""):
    global n_cases
    n_cases += 1
    print(f"{'ok' if ok else 'not ok'} {n_cases} - {name}")
    if why and not ok:
        print("# " + why, flush=True)


def mixed(v, count):
    """The sample function of volume_cases.c."""
    i = np.arange(count, dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    h = (np.uint64((v + 1) * 2654435761 & 0xFFFFFFFF) + i * np.uint64(2246822519)) & mask
    h ^= h >> np.uint64(15)
    return ((h * np.uint64(3266489917)) & mask | np.uint64(1)).astype(np.uint32)


def lines(v):
    return np.array([(v + j) % 7 != 6 for j in range(M)], np.uint8)


def wrong_rows(f):
    """Rows with valid = 1 that do not hold exactly what was recorded."""
    wrong = []
    frames = {k: f["frames/" + k][:] for k in f["frames"]}
    for v in np.flatnonzero(frames["valid"]).tolist():
        good = (np.array_equal(f["spectra"][v].ravel(), mixed(v, M * N).astype(np.uint16))
                and np.array_equal(f["bscans"][v].ravel(), mixed(v + 77, M * D).astype(np.uint8))
                and np.array_equal(frames["line_valid"][v], lines(v))
                and frames["sequence"][v] == v * 1000003 + 5
                and frames["time_ns"][v] == v * 4000000007 + 9
                and frames["missing_lines"][v] == M - lines(v).sum()
                and frames["acquisition"][v] == 3
                and frames["lo"][v] == -1.5 * v and frames["hi"][v] == 60 + v)
        if not good or v % 50 == 20:
            wrong.append(v)
    return wrong


def dumps(path):
    done = subprocess.run(["h5dump", "-H", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode == 0 and b"spectra" in done.stdout


def kill_after(path, rows, n_lines, delay_s):
    """Kills the writer delay_s after it printed n_lines; returns all it had printed."""
    process = subprocess.Popen([WRITER, "--writer", path, str(rows)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    first = [process.stdout.readline() for _ in range(n_lines)]
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    out, err = process.communicate()
    if err:
        print("# " + err)
    return ("".join(first) + out).split("\n")[:-1]


def killed():
    rng = random.Random(7)
    bad, n_partial, n_rows = [], 0, 0
    for k in range(40):
        path = os.path.join(FOLDER, f"killed{k}.h5")
        # Some while the file is being made, the others while rows are.
        n_lines = 0 if k < 15 else rng.randint(2, 60)
        delay_s = rng.uniform(0, 0.02 if k < 15 else 0.005)
        said = kill_after(path, 12000, n_lines, delay_s)
        names = [n for n in os.listdir(FOLDER) if n.startswith(f"killed{k}.h5")]
        if not names:
            if said:
                bad.append(f"run {k}: said {said[-1]!r}, left no file")
            continue
        if len(names) != 1 or not names[0].endswith((".h5", ".h5.part")):
            bad.append(f"run {k}: left {names}")
            continue
        left = os.path.join(FOLDER, names[0])
        reported = int(said[-1].split()[1]) if said and said[-1][0].isdigit() else 0
        try:
            with h5py.File(left, "r") as f:
                n_valid, wrong = int(f["frames/valid"][:].sum()), wrong_rows(f)
        except (OSError, KeyError) as e:
            bad.append(f"run {k} after {n_lines} lines and {delay_s:.4f} s: {e}")
            continue
        if n_valid < reported or wrong or not dumps(left):
            bad.append(f"run {k}: {reported} reported, {n_valid} valid, wrong: {wrong[:9]}")
        n_partial += left.endswith(".part") and reported > 0
        n_rows += n_valid
        os.unlink(left)
    print(f"# {n_partial} of 40 killed while recording, {n_rows} rows checked")
    case("every row reported as written is right after kill -9 at any moment", not bad,
         "; ".join(bad))
    case("the kills came while rows were being written", n_partial >= 20, f"{n_partial} of 40")


def whole():
    path = os.path.join(FOLDER, "whole.h5")
    done = subprocess.run([WRITER, "--writer", path, "500"], stdout=subprocess.PIPE, text=True)
    case("a recording left to its end has its final name",
         done.returncode == 0 and done.stdout.endswith("closed\n") and os.path.exists(path)
         and not os.path.exists(path + ".part"))
    with h5py.File(path, "r") as f:
        case("its rows read back exactly with h5py",
             not wrong_rows(f) and f["frames/valid"][:].sum() == 490)
        case("skipped rows are zero and not valid",
             not f["spectra"][20].any() and not f["bscans"][70].any()
             and not f["frames/valid"][20])
        case("its arrays have the contract's types and shapes",
             f["spectra"].dtype == "<u2" and f["spectra"].shape == (500, M, N)
             and f["bscans"].dtype == "u1" and f["bscans"].shape == (500, M, D)
             and [f["frames/" + k].dtype for k in ("sequence", "time_ns", "missing_lines", "valid")]
             == ["<u8", "<u8", "<u4", "u1"])
        a = f.attrs
        case("its texts are str in h5py",
             all(isinstance(a[k], str) for k in
                 ("software", "config", "start_time", "engine", "eye", "pseudonym"))
             and a["software"].startswith("octd ") and a["pseudonym"] == "P-0017 \u00e4"
             and a["start_time"] == "2026-01-02T03:04:05Z" and "samples = 37" in a["config"])
        case("its axes have names and spacings",
             list(f["bscans"].attrs["axis_names"]) == ["bscan", "line", "depth"]
             and list(f["spectra"].attrs["axis_names"]) == ["bscan", "line", "sample"]
             and np.allclose(f["bscans"].attrs["axis_spacing_um"], [500 / 500, 1000 / M, 5 / 1.25])
             and np.isnan(f["spectra"].attrs["axis_spacing_um"][2])
             and np.allclose(a["axis_spacing_um"], [1, 1000 / M, 4])
             and f["bscans"].attrs["first_depth_px"] == 3)
        b, s = f["bscans"], f["spectra"]
        case("its axes have HDF5's own labels and scales",
             [d.label for d in b.dims] == ["bscan", "line", "depth"]
             and [d.label for d in s.dims] == ["bscan", "line", "sample"]
             and np.allclose(b.dims[0][0][:], np.arange(500))
             and np.allclose(b.dims[1][0][:], np.arange(M) * 1000 / M)
             and np.allclose(b.dims[2][0][:], (3 + np.arange(D)) * 4)
             and [d[0].name for d in b.dims] == ["/bscan_um", "/line_um", "/depth_um"]
             and b.dims[2][0].attrs["units"] == "um"
             and s.dims[1][0] == b.dims[1][0] and len(s.dims[2]) == 0)
        case("Fiji's and ilastik's readers find the size of a voxel",
             np.allclose(b.attrs["element_size_um"], [1, 1000 / M, 4])
             and np.allclose(s.attrs["element_size_um"], [1, 1000 / M, np.nan], equal_nan=True))
        case("it says what grey and counts mean",
             b.attrs["units"] == f["frames/lo"].attrs["units"] == "counts^2"
             and b.attrs["quantity"] == "intensity"
             and b.attrs["grey_quantity"].startswith("intensity, linear")
             and b.attrs["grey_limits"] == "per B-scan: /frames/lo, /frames/hi"
             and "/frames/hi[v]" in b.attrs["grey_meaning"] and "grey_lo" not in b.attrs
             and s.attrs["units"] == "counts" and f["frames/time_ns"].attrs["units"] == "ns")
        case("no array is packed: no plug-in is needed",
             f["spectra"].chunks is None and f["spectra"].compression is None
             and f["spectra"].id.get_offset() % 4096 == 0)
    case("h5dump prints its header", dumps(path))


whole()
killed()
print(f"1..{n_cases}")
