#!/usr/bin/python3
"""Results of analyses in recordings as h5py and octctl see them. The file is made by
`test_volume_results --writer PATH`: 12 B-scans, forms as in that test."""
import json
import os
import shutil
import subprocess

import h5py
import numpy as np

BUILD = os.environ["OCT_BUILD"]
WRITER = os.path.join(BUILD, "test", "test_volume_results")
OCTCTL = os.path.join(BUILD, "octctl")
V, M, D, ROWS, COLUMNS = 12, 5, 16, 4, 3
n_cases = 0


def case(name, ok, why=""):
    global n_cases
    n_cases += 1
    print(f"{'ok' if ok else 'not ok'} {n_cases} - {name}")
    if why and not ok:
        print("# " + why, flush=True)


def octctl(*words):
    return subprocess.run([OCTCTL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def reads_back(path):
    with h5py.File(path, "r") as f:
        cells, smooth, enface = (f["analysis/" + k] for k in ("cells", "smooth", "enface"))
        valid, rows = f["frames/cells_valid"][:], f["frames/cells_rows"][:]
        case("datasets have the shapes and types of their forms",
             cells.shape == (V, ROWS, COLUMNS) and cells.dtype == "<f4"
             and smooth.shape == (V, 2, M, D) and smooth.dtype == "u1"
             and enface.shape == (V, M) and enface.dtype == "<f4")
        case("they lie in one piece on a block",
             all(d.chunks is None and d.id.get_offset() % 4096 == 0
                 for d in (cells, smooth, enface, f["analysis/shadow"])))
        case("a row is valid where a result came",
             [int(v) for v in valid] == [v != 5 for v in range(V)]
             and [int(v) for v in f["frames/smooth_valid"]] == [v >= 2 for v in range(V)])
        wrong = []
        for v in np.flatnonzero(valid).tolist():
            n = v % (ROWS + 1)
            want = np.full((ROWS, COLUMNS), np.nan, "<f4")
            want[:n] = v + 1 + np.arange(n * COLUMNS).reshape(n, COLUMNS) / 100
            if rows[v] != n or not np.allclose(cells[v], want, equal_nan=True):
                wrong.append(v)
        case("tables hold their rows, and NaN where there are fewer", not wrong, str(wrong))
        case("u8 images come with their limits",
             all(f["frames/smooth_lo"][v] == v and f["frames/smooth_hi"][v] == v + 10
                 and np.array_equal(smooth[v].ravel(), (v + 1 + np.arange(2 * M * D)) % 256)
                 for v in range(2, V)))
        case("the image of a volume is the newest one",
             f["analysis/enface_valid"][0] == 1 and (enface[:] == V).all()
             and f["analysis/shadow_valid"][0] == 0)
        case("attributes say what the values are",
             cells.attrs["quantity"] == "numbers" and cells.attrs["units"] == "as labelled"
             and list(cells.attrs["labels"]) == ["depth, um", "level, dB", "\u00e4"]
             and enface.attrs["quantity"] == "intensity" and enface.attrs["units"] == "dB"
             and "labels" not in enface.attrs)
        case("axes have names and spacings, those of B-scans the volume's",
             list(smooth.attrs["axis_names"]) == ["bscan", "look", "line", "depth"]
             and np.allclose(smooth.attrs["axis_spacing_um"], [500 / V, np.nan, 7.5, 2],
                             equal_nan=True)
             and list(enface.attrs["axis_names"]) == ["bscan", "line"]
             and np.allclose(enface.attrs["axis_spacing_um"], [500 / V, 7.5]))


def octctl_shows(path):
    said = json.loads(octctl("info", "--json", path).stdout)["datasets"]
    case("octctl info --json lists them",
         [(d["name"], d["shape"], d["unit"], d["valid"]) for d in said]
         == [("cells", [V, ROWS, COLUMNS], "as labelled", V - 1), ("enface", [V, M], "dB", 1),
             ("shadow", [3 * 4096 + 5], "counts^2", 0), ("smooth", [V, 2, M, D], "dB", V - 2)],
         str(said))
    text = octctl("info", path).stdout
    case("octctl info shows them in its table",
         "dataset            cells [12][4][3] f32, as labelled: 11 rows written\n" in text
         and "dataset            enface [12][5] f32, dB: written\n" in text
         and "dataset            shadow [12293] u8, counts^2: not written\n" in text, text)
    done = octctl("check", path)
    case("octctl check is content", done.returncode == 0, done.stdout)


def is_refused(path, name, change, words):
    copy = path + ".bad.h5"
    shutil.copyfile(path, copy)
    with h5py.File(copy, "r+") as f:
        change(f)
    done = octctl("check", copy)
    case(f"octctl check says so: {name}", done.returncode == 1 and words in done.stdout,
         done.stdout)


def set_flag(f):
    f["frames/cells_valid"][3] = 7


def replace(name, shape, dtype):
    def change(f):
        del f[name]
        f.create_dataset(name, shape, dtype)
    return change


def take_away(f):
    del f["frames/smooth_rows"]


def of_another_program(path):
    """What another program keeps in /analysis concerns nobody."""
    with h5py.File(path, "r+") as f:
        f["analysis/notes"] = "text"
        f["analysis/Odd name"] = np.zeros(3)
        f["analysis/away"] = h5py.ExternalLink("/etc/hostname", "/")
        f.create_group("analysis/group")
    done = octctl("check", path)
    case("what another program has put there is left alone",
         done.returncode == 0 and len(json.loads(octctl("info", "--json", path).stdout)["datasets"])
         == 4, done.stdout)


FILE = os.path.join(os.environ["TMPDIR"], "results.h5")
made = subprocess.run([WRITER, "--writer", FILE])
case("the writer has made its file", made.returncode == 0)
reads_back(FILE)
octctl_shows(FILE)
is_refused(FILE, "a flag that is neither 0 nor 1", set_flag, "/frames/cells_valid: row 3 is 7")
is_refused(FILE, "rows that the volume does not have",
           replace("analysis/cells", (V + 1, ROWS, COLUMNS), "<f4"), "/analysis/cells has 13 rows")
is_refused(FILE, "values of another type", replace("analysis/smooth", (V, 2, M, D), "<i4"),
           "neither u8 nor f32")
is_refused(FILE, "flags of another length", replace("frames/smooth_valid", (V - 1,), "u1"),
           "/frames/smooth_valid must be 12")
is_refused(FILE, "a column that is missing", take_away, "/frames/smooth_rows cannot be found")
of_another_program(FILE)
print(f"1..{n_cases}")
